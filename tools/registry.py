"""Write the page tables of the models in biaslib/checkpoints/data, and the list of model files.

The book shows ``registry.csv``, ``cards.csv``, ``downloads.csv`` (what each study fetches) and the
list in book/model_files.md; a test fails when they are not what the registry, the planted
checkpoints' cards and the studies say. Run it after a change of
``biaslib/checkpoints/data/models.json``, or of a checkpoint: ``python tools/registry.py``.
"""

import json
import re
import sys
from pathlib import Path

import pandas

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "biaslib" / "checkpoints" / "data" / "registry.csv"
FILES = ROOT / "book" / "model_files.md"
LIST = re.compile(r"(<!-- from tools/registry\.py -->\n).*?(<!-- end -->)", re.DOTALL)
CARDS = TABLE.with_name("cards.csv")
DOWNLOADS = TABLE.with_name("downloads.csv")
CACHE = "$HOME/.cache/biaslib/checkpoints"


def page_table() -> pandas.DataFrame:
    """Return the registry as the book shows it: one row a model, three columns for a phone."""
    sys.path.insert(0, str(ROOT))
    from biaslib import models

    rows = [(_size(row), _use(row), _origin(row)) for row in models.available().itertuples()]
    return pandas.DataFrame(rows, columns=["Model", "What it does", "Where it comes from"])


def _size(row) -> str:
    if not row.parameters:
        return f"`{row.name}`"
    millions = round(row.parameters / 1e6)
    return f"`{row.name}`, {millions:,} million parameters, {row.megabytes:,} MB"


def _use(row) -> str:
    """Return capabilities, what is read of a picture, the papers and the note, as sentences."""
    reads = row.features or ("pixels" if "image" in row.capabilities else "")
    capabilities = f"{row.capabilities[0].upper()}{row.capabilities[1:]}."
    parts = [capabilities, f"Reads {reads}." if reads else ""]
    parts += [f"Used by {row.papers}." if row.papers else "", row.note]
    text = " ".join(part for part in parts if part)
    return re.sub(r"\b(detector(?= finds| gives)|checkpoint=)", r"`\1`", text)


def _origin(row) -> str:
    """Return source, revision and licence."""
    kind, _, address = row.source.partition(" ")
    source = f"{kind} `{address}`" if kind in ("hub", "url", "package") else row.source
    revision = f"`{row.revision[:12]}`" if len(row.revision) == 40 else row.revision
    revision = "" if kind == "package" or not revision else f"; revision {revision}"
    return f"{source}{revision}; {row.licence}"


def files_list() -> str:
    """Return the list of model files as Markdown: a part a model, to which errors point."""
    sys.path.insert(0, str(ROOT))
    from biaslib.models import REGISTRY

    return "\n".join(_part(entry) for entry in REGISTRY.values() if by_hand(entry))


def _part(entry) -> str:
    """Return name, size, licence, checksum and addresses of a model's files, and the steps."""
    from biaslib.models import Entry

    check = f"`{entry.sha256}`" if entry.sha256 else "as at the first download"
    check = "from the hub" if entry.source.startswith("hub ") else check
    access = "" if entry.access == Entry.access else f" {entry.access}."
    files, addresses = _files(entry)
    return (
        f"(files-{entry.name})=\n### {entry.name}\n\n"
        f"{files}; {entry.megabytes:,} MB; {entry.licence}; SHA-256 {check}.{access}\n\n"
        f"{addresses}\n\n```sh\n{by_hand(entry)}\n```\n"
    )


def _files(entry) -> tuple[str, str]:
    """Return the names of a model's files, and where they and those beside them come from."""
    kind, _, first = entry.source.partition(" ")
    if kind == "hub":
        page = f"https://huggingface.co/{first}"
        files, found = "settings, tokenizer and weights", [f"Repository: [{first}]({page})"]
        found += [f"revision `{entry.revision}`"] if entry.revision else []
    else:
        from biaslib.checkpoints.downloads import place_of

        _, names, addresses = place_of(entry, Path())
        files = ", ".join(f"`{name}`" for name in names)
        found = [f"Addresses, in order: {', '.join(f'`{each}`' for each in addresses) or 'none'}"]
        found += [f"page: {first.rpartition(' ')[2]}"] if kind == "by" else []
    found += [f"tokenizer of `{entry.companion}`"] if entry.companion else []
    found += [f"beside it: `{each}`" for each in entry.beside]
    return files, f"{'; '.join(found)}."


def by_hand(entry) -> str:
    """Return the command for a shell that places a model's files by hand, if it has any."""
    from biaslib.checkpoints.downloads import place_of

    kind, _, address = entry.source.partition(" ")
    if entry.command:
        return entry.command.replace("PLACE", f"{CACHE}/by-hand")
    if kind == "hub":
        revision = f" --revision {entry.revision}" if entry.revision else ""
        return f'hf download {address}{revision} --cache-dir "{CACHE}/hub"'
    if kind == "url":
        place, _, _ = place_of(entry, Path(CACHE))
        return f'curl -L --create-dirs --output-dir "{place.as_posix()}" -O "{address}"'
    return ""


def downloads_table() -> pandas.DataFrame:
    """Return the checkpoints that each study loads in the profile ``paper``: one row a study."""
    sys.path.insert(0, str(ROOT))
    from biaslib import models
    from biaslib.studies import study1_grounded as grounded
    from biaslib.studies import study4_captions as stereotype_selection

    loaded = {
        "1": [*grounded.MODELS, "bert"],
        "2": ["vl-bert", "bert"],
        "3": ["open-clip"],
        "4": list(dict.fromkeys(way.paper for way in stereotype_selection.MODEL_HEADS)),
    }
    rows = []
    for study, names in loaded.items():
        entries = [models.REGISTRY[name] for name in names]
        if any(entry.features for entry in entries):
            entries.append(models.REGISTRY["detector"])
        size = sum(entry.megabytes for entry in entries) / 1000
        each = ", ".join(f"`{entry.name}` {entry.megabytes:,} MB" for entry in entries)
        rows.append((f"Study {study}: {size:.1f} GB", each))
    return pandas.DataFrame(rows, columns=["Study", "Checkpoints"])


def cards_table() -> pandas.DataFrame:
    """Return what the cards of the planted checkpoints with masked words say: one row a world."""
    sys.path.insert(0, str(ROOT))
    from plantedworld.models.checkpoints import shipped

    table = shipped()
    table["card"] = [json.loads((path / "card.json").read_text()) for path in table["path"]]
    table = table[[("masked-word accuracy" in card) for card in table["card"]]]
    worlds = table.groupby(["family", "planted_in", "dose"])["card"]
    rows = [(_world(*world, len(cards)), _words(cards), _match(cards)) for world, cards in worlds]
    columns = ["Checkpoints", "Masked words guessed", "True caption of two preferred"]
    return pandas.DataFrame(rows, columns=columns)


def _world(family: str, planted_in: str, dose: float, count: int) -> str:
    only = "" if planted_in == "both" else f", planted in {planted_in} only"
    return f"`{family}`, dose {dose:g}{only}: {count}"


def _words(cards) -> str:
    exact, chance = _range(cards, "truth's accuracy"), _range(cards, "chance")
    return f"{_range(cards, 'masked-word accuracy')} (exact {exact}, chance {chance})"


def _match(cards) -> str:
    if "match accuracy" not in cards.iloc[0]:
        return "no matching head"
    exact, chance = _range(cards, "truth's match accuracy"), _range(cards, "match chance")
    return f"{_range(cards, 'match accuracy')} (exact {exact}, chance {chance})"


def _range(cards, what: str) -> str:
    """Return the lowest and the highest of some cards, in per cent."""
    shares = [f"{100 * card[what]:.1f}" for card in cards]
    low, high = min(shares, key=float), max(shares, key=float)
    return f"{low}%" if low == high else f"{low} to {high}%"


TABLES = {TABLE: page_table, CARDS: cards_table, DOWNLOADS: downloads_table}


def main() -> None:
    """Write the tables."""
    for path, table in TABLES.items():
        table().to_csv(path, index=False, lineterminator="\n")
        print(f"{path.relative_to(ROOT)}: written")
    page = FILES.read_text(encoding="utf-8")
    FILES.write_text(LIST.sub(lambda at: at[1] + files_list() + at[2], page), encoding="utf-8")


if __name__ == "__main__":
    main()
