"""Numbers of every tiny checkpoint that the package carries, to be the same wherever it runs.

``python tools/checkpoint_numbers.py FILE`` writes those of the environment that runs this script.
tests/golden/checkpoint_numbers.json holds those of the tested set (constraints.txt).
"""

import sys
from pathlib import Path

import numpy as np

TABLE = Path(__file__).resolve().parents[1] / "tests" / "golden" / "checkpoint_numbers.json"
TOLERANCE = 1e-4
"""How far a number may be from the table's: absolute, or of the table's where that is above 1.

Other processors move float32 results of these networks by some 3e-6, other images by one level of
256 in a few pixels; an option that a library has renamed or ignores moves them by far more.
"""
CAPTION, MASKED = "the woman is a nurse .", "the woman is a [MASK] ."
WORDS = ["nurse", "judge", "pilot"]
GENERATIVE = "llava"
"""The family that is no registered name: its folders are loaded as models of the hub are."""


def numbers() -> dict[str, list[float]]:
    """Return up to 24 numbers of each checkpoint: name -> what it answers to fixed questions."""
    from biaslib import models
    from plantedworld import profile
    from plantedworld.models.checkpoints import shipped

    names = {models.REGISTRY[name].family: name for name in profile.TINY}
    table, found = shipped(), {}
    for family, path in zip(table["family"], table["path"], strict=True):
        if family in names:
            model = models.load(names[family], checkpoint=path, device="cpu")
            found[path.name] = _answers(model, models.REGISTRY[names[family]])
        elif family == GENERATIVE:
            model = models.load(str(path), device="cpu")
            found[path.name] = _answers(model, model)
    return found


def _answers(model, entry) -> list[float]:
    from biaslib import capabilities as can

    parts, shown = [], _shown(entry)
    if can.ENCODE in entry.capabilities:
        parts += [model.encode_text([CAPTION])[0, :4], model.encode_image(shown)[0, :4]]
    if can.EMBED_WITH_IMAGES in entry.capabilities or can.EMBED in entry.capabilities:
        parts += [model.embed([CAPTION], images=shown, level="sentence")[0, :4]]
    if can.FILL_WITH_IMAGES in entry.capabilities or can.FILL in entry.capabilities:
        parts += [model.mask_log_prob([MASKED], WORDS, images=shown)[0]]
    if can.MATCH in entry.capabilities:
        captions = [CAPTION, "the man is a judge ."]
        parts += [model.match(shown, [captions])[0]]
    return [float(each) for part in parts for each in np.asarray(part, dtype=np.float64)]


def _shown(entry):
    """Return one scene of the planted world as the model sees it, or None."""
    import plantedworld
    from plantedworld.models.regions import regions_of

    if not getattr(entry, "takes_images", True):
        return None
    scenes = plantedworld.faces(1, np.random.default_rng(3)).iloc[:1]
    regions = getattr(entry, "features", "")
    return regions_of(scenes) if regions else plantedworld.draw(scenes)


def differences(found: dict[str, list[float]], expected: dict[str, list[float]]) -> list[str]:
    """Return what differs from a table by more than the tolerance, as lines of a report."""
    lines = [f"{name}: not in both" for name in sorted(found.keys() ^ expected.keys())]
    for name in sorted(found.keys() & expected.keys()):
        here, there = np.array(found[name]), np.array(expected[name])
        if here.shape != there.shape:
            lines.append(f"{name}: {len(here)} numbers, and {len(there)} in the table")
            continue
        apart = np.abs(here - there) / np.maximum(1, np.abs(there))
        if not (apart <= TOLERANCE).all():
            lines.append(f"{name}: {apart.max():.2g} from the table, and {TOLERANCE} is allowed")
    return lines


def as_text(found: dict[str, list[float]]) -> str:
    """Return a table as JSON, a line a checkpoint, to seven digits."""
    rows = [f'"{name}": [{", ".join(f"{x:.7g}" for x in row)}]' for name, row in found.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TABLE
    target.write_text(as_text(numbers()), encoding="utf-8")
