"""One look for every figure."""

from biaslib.runtime import in_book

WIDTH = 7.2
"""Width in inches of a figure that fills the text column of the book."""


def use_style() -> None:
    """Set the look of every figure of a notebook: seaborn's theme, colour-blind safe, SVG.

    In the built book the background is transparent, so that the page's dark mode can turn a
    figure round; in a live notebook it stays white.
    """
    import seaborn
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    background = "none" if in_book() else "white"
    seaborn.set_theme(
        context="notebook",
        style="ticks",
        palette="colorblind",
        rc={
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.constrained_layout.use": True,
            "figure.figsize": (WIDTH, 4.0),
            "font.size": 11,
            "axes.facecolor": background,
            "figure.facecolor": background,
            "savefig.facecolor": background,
            "svg.hashsalt": "biaslib",
        },
    )


def marked(figure, words: str = "planted world"):
    """Write into the picture where its numbers come from, and return it closed."""
    from matplotlib import pyplot

    if words:
        figure.suptitle(words, x=0.99, ha="right", fontsize=9, color="0.35", style="italic")
    pyplot.close(figure)
    return figure
