"""One look for every figure."""

from biaslib.runtime import TASTE, in_book

PLANTED = "planted world"
"""The note in pictures whose numbers are of the planted world."""

NOTES = {"planted": PLANTED, "taste": TASTE}
"""The note in pictures whose numbers are of no study of a paper, by their profile."""

WIDTH = 7.2
"""Width in inches of a figure that fills the text column of the book."""

COLOURS = tuple(f"C{number}" for number in range(10))
"""Colours in their order: those of the palette that :func:`use_style` sets."""

GROUP_COLOURS = {"women": "C1", "men": "C0"}
"""The colour of a gender, the same in every figure of the book."""


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
            "text.parse_math": False,  # Dollar signs of a label are dollar signs.
        },
    )


def subplots(rows: int = 1, columns: int = 1, height: float = 4.0, width: float = WIDTH, **options):
    """Return a figure and its axes, as Matplotlib's function of the same name.

    The figure is known to nobody else, so that no notebook program shows it twice and nothing has
    to be closed.

    Parameters
    ----------
    rows, columns
        How many axes.
    height, width
        Of the figure, in inches.
    options
        As :meth:`matplotlib.figure.Figure.subplots` takes them.

    Examples
    --------
    >>> figure, axes = subplots(1, 2, height=3.0, sharey=True)
    >>> figure.get_size_inches().tolist(), axes.shape
    ([7.2, 3.0], (2,))
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, columns, **options)


def wide(figure, shape: tuple[int, int] | None = None, order: str = "C", height: float = 3.0):
    """Return a figure with its axes in a wide grid, as slides and paper have room for.

    Axes that share a scale keep its numbers where they stand at the edge.

    Parameters
    ----------
    figure
        Of :func:`subplots`; it is itself changed.
    shape
        Rows and columns; one row, where it is left out.
    order
        ``"C"`` fills row after row, ``"F"`` column after column.
    height
        Of the figure, in inches.

    Examples
    --------
    >>> figure, axes = subplots(2, 1, height=6.2, width=3.4)
    >>> wide(figure).get_size_inches().tolist(), axes[1].get_subplotspec().colspan.start
    ([7.2, 3.0], 1)
    """
    rows, columns = shape or (1, len(figure.axes))
    grid = figure.add_gridspec(rows, columns)
    for number, each in enumerate(figure.axes):
        row, column = divmod(number, columns) if order == "C" else divmod(number, rows)[::-1]
        each.set_subplotspec(grid[row, column])
        if each.get_shared_x_axes().joined(each, figure.axes[0]):
            each.tick_params(labelbottom=row == rows - 1)
        if column and each.get_shared_y_axes().joined(each, figure.axes[0]):
            each.tick_params(labelleft=False)
    figure.set_size_inches(WIDTH, height)
    return figure


def words_alone(words: str):
    """Return a figure that says why there is nothing to draw."""
    figure, axes = subplots(height=0.9)
    axes.axis("off")
    axes.text(0.02, 0.4, words, transform=axes.transAxes)
    return figure


def dots(
    axes, at, rows, colour: str, marker: str = "o", label: str = "", filled=None, upright=False
) -> None:
    """Draw values as dots, each with a line from *low* to *high* through it.

    Parameters
    ----------
    axes
        Where.
    at
        Heights of the dots; their places from left to right if ``upright``.
    rows
        Table or mapping with *value*, *low* and *high*; undefined ends are not drawn.
    colour, marker, label
        Of the dots, and their name in the legend.
    filled
        Which dots are filled: all, where it is left out.
    upright
        Whether values rise upwards and not to the right.
    """
    (axes.vlines if upright else axes.hlines)(at, rows["low"], rows["high"], color=colour)
    filled = [True] * len(at) if filled is None else filled
    faces = [colour if each else "none" for each in filled]
    places = (at, rows["value"]) if upright else (rows["value"], at)
    axes.scatter(*places, s=30, facecolors=faces, edgecolors=colour, marker=marker, zorder=3)
    if label:
        axes.plot([], [], color=colour, marker=marker, label=label)


def marked(figure, profile: str = "planted"):
    """Return a figure with a note in its picture if its numbers are planted, or of a taste.

    The note stands at the left, where a narrow screen shows it; :func:`figure` carries it into the
    captions.

    Parameters
    ----------
    figure
        The picture.
    profile
        Of its numbers: :attr:`biaslib.runtime.Provenance.label`.
    """
    if profile in NOTES:
        note = {"fontsize": 9, "color": "0.35", "style": "italic"}
        figure.suptitle(NOTES[profile], x=0.01, ha="left", **note)
    return figure
