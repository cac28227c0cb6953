"""The carried tables, their checks, and every number that the errata rest on."""

import io
import itertools
import math
import re
from pathlib import Path

import pandas
import pytest
from support import table_schemas
from support.letters import smallest_letters

from biaslib import published, report
from biaslib.published import _tables, counts
from biaslib.published.reexamination import hamidieh2023, ross2021, srinivasan2021, zhou2022
from biaslib.report import published as plots
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


def test_every_data_file_has_a_schema_and_is_described():
    stems = {path.stem for path in DATA.glob("*.csv")}
    assert stems == set(table_schemas.SCHEMAS)
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert all(f"{stem}.csv" in readme for stem in stems)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.csv")), ids=lambda path: path.stem)
def test_every_data_file_is_as_its_schema_says(path):
    checked = table_schemas.read_table(path)
    pandas.testing.assert_frame_equal(_tables._file(path.stem), checked, check_exact=True)


def test_the_released_counts_agree_with_the_released_file():
    source = SHARED.parent / "data" / "vlstereoset" / "VLStereoSet.csv"
    if not source.exists():
        pytest.skip("the released VLStereoSet file is kept outside the repository")
    rows = pandas.read_csv(source, encoding="utf-8-sig")
    found = rows.groupby(["bias_type", "label"]).size().unstack()
    carried = _tables.released_counts().set_index("category")
    assert found.loc[carried.index].values.tolist() == carried.values.tolist()


@pytest.mark.parametrize(
    ("paper", "number", "rows"),
    [
        *(("ross2021", n, r) for n, r in {1: 17, 3: 156, 4: 156, 5: 104, 6: 64, 7: 64}.items()),
        *(("srinivasan2021", n, r) for n, r in {1: 3, 2: 6, 3: 4}.items()),
        *(("hamidieh2023", n, r) for n, r in {1: 7, 2: 408}.items()),
        *(
            ("hamidieh2023", n, r)
            for n, r in zip(
                range(3, 19),
                (10, 14, 20, 20, 30, 15, 30, 40, 70, 40, 70, 70, 70, 70, 70, 70),
                strict=True,
            )
        ),
        *(("zhou2022", n, r) for n, r in {1: 5, 2: 6, 3: 27, 4: 72}.items()),
    ],
)
def test_a_table_has_its_rows(paper, number, rows):
    assert len(published.table(paper, number)) == rows


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


def test_a_table_is_the_callers_own():
    mine = published.table("zhou2022", 1)
    mine.loc[0, "images"] = 0
    assert published.table("zhou2022", 1)["images"].tolist()[0] == 486


def test_the_checksum_is_twelve_digits():
    assert len(published.data_checksum()) == 12
    int(published.data_checksum(), 16)


# ---- errors that say what to do


@pytest.mark.parametrize(
    ("line", "column", "text", "complaint"),
    [
        (2, "effect_size", "0,57", "'0,57' is not a decimal number"),
        (3, "effect_size", "2.5", "2.5 is out of range; use a value from -2 to 2"),
        (4, "effect_size", "nan", "nan is out of range"),
        (5, "model", "UNITER", "'UNITER' is not known; use one of VisualBERT, ViLBERT"),
        (6, "experiment", "", "the cell is empty; write a whole number"),
        (7, "experiment", "one", "'one' is not a whole number; write one such as 14"),
    ],
)
def test_a_bad_cell_is_one_clear_error(tmp_path, line, column, text, complaint):
    import csv

    with open(DATA / "ross2021_effect_sizes.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    rows[line - 1][rows[0].index(column)] = text
    path = tmp_path / "ross2021_effect_sizes.csv"
    with open(path, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)
    with pytest.raises(published.TableError) as caught:
        table_schemas.read_table(path)
    expected = f"ross2021_effect_sizes.csv, row {line}, column '{column}': {complaint}"
    assert str(caught.value).startswith(expected)


def test_a_missing_column_is_named_with_the_header_wanted(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("category\ngender\n", encoding="utf-8")
    with pytest.raises(published.TableError, match=r"mine.csv, row 1 .*'images'.*must hold"):
        table_schemas.read_table(path, schema="zhou2022_images")


ZHOU = "category,images\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "row 1 (the header): the file is empty; write the header category,images and"),
        ("\n\n", "row 1 (the header): the file is empty; write the header category,images and"),
        (ZHOU, "row 2: there is no row under the header; write at least one"),
        (ZHOU + "gender\n", "row 2: the row has 1 cell and the header 2; add those that are miss"),
        (
            ZHOU + "race,7\ngender,3,4\n",
            "row 3: the row has 3 cells and the header 2; take out those too many, or put a cell",
        ),
        (
            ZHOU + "gender,3\n\nrace,7\ngender,3\n",
            "row 5: category 'gender' is in row 2 already; take out one of the two rows, or",
        ),
        (
            "category,images,category\ngender,3,race\n",
            "row 1 (the header), column 'category': the column is there 2 times; keep one of them",
        ),
        (ZHOU + "\ngender,x\n", "row 3, column 'images': 'x' is not a whole number"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, text, complaint):
    path = tmp_path / "zhou2022_images.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(published.TableError) as caught:
        table_schemas.read_table(path)
    assert str(caught.value).startswith(f"zhou2022_images.csv, {complaint}")


def test_a_good_file_may_have_blank_rows_other_columns_quotes_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "zhou2022_images.csv"
    path.write_text('\ufeffnote,images,category\n\n"a, b",3,gender\n', encoding="utf-8")
    found = table_schemas.read_table(path)
    assert found.to_dict("list") == {"category": ["gender"], "images": [3]}


def test_a_key_of_several_columns_is_named_in_full(tmp_path):
    path = tmp_path / "twice.csv"
    rows = "source,test,label,images\ngoogle,C1,a,4\ncoco,C1,a,4\ngoogle,C1,b,8\n"
    path.write_text(rows, encoding="utf-8")
    with pytest.raises(
        published.TableError, match=r"row 4: source 'google', test 'C1' is in row 2"
    ):
        table_schemas.read_table(path, schema="ross2021_images")


def test_every_schema_has_a_key_of_its_own_columns():
    assert set(table_schemas.KEYS) == set(table_schemas.SCHEMAS)
    for name, columns in table_schemas.SCHEMAS.items():
        assert set(table_schemas.KEYS[name]) <= {column.name for column in columns}


def test_the_number_of_a_table_may_be_text():
    import numpy as np

    wanted = published.table("ross2021", 3)
    for number in ("3", " 3", np.int64(3)):
        assert published.table("ross2021", number).equals(wanted)


@pytest.mark.parametrize("number", ["three", "Table 3", "", "3.0", 3.5, None])
def test_the_number_of_a_table_must_be_whole(number):
    with pytest.raises(ValueError, match="is not the number of a table: pass a whole number"):
        published.table("ross2021", number)


def test_an_unknown_schema_paper_table_or_erratum_suggests_the_known(tmp_path):
    with pytest.raises(UnknownNameError, match="zhou2022_images"):
        table_schemas.read_table(tmp_path / "zhou2022_image.csv")
    with pytest.raises(UnknownNameError, match="Did you mean 'ross2021'"):
        published.table("ross2012", 3)
    with pytest.raises(UnknownNameError, match=r"unknown table of ross2021 '2'.*1, 3, 4, 5, 6, 7"):
        published.table("ross2021", 2)
    with pytest.raises(UnknownNameError, match=r"unknown table of ross2021 '2'"):
        published.table("ross2021", "2")
    with pytest.raises(UnknownNameError, match="Did you mean"):
        published.errata("zhou2021")
    with pytest.raises(UnknownNameError, match="Did you mean"):
        published.reexamination.computed("A13")


# ---- Ross et al. 2021


def conflicts(order):
    flags = ["above_positive", "below_large", "needs_negligible"]
    frame = ross2021.column_order_conflicts(order)
    assert len(frame) == 60
    return frame[flags].sum().tolist()


def test_a1_the_inferred_order_fits_best_by_far():
    assert conflicts(["VisualBERT", "ViLBERT", "LXMERT", "VL-BERT"]) == [11, 11, 1]
    assert sum(conflicts(["VisualBERT", "VL-BERT", "ViLBERT", "LXMERT"])) == 2
    orders = ross2021.column_orders()
    assert len(orders) == 24
    assert orders["order"][0] == "VisualBERT, VL-BERT, ViLBERT, LXMERT"
    assert orders["conflicts"].tolist()[:2] == [2, 14]


def test_a1_the_inferred_order_is_the_best_or_ties_in_every_block():
    blocks = ross2021.column_orders_by_block()
    assert len(blocks) == 6
    assert (blocks["inferred"] == blocks["least"]).all()


def test_a1_what_is_left_over():
    frame = ross2021.column_order_conflicts(ross2021.inferred_order())
    left = frame[frame["conflicts"] > 0]
    where = left[["experiment", "kind", "level", "model", "significant"]].values.tolist()
    assert where == [[1, "race", "W", "VL-BERT", 4], [1, "race", "C", "VL-BERT", 7]]
    sizes = left["effect_sizes"].tolist()
    assert sum(each >= 0.87 for each in sizes[0]) == 5
    assert min(sizes[1]) == -0.13


def test_a1_experiment_3_under_both_readings():
    totals = ross2021.experiment_3_totals()
    inferred = totals.set_index("inferred")["significant"]
    assert inferred[["ViLBERT", "LXMERT", "VL-BERT"]].tolist() == [16, 12, 7]
    assert totals.set_index("table4")["significant"]["ViLBERT"] == 7
    vlbert = totals.set_index("inferred").loc["VL-BERT"]
    assert [vlbert["masked_text"], vlbert["masked_image"]] == [1, 6]


def test_a1_an_order_must_be_an_order():
    with pytest.raises(ValueError, match="is not an order of"):
        ross2021.column_order_conflicts(["ViLBERT"] * 4)


def test_a2_one_test_is_the_same_in_both_experiments():
    assert ross2021.identical_tests() == ["C8"]
    alike = ross2021.identical_cells()
    assert " ".join(alike.query("test == 'C8'")["printed"]) == (
        "0.77 0.59 0.43 -0.29 0.62 0.26 – 0.19 0.30 -0.32 0.13 0.26"
    )
    others = alike.query("test != 'C8'")[["test", "level", "model", "printed"]]
    assert others.values.tolist() == [
        ["DB-competent-race", "C", "LXMERT", "1.46"],
        ["DB-likeable-race", "C", "LXMERT", "1.40"],
    ]


def test_a3_masked_images_follow_experiment_1():
    rows = ross2021.masking_distances().set_index("model")
    assert rows["experiment_1"].round(3).to_dict() == {
        "ViLBERT": 0.044,
        "LXMERT": 0.029,
        "VL-BERT": 0.140,
    }
    assert rows["experiment_2"].to_dict() == pytest.approx(
        {"ViLBERT": 0.390, "LXMERT": 0.5325, "VL-BERT": 0.406}, abs=0.0005
    )


def test_a4_totals_and_mean_effects():
    totals = ross2021.significant_totals().query("experiment < 3")
    assert totals["significant"].tolist() == [32, 51, 30, 54]
    assert published.reexamination.computed("A4")["significant, Experiment 1"] == 83
    assert published.reexamination.computed("A4")["significant, Experiment 2"] == 84
    assert [round(ross2021.mean_absolute_effect(n)[0], 3) for n in (3, 4)] == [0.634, 0.780]
    assert [ross2021.mean_absolute_effect(n)[1] for n in (3, 4)] == [155, 155]


def test_a5_image_totals_and_no_subset_that_explains_the_excess():
    assert list(ross2021.image_totals().values()) == [10_584, 483, 374, 11_441]
    assert ross2021.image_excess() == {
        "google": 356,
        "all": 1213,
        "subsets_google": 0,
        "subsets_all": 0,
    }


def test_a5_subsets_are_counted_as_by_brute_force():
    values = [1, 2, 2, 5]
    for target in range(1, 11):
        chosen = [s for k in range(1, 5) for s in itertools.combinations(values, k)]
        expected = sum(sum(each) == target for each in chosen)
        assert ross2021.subsets_with_sum(values, target) == expected


def test_a6_counts_that_four_pairs_cannot_share():
    rows = ross2021.not_divisible_by_four()
    assert rows["images"].tolist() == [718, 522, 254, 229, 203, 171]
    assert rows[rows["odd"]]["images"].tolist() == [229, 203, 171]


def test_a7_values_at_the_bound():
    rows = ross2021.near_bound()
    assert len(rows) == 10
    assert rows.query("model == 'ViLBERT'")[["table", "effect_size"]].values.tolist() == [[6, 1.96]]
    assert ross2021.repeated_masked_values()["effect_size"].tolist() == [-1.99, -1.99, -0.17]


def test_a8_dashes():
    rows = ross2021.dashes()
    lxmert = rows.query("model == 'LXMERT'")
    assert lxmert[["table", "level", "tests"]].values.tolist() == [[3, "S", "C8"], [4, "S", "C8"]]
    masked = published.table("ross2021", 5).query("test == 'C8' and model == 'LXMERT'")
    assert masked["effect_size"].tolist() == [0.11, 0.04]
    visualbert = published.table("ross2021", 5).query("model == 'VisualBERT' and level == 'T'")
    assert visualbert["effect_size"].notna().sum() == 13
    assert rows.query("table == 6 and level == 'T'")["model"].tolist() == ["VisualBERT"]


def test_a11_in_and_out_of_domain():
    rows = ross2021.domain_strength().set_index("source")
    assert rows["mean_absolute_effect"].round(3).to_dict() == {
        "google": 0.751,
        "pretraining": 0.665,
    }
    assert rows["cells"].tolist() == [48, 48]


# ---- Hamidieh et al. 2023


def test_b1_b2_the_size_of_the_taxonomy():
    sizes = hamidieh2023.taxonomy_counts().set_index("bias_type")["entries"].to_dict()
    assert sizes == {
        "Appearance": 25,
        "Behavioral": 77,
        "Education and wealth": 23,
        "Criminal justice": 28,
        "Healthcare": 16,
        "Portrayal in Media": 24,
        "Political": 24,
        "Religion": 25,
        "Occupation": 166,
    }
    size = hamidieh2023.taxonomy_size()
    assert (size["entries"], size["distinct"], size["types"]) == (408, 403, 9)
    assert size["entries"] - 374 == 34
    assert size["distinct"] - 374 == 29
    assert size["subsets_entries"] == size["subsets_distinct"] == 0
    twice = {"aggressive", "lazy", "savage", "primitive", "radical"}
    assert set(hamidieh2023.words_in_two_types()) == twice


def test_b1_the_last_words_of_healthcare_are_out_of_order():
    assert len(hamidieh2023.alphabetical_breaks("Healthcare")) == 3
    words = published.table("hamidieh2023", 2).query("bias_type == 'Healthcare'")["word"].tolist()
    rest = [word.lower() for word in words[:-4]]
    assert rest == sorted(rest)


def test_b3_two_conflicts_and_the_only_order_breaks():
    assert len(hamidieh2023.repeated_cells()) == 112
    rows = hamidieh2023.value_conflicts()
    assert rows[["word", "group", "casc_small", "casc_full"]].values.tolist() == [
        ["militant", "Middle Eastern", 0.7, 0.17],
        ["murderer", "Middle Eastern", 0.4, 0.16],
    ]
    breaks = hamidieh2023.order_breaks()
    assert breaks[["table", "word", "next_word", "next_casc"]].values.tolist() == [
        [14, "militant", "separatist", 0.68],
        [18, "murderer", "thief", 0.37],
    ]
    assert hamidieh2023.ranked_lists() == 74


def test_b4_a_table_printed_twice():
    rows = hamidieh2023.repeated_tables().set_index("small")
    assert rows.loc[10, ["alike", "repeated", "cells"]].tolist() == [40, 40, 40]
    assert rows.loc[7, ["alike", "repeated", "cells"]].tolist() == [29, 30, 30]


def test_b5_lists_that_skip_words():
    eight = hamidieh2023.list_differences(8).set_index("group")["skips"]
    assert len(eight["White"].split(", ")) == 2
    assert eight["Middle Eastern"] == "thug"
    assert eight["Black"] == ""
    nine = hamidieh2023.list_differences(9).set_index("group")
    assert nine["skips"].tolist() == ["migrant"] * 3
    assert nine["adds"].tolist() == ["rich -0.09", "unskilled 0.29", "disadvantaged 0.07"]
    assert (hamidieh2023.list_differences(7)["skips"] == "").all()
    assert hamidieh2023.swapped_ties() == [("Southeast Asian", "disadvantaged", "undocumented")]


def test_b6_words_the_taxonomy_does_not_list():
    outside = hamidieh2023.words_outside_taxonomy()
    assert {n: len(words) for n, words in outside.items()} == {5: 19, 13: 1, 17: 1, 18: 3}
    assert outside[13] == ["backwards"]
    assert outside[17] == ["migrant"]
    five = set(published.table("hamidieh2023", 5)["word"])
    assert five - set(outside[5]) == {"caring"}


def test_b7_one_word_and_group_with_two_values():
    rows = hamidieh2023.category_conflicts()
    found = {(r.word, r.group): (r.casc_first, r.casc_second) for r in rows.itertuples()}
    assert found == {
        ("radical", "White"): (0.31, 0.44),
        ("radical", "Middle Eastern"): (0.31, 0.39),
        ("radical", "Latino/Hispanic"): (-0.05, 0.15),
        ("liberal", "Middle Eastern"): (0.32, 0.39),
        ("liberal", "Latino/Hispanic"): (-0.03, 0.14),
        ("liberal", "East Asian"): (0.03, -0.08),
    }
    black = hamidieh2023.absent_though_above("radical", "Black", 14)
    assert black == {"elsewhere": -0.30, "last_of_list": -0.35}
    with pytest.raises(ValueError, match="is listed"):
        hamidieh2023.absent_though_above("fascist", "Black", 14)


def test_b10_occupations():
    assert hamidieh2023.gendered_occupations() == ["policeman", "waiter"]
    assert hamidieh2023.pronoun_order_breaks() == ["porter"]
    rows = published.table("hamidieh2023", 1).set_index("word")["male"]
    assert (rows["porter"], rows["farmer"]) == (67.9, 67.4)


def test_b11_coverage():
    rows = hamidieh2023.coverage().set_index("bias_type")
    assert rows.loc["Healthcare"].tolist() == ["", ""]
    assert (rows["gender"] == "").sum() == 6
    assert hamidieh2023.word_by_group("uneducated", 17) == {
        "Indian": 0.34,
        "Southeast Asian": 0.32,
        "East Asian": 0.30,
    }
    unmotivated = hamidieh2023.word_by_group("unmotivated", 17)
    assert (unmotivated["White"], unmotivated["East Asian"]) == (0.13, 0.33)


# ---- Zhou et al. 2022


def test_c1_only_one_way_of_giving_the_sizes_fits():
    rows = zhou2022.category_assignments()
    assert len(rows) == 24
    best = rows.iloc[0]
    assert best[["gender", "profession", "race", "religion"]].tolist() == [206, 322, 486, 14]
    assert (best["fit"], best["cells"]) == (40, 40)
    assert rows["fit"][1] < 40
    among_three = rows.query("religion == 14")["fit_without_religion"].tolist()
    assert sorted(among_three, reverse=True) == [30, 12, 11, 10, 2, 1]


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
    weighted = zhou2022.weighted_overall("ALBEF", zhou2022.printed_sizes())
    assert weighted == {"vlrs": 86.58, "vlbs": 34.15}


def test_c2_vilt_was_scored_on_fewer_images():
    assert [list(each.values()) for each in zhou2022.smaller_sizes("ViLT")] == [[204, 320, 480, 14]]
    assert sum(zhou2022.sizes_of("ViLT").values()) == 1018
    assert published.reexamination.computed("C2") == {
        "vlrs, count": 885,
        "vlrs, n": 1018,
        "vlbs, count": 212,
        "vlbs, n": 509,
    }
    assert [round(100 * 885 / 1018, 2), round(100 * 212 / 509, 2)] == [86.94, 41.65]


def test_c3_ivlas_is_the_harmonic_mean():
    rows = zhou2022.ivlas_check()
    assert (len(rows), int(rows["to_the_digit"].sum())) == (33, 24)
    assert rows["within_rounding"].all()
    off = rows[~rows["to_the_digit"]]
    where = {f"{r.model} {r.category}" for r in off.itertuples()}
    overall = {f"{model} overall" for model in ("ALBEF", "LXMERT", "CLIP", "FLAVA")}
    by_category = {"ALBEF race", "FLAVA gender", "FLAVA race", "LXMERT profession", "LXMERT race"}
    assert where == overall | by_category
    exact = zhou2022.ivlas_from_counts()
    assert len(exact) == 30
    assert (exact["from_counts"] == exact["printed"]).all()


def test_c4_a_second_model_below_random():
    assert zhou2022.below_random() == ["ALBEF", "FLAVA"]


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
    verdicts = zhou2022.paired_verdicts()
    assert (verdicts[["differ", "not shown", "open"]].sum(axis=1) == verdicts["pairs"]).all()
    overall = verdicts.query("category == 'overall'").set_index("metric")
    assert overall["open"].to_dict() == {"vlrs": 2, "vlbs": 4}
    gender = zhou2022.paired_bounds("vlbs", "gender")
    assert gender["n"].unique().tolist() == [103]
    with pytest.raises(UnknownNameError, match="Did you mean"):
        zhou2022.paired_bounds("vlbs", "genders")


def test_ability_and_bias_over_six_models():
    rows = zhou2022.ability_and_bias().set_index("statistic")
    assert rows.loc["Pearson", "n"] == 6
    assert rows.loc["Pearson", "value"] == pytest.approx(0.740, abs=0.001)
    assert rows.loc["Spearman", "value"] == pytest.approx(0.943, abs=0.001)
    assert rows.loc["Pearson", "p_value"] * 720 == pytest.approx(
        round(rows.loc["Pearson", "p_value"] * 720)
    )
    assert rows.loc["Pearson", "lowest"] < rows.loc["Pearson", "value"]


def test_stereotype_shares_are_the_extremes_over_every_split():
    rows = zhou2022.stereotype_share().set_index("model")
    cells = zhou2022.reconstructed_counts().set_index(["model", "category", "metric"])["count"]
    picked, relevant = cells["FLAVA", "religion", "vlbs"], cells["FLAVA", "religion", "vlrs"]
    splits = [inside for inside in range(8) if picked <= inside <= relevant <= inside + 7]
    assert (min(splits), max(splits)) == (max(picked, relevant - 7), min(7, relevant))
    assert (rows["low"] <= rows["high"]).all()
    assert rows.loc["ALBEF"].round(1).tolist() == [32.3, 45.9]


def test_an_axis_of_p_values_has_no_small_raised_figures():
    report.use_style()
    drawn = io.StringIO()
    plots.paired_verdicts().savefig(drawn, format="svg")
    assert smallest_letters(drawn.getvalue()) >= 9


# ---- Srinivasan and Bisk 2021


def test_d2_d3_the_case_study():
    rows = srinivasan2021.entity_against_image()
    assert rows[["right", "wrong"]].values.tolist() == [[0.0018, 0.4944], [0.067, 0.084]]
    assert srinivasan2021.article_slips() == ["wearing a apron"]


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


def test_no_erratum_names_an_author():
    authors = ("ross", "katz", "barbu", "srinivasan", "bisk", "hamidieh", "zhou", "author")
    for row in published.errata().itertuples():
        text = f"{row.title} {row.summary} {row.settle}".lower()
        assert not any(name in text for name in authors)


def test_printed_numbers_differ_from_the_computed_where_the_erratum_says_so():
    frame = published.errata().set_index("id")
    five, one = frame.loc["A5"], frame.loc["B1"]
    assert five["computed"]["images, Google"] - five["printed"]["images"] == 356
    assert one["computed"]["entries"] - one["printed"]["words"] == 34
    assert frame.loc["C1", "printed"] == zhou2022.printed_sizes()
    assert frame.loc["B2", "computed"]["types"] == frame.loc["B2", "printed"]["types"] - 1


def test_what_the_released_code_does_names_commit_file_and_lines():
    table = published.released_differences()
    places = table["where"].str.removeprefix("1622980 ").str.split("; ").explode()
    assert table["where"].str.startswith("1622980 ").all()
    assert places.str.fullmatch(
        r"[\w/]+\.(py|md)(:\d+(-\d+)?(,\d+(-\d+)?)*)|[\w/]+\.yml(:\d+)?"
    ).all()
    assert set(table["model"]) == {"all", "visualbert", "vilbert", "lxmert", "vl-bert"}


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
    ("function", "arguments", "complaint"),
    [
        ("possible_counts", (50, 0), "n is 0; it must be a whole number of at least 1"),
        ("possible_counts", (50, 7.5), "n is 7.5; it must be a whole number of at least 1"),
        ("possible_counts", (150, 7), "percent is 150; it must be a number from 0 to 100"),
        ("possible_counts", (-1, 7), "percent is -1; it must be a number from 0 to 100"),
        ("possible_counts", (math.nan, 7), "percent is nan; it must be a number from 0 to 100"),
        ("possible_counts", ("50", 7), "percent is '50'; it must be a number from 0 to 100"),
        ("possible_counts", (50, 8, -1), "decimals is -1; it must be a whole number of at least 0"),
        ("mcnemar_p", (-1, 4), "first_only is -1; it must be a whole number of at least 0"),
        ("mcnemar_p", (1, 0.5), "second_only is 0.5; it must be a whole number of at least 0"),
        ("independent_p", (1, 2, 0), "n is 0; it must be a whole number of at least 1"),
        ("independent_p", (1, 9, 4), "b is 9 of 4; it must lie between 0 and 4"),
        ("paired_difference_bounds", (5, 2, 4), "a is 5 of 4; it must lie between 0 and 4"),
        ("paired_difference_bounds", (2, -1, 4), "b is -1; it must be a whole number"),
        ("paired_difference_bounds", (0, 0, 0), "n is 0; it must be a whole number of at least 1"),
        ("paired_difference_bounds", ((1, 2), 2, 4), "2, 1 and 1 strata in a, b and n"),
        ("paired_difference_bounds", ((), (), ()), "0, 0 and 0 strata in a, b and n"),
    ],
)
def test_counts_that_cannot_be_are_refused_by_name(function, arguments, complaint):
    with pytest.raises(ValueError, match="^" + re.escape(complaint)):
        getattr(counts, function)(*arguments)


def test_a_verdict_needs_a_level_between_0_and_1():
    with pytest.raises(ValueError, match="level is 5; it must be a number between 0 and 1"):
        counts.paired_difference_bounds(8, 5, 14).verdict(level=5)


def test_whole_numbers_may_be_numpys_or_decimal():
    import numpy as np

    assert counts.mcnemar_p(np.int64(7), 14.0) == counts.mcnemar_p(7, 14)


def test_the_test_for_independent_samples_is_the_chi_squared_test():
    stats = pytest.importorskip("scipy.stats")
    for a, b, n in [(166, 148, 514), (3, 9, 12)]:
        rows = [[a, n - a], [b, n - b]]
        expected = stats.chi2_contingency(rows, correction=False).pvalue
        assert counts.independent_p(a, b, n) == pytest.approx(expected)
    assert counts.independent_p(0, 0, 5) == 1.0


def test_a_verdict_is_open_when_the_overlap_decides():
    assert counts.paired_difference_bounds(60, 50, 100).verdict() == "open"
    assert counts.paired_difference_bounds(90, 10, 100).verdict().startswith("differ")
    assert counts.paired_difference_bounds(50, 49, 100).verdict().startswith("not shown")


def test_ability_and_bias_are_correlated_over_all_orders_of_the_models():
    stats = pytest.importorskip("scipy.stats")
    wide = published.table("zhou2022", 3).pivot(index="model", columns="metric", values="value")
    x, y = (wide.drop(index=["IDM", "RAM", "BIM"])[name].tolist() for name in ("vlrs", "vlbs"))
    rows = zhou2022.ability_and_bias().set_index("statistic")
    for name, correlation in (("Pearson", stats.pearsonr), ("Spearman", stats.spearmanr)):
        values = [abs(correlation(x, order).statistic) for order in itertools.permutations(y)]
        observed = correlation(x, y).statistic
        expected = sum(each >= abs(observed) - 1e-9 for each in values) / 720
        assert rows.loc[name, ["value", "p_value"]].tolist() == pytest.approx([observed, expected])


def test_published_tables_need_neither_torch_nor_a_plotting_library():
    import subprocess
    import sys

    code = (
        "import sys, biaslib.published as p; p.errata();"
        "print([m for m in ('torch', 'matplotlib', 'seaborn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
