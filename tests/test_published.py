"""The carried tables, their errata, and the whole counts behind their percentages."""

import itertools
import math
from pathlib import Path

import pandas
import pytest

from biaslib import published
from biaslib.published import _tables, counts, zhou2022
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


def test_the_overview_lists_every_table_once():
    overview = published.tables()
    assert len(overview) == 31
    assert not overview.duplicated(["paper", "number"]).any()
    for row in overview.itertuples():
        frame = published.table(row.paper, row.number)
        assert len(frame) == row.rows
        assert ", ".join(frame.columns) == row.columns
        assert (DATA / row.file).exists()


def test_a_printed_effect_size_is_the_number_it_prints():
    for number in (3, 4, 5, 6):
        for row in published.table("ross2021", number).itertuples():
            if row.printed == "–":
                assert math.isnan(row.effect_size)
            else:
                assert float(row.printed) == row.effect_size


def test_an_unknown_paper_table_or_erratum_suggests_the_known():
    with pytest.raises(UnknownNameError, match="Did you mean 'ross2021'"):
        published.table("ross2012", 3)
    with pytest.raises(UnknownNameError, match=r"unknown table of ross2021 '2'.*1, 3, 4, 5, 6, 7"):
        published.table("ross2021", "2")
    with pytest.raises(UnknownNameError, match="Did you mean"):
        published.errata("zhou2021")


# ---- counts behind the percentages of Zhou et al. 2022


def test_c1_as_printed_most_cells_are_impossible():
    cells = zhou2022.fitting_cells(zhou2022.printed_sizes())
    assert (int((~cells["fits"]).sum()), len(cells)) == (34, 48)
    assert sum(zhou2022.printed_sizes().values()) == 1028


def test_c1_the_released_file_gives_the_same_sizes():
    assert list(zhou2022.released_sizes().values()) == [206, 322, 486, 14]
    albef = zhou2022.reconstructed_counts().query("model == 'ALBEF'")
    assert albef.query("metric == 'vlrs'")["count"].tolist() == [184, 273, 408, 11]
    overall = zhou2022.overall_counts()
    assert (overall["percent"] == overall["printed"]).all()
    by_model = overall.set_index(["model", "metric"])
    assert by_model.loc[("ALBEF", "vlrs"), ["count", "n"]].tolist() == [876, 1028]
    assert by_model.loc[("ALBEF", "vlbs"), ["count", "n"]].tolist() == [166, 514]


def test_c2_vilt_was_scored_on_fewer_images():
    assert [list(each.values()) for each in zhou2022.smaller_sizes("ViLT")] == [[204, 320, 480, 14]]
    assert sum(zhou2022.sizes_of("ViLT").values()) == 1018
    assert [round(100 * 885 / 1018, 2), round(100 * 212 / 509, 2)] == [86.94, 41.65]


def test_c5_gender_is_not_the_highest_for_every_model():
    rows = zhou2022.category_order().set_index("model")
    lxmert = rows.loc["LXMERT"]
    assert lxmert["gender"] < lxmert["profession"] < lxmert["religion"]
    assert (rows.loc["CLIP", "gender_lead"], rows.loc["FLAVA", "gender_lead"]) == (0.09, 0.79)
    assert zhou2022.denominator("vlbs", zhou2022.released_sizes()["religion"]) == 7


def test_intervals_cover_the_printed_percentages():
    rows = zhou2022.score_intervals()
    assert len(rows) == 60
    assert (rows["low"] < rows["percent"]).all()
    assert (rows["percent"] < rows["high"]).all()
    religion = rows.query("category == 'religion' and metric == 'vlbs'")
    assert religion["n"].unique().tolist() == [7]


def test_paired_bounds_of_the_models_that_share_their_images():
    rows = zhou2022.paired_bounds("vlrs")
    assert len(rows) == 10
    assert "ViLT" not in set(rows["first"]) | set(rows["second"])
    assert (rows["p_low"] <= rows["p_high"]).all()
    assert set(rows.query("first == 'FLAVA' or second == 'FLAVA'")["verdict"]) == {
        "differ, whatever the overlap"
    }
    gender = zhou2022.paired_bounds("vlbs", "gender")
    assert gender["n"].unique().tolist() == [103]
    with pytest.raises(UnknownNameError, match="Did you mean"):
        zhou2022.paired_bounds("vlbs", "genders")


# ---- the errata


def test_the_errata_are_complete_and_every_standing_is_known():
    frame = published.errata()
    ids = [f"A{n}" for n in range(1, 13)] + [f"B{n}" for n in range(1, 12)]
    ids += [f"C{n}" for n in range(1, 7)] + [f"D{n}" for n in range(1, 4)]
    assert frame["id"].tolist() == ids
    assert set(frame["standing"]) == set(published.STANDINGS)
    assert frame.loc[frame["id"] == "C1", "standing"].item() == "confirmed by the released file"
    assert frame.loc[frame["id"] == "A3", "standing"].item() == "confirmed by the released code"
    assert (frame["summary"].str.len() > 40).all()
    assert len(published.errata("zhou2022")) == 6


def test_an_erratum_names_only_tables_that_are_printed():
    known = {(row.paper, row.number) for row in published.tables().itertuples()}
    known |= {("ross2021", 2)}
    for row in published.errata().itertuples():
        assert all((row.paper, number) in known for number in row.tables)


# ---- counts


def test_possible_counts_are_the_counts_that_print_so():
    for n in (7, 14, 103, 206):
        for k in range(n + 1):
            assert k in counts.possible_counts(round(100 * k / n, 2), n)
    assert counts.possible_counts(50.0, 3) == []


def overlaps(a, b, n):
    return range(max(0, a + b - n), min(a, b) + 1)


@pytest.mark.parametrize("n", range(1, 13))
def test_paired_bounds_are_the_extremes_over_every_overlap(n):
    for a, b in itertools.product(range(n + 1), repeat=2):
        every = [counts.mcnemar_p(a - both, b - both) for both in overlaps(a, b, n)]
        bounds = counts.paired_difference_bounds(a, b, n)
        assert (bounds.p_low, bounds.p_high) == (min(every), max(every))
        assert bounds.difference == pytest.approx((a - b) / n)


def test_paired_bounds_with_strata_are_the_extremes_over_every_overlap():
    a, b, n = (3, 1), (1, 4), (5, 6)
    every = [
        counts.mcnemar_p(sum(a) - sum(both), sum(b) - sum(both))
        for both in itertools.product(*(overlaps(*each) for each in zip(a, b, n, strict=True)))
    ]
    bounds = counts.paired_difference_bounds(a, b, n)
    assert (bounds.p_low, bounds.p_high) == (min(every), max(every))
    pooled = counts.paired_difference_bounds(sum(a), sum(b), sum(n))
    assert pooled.p_low <= bounds.p_low <= bounds.p_high <= pooled.p_high


def test_mcnemar_agrees_with_the_binomial_test():
    stats = pytest.importorskip("scipy.stats")
    for first, second in itertools.product(range(8), repeat=2):
        if first + second:
            expected = stats.binomtest(first, first + second).pvalue
            assert counts.mcnemar_p(first, second) == pytest.approx(expected)
    assert counts.mcnemar_p(0, 0) == 1.0


@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        (counts.possible_counts, (50, 7.5), "n is 7.5"),
        (counts.possible_counts, (150, 7), "percent is 150"),
        (counts.mcnemar_p, (1, 0.5), "second_only is 0.5"),
        (counts.paired_difference_bounds, (5, 2, 4), "a is 5"),
    ],
)
def test_counts_that_cannot_be_are_refused_by_name(function, arguments, named):
    with pytest.raises(ValueError, match=named):
        function(*arguments)


def test_a_verdict_is_open_when_the_overlap_decides():
    assert counts.paired_difference_bounds(60, 50, 100).verdict() == "open"
    assert counts.paired_difference_bounds(90, 10, 100).verdict().startswith("differ")
    assert counts.paired_difference_bounds(50, 49, 100).verdict().startswith("not shown")
