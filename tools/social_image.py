"""Draw the picture that a link to the book shows where links are previewed: book/static/social.png.

``python tools/social_image.py`` runs the chapter on text encoders once more (some minutes) and
draws its four steps at 1200 by 630 pixels. The counts stand in the file as text, so that a test can
compare them with the page.
"""

import json
import sys
import textwrap
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from biaslib import display, models, stimuli  # noqa: E402
from biaslib.runtime import Store  # noqa: E402
from biaslib.stimuli import pool  # noqa: E402
from biaslib.studies import text_encoders as study  # noqa: E402
from companion import text_encoders as plots  # noqa: E402

IMAGE = ROOT / "book" / "static" / "social.png"
TITLE = "What is left of {n} tests of social bias on a real text encoder"


def run():
    """Return scores and their places among random attribute sets, as the chapter computes them."""
    encoder, store = models.load("all-MiniLM-L6-v2"), Store()
    names = stimuli.association_tests(study1=True)["name"].tolist()
    scores, embedded = study.run(encoder, names, store=store, seed=2021, n_bootstrap=200)
    words = pool.word_pool(1_000, exclude=stimuli.all_words(), rng=2021)
    pools = study.embed_pools(encoder, words, store=store)
    return scores, study.against_random(scores, embedded, pools, seed=2021)[0]


def four_steps(scores, placed):
    """Draw which tests are significant as the three switches go on, a panel a step."""
    rows = list(plots.ROWS)[::-1]
    names = scores[["test", "level"]].values
    at = [rows.index(test) + plots.LEVELS[level][2] for test, level in names]
    figure, panels = display.subplots(1, 4, width=10, height=5.25, sharey=True)
    steps = ("Significant tests", *plots.SWITCHES)
    for on, (axes, step) in enumerate(zip(panels, steps, strict=True)):
        found = plots.significant(scores, placed, *(number < on for number in range(3)))
        axes.axvline(0, color="0.75", linewidth=1)
        for chosen, colour, size in ((~found, "0.72", 14), (found, "C0", 42)):
            kept = np.flatnonzero(chosen)
            axes.scatter(scores["value"].to_numpy()[kept], np.array(at)[kept], size, colour)
        axes.set_title(textwrap.fill(f"{'' if on == 0 else '+ '}{step}", 18), fontsize=10.5)
        axes.set(xlim=(-2, 2), ylim=(-3.2, len(rows) - 0.4), xlabel="effect size d")
        axes.text(1.9, -2.8, str(found.sum()), size=34, weight="bold", color="C0", ha="right")
    panels[0].set_yticks(range(len(rows)), [plots.ROWS[test] for test in rows], fontsize=9.5)
    return figure


def draw(scores, placed, path: Path = IMAGE) -> None:
    """Write the picture."""
    display.use_style()
    figure = four_steps(scores, placed)
    figure.set_facecolor("white")
    figure.suptitle(TITLE.format(n=len(scores)), size=19, weight="bold")
    figure.supxlabel("Measuring Social Bias in Vision-Language Models", size=13, color="0.3")
    counts = json.dumps(plots.four_counts(scores, placed))
    figure.savefig(path, dpi=120, metadata={"Comment": counts, "Software": None})


if __name__ == "__main__":
    draw(*run())
