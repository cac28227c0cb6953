"""The carried tables and their errata."""

import math
from pathlib import Path

import pandas
import pytest

from biaslib import published
from biaslib.published import _tables
from biaslib.runtime import UnknownNameError

DATA = _tables.DATA
SHARED = Path(__file__).parents[2] / "shared" / "tables"
SOURCES = {
    "ross2021_images": "grounded_weat/images",
    "ross2021_effect_sizes": "grounded_weat/effect_sizes",
    "ross2021_significant_counts": "grounded_weat/significant_counts",
    "srinivasan2021_methodology": "vlbert/methodology",
    "srinivasan2021_case_study": "vlbert/case_study",
    "hamidieh2023_laion_pronouns": "sobit/laion_pronouns",
    "hamidieh2023_taxonomy": "sobit/taxonomy",
    "hamidieh2023_casc": "sobit/casc",
    "zhou2022_images": "vlstereoset/images",
    "zhou2022_models": "vlstereoset/models",
    "zhou2022_scores": "vlstereoset/scores",
}


# ---- the carried files


@pytest.mark.parametrize(("name", "source"), SOURCES.items())
def test_a_carried_file_is_the_transcription_byte_for_byte(name, source):
    original = SHARED / f"{source}.csv"
    if not original.exists():
        pytest.skip("the transcriptions are kept outside the repository")
    assert (DATA / f"{name}.csv").read_bytes() == original.read_bytes()


KINDS = {"integer": r"-?\d+", "number": r"-?\d+(\.\d+)?"}


@pytest.mark.parametrize("path", sorted(DATA.glob("*.csv")), ids=lambda path: path.stem)
def test_every_cell_of_a_data_file_is_as_its_schema_says(path):
    schema = _tables.SCHEMAS[path.stem]
    rows = pandas.read_csv(path, dtype=str, keep_default_na=False)
    assert len(rows)
    assert not rows.duplicated(schema["key"]).any()
    for column in schema["columns"]:
        cells = rows[column["name"]]
        filled = cells[cells != ""]
        assert column.get("empty") or len(filled) == len(cells), column
        assert filled.isin(column.get("allowed", filled)).all(), column
        if "kind" in column:
            assert filled.str.fullmatch(KINDS[column["kind"]]).all(), column
            low, high = column.get("low", -math.inf), column.get("high", math.inf)
            assert filled.astype(float).between(low, high).all(), column
    assert f"{path.stem}.csv" in (DATA / "README.md").read_text(encoding="utf-8")


def test_the_released_counts_agree_with_the_released_file():
    source = SHARED.parent / "data" / "vlstereoset" / "VLStereoSet.csv"
    if not source.exists():
        pytest.skip("the released VLStereoSet file is kept outside the repository")
    rows = pandas.read_csv(source, encoding="utf-8-sig")
    found = rows.groupby(["bias_type", "label"]).size().unstack()
    carried = _tables.released_counts().set_index("category")
    assert found.loc[carried.index].values.tolist() == carried.values.tolist()


ROWS = {
    "ross2021": {1: 17, 3: 156, 4: 156, 5: 104, 6: 64, 7: 64},
    "srinivasan2021": {1: 3, 2: 6, 3: 4},
    "hamidieh2023": {1: 7, 2: 408, 3: 10, 4: 14, 5: 20, 6: 20, 7: 30, 8: 15, 9: 30, 10: 40, 12: 40}
    | dict.fromkeys([11, *range(13, 19)], 70),
    "zhou2022": {1: 5, 2: 6, 3: 27, 4: 72},
}


def test_every_table_has_its_rows():
    found = published.tables().groupby("paper")
    assert {paper: dict(zip(t["number"], t["rows"], strict=True)) for paper, t in found} == ROWS


def test_a_printed_effect_size_is_the_number_it_prints():
    for number in (3, 4, 5, 6):
        for row in published.table("ross2021", number).itertuples():
            if row.printed == "–":
                assert math.isnan(row.effect_size)
            else:
                assert float(row.printed) == row.effect_size


@pytest.mark.parametrize(("paper", "number"), [("ross2012", 3), ("ross2021", 2)])
def test_an_unknown_paper_or_table_is_refused(paper, number):
    with pytest.raises(UnknownNameError):
        published.table(paper, number)


# ---- the errata


def test_the_errata_are_complete_and_every_standing_is_known():
    frame = published.errata()
    ids = [f"A{n}" for n in range(1, 13)] + [f"B{n}" for n in range(1, 12)]
    ids += [f"C{n}" for n in range(1, 7)] + [f"D{n}" for n in range(1, 4)]
    assert frame["id"].tolist() == ids
    assert set(frame["standing"]) == set(published.STANDINGS)
    assert frame.loc[frame["id"] == "C1", "standing"].item() == "confirmed by the released file"
    assert frame.loc[frame["id"] == "A3", "standing"].item() == "confirmed by the released code"


def test_an_erratum_names_only_tables_that_are_printed():
    known = {(row.paper, row.number) for row in published.tables().itertuples()}
    known |= {("ross2021", 2)}
    for row in published.errata().itertuples():
        assert all((row.paper, number) in known for number in row.tables)
