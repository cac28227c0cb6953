"""Sample data of study 3: emoji faces in FairFace's files and columns, and a small corpus."""

import io
import itertools
import json
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
from PIL import Image

import plantedworld
from biaslib import stimuli
from biaslib.datasets import fairface

N_PER_GROUP = 3
SPLITS = {"train": N_PER_GROUP, "validation": 1}


def people(n_per_group: int) -> pandas.DataFrame:
    """Labels as FairFace has them, in every intersection of gender and race, and a scene each."""
    groups = itertools.product(fairface.GENDERS, fairface.RACES, range(n_per_group))
    table = pandas.DataFrame(groups, columns=["gender", "race", "number"])
    table["age"] = np.resize(fairface.AGES, len(table))
    scenes = plantedworld.faces(-(-len(table) // 10), np.random.default_rng(0))
    drawn = {}
    for shown, label in (("woman", "Female"), ("man", "Male")):
        rows = table.index[table["gender"] == label]
        of_gender = scenes[scenes["gender"] == shown]
        picks = np.resize(np.arange(len(of_gender)), len(rows))
        drawn |= dict(zip(rows, plantedworld.draw(of_gender.iloc[picks]), strict=True))
    return table.assign(picture=[drawn[row] for row in table.index])


def write_parquet(
    root: Path, split: str = "train", table: pandas.DataFrame | None = None, crop: str = "0.25"
) -> Path:
    """Write portraits as the hub has them: images as bytes, numbers of classes, two files."""
    table = people(2) if table is None else table
    codes = {name: table[name].map(known.index) for name, known in fairface.LABELS.items()}
    images = []
    for picture in table["picture"]:
        stream = io.BytesIO()
        Image.fromarray(picture).save(stream, "JPEG", quality=95)
        images.append({"bytes": stream.getvalue(), "path": None})
    classes = {name: {"names": list(known)} for name, known in fairface.LABELS.items()}
    metadata = {b"huggingface": json.dumps({"info": {"features": classes}}).encode()}
    (root / crop).mkdir(parents=True, exist_ok=True)
    for part, rows in enumerate(np.array_split(np.arange(len(table)), 2)):
        columns = {name: codes[name].iloc[rows].tolist() for name in fairface.LABELS}
        columns = {"image": [images[row] for row in rows], **columns}
        written = pyarrow.table(columns).replace_schema_metadata(metadata)
        path = root / crop / f"{split}-{part:05d}-of-00002.parquet"
        pyarrow.parquet.write_table(written, path, row_group_size=5)
    return root


def write_corpus(root: Path, n: int = 3000) -> Path:
    """Write captions that we make up, in LAION's columns, a few of them null."""
    root.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    words = stimuli.taxonomy("sobit").query("bias_type == 'Occupation'")["word"].to_numpy()
    pronouns = rng.choice(["her", "his", "the"], n)
    chosen = rng.choice([*words, "nurse", "maid", "farmer"], n)
    texts = [f"{p} {w}, photo {i}" for i, (p, w) in enumerate(zip(pronouns, chosen, strict=True))]
    texts[::500] = [None] * len(texts[::500])
    table = pyarrow.table({"SAMPLE_ID": list(range(n)), "URL": [""] * n, "TEXT": texts})
    pyarrow.parquet.write_table(table, root / "part-00000.parquet")
    return root


def build(folder: Path) -> Path:
    """Write ``fairface`` and ``captions``."""
    write_corpus(folder / "captions")
    for split, n_per_group in SPLITS.items():
        write_parquet(folder / "fairface", split, people(n_per_group))
    return folder / "fairface"
