"""The ledger: contracts, verdicts, and what the tables of a run are."""

import json
import re
from pathlib import Path

import numpy as np
import pandas
import pytest

from biaslib import ledger, published
from biaslib.ledger._contracts import DATA
from biaslib.ledger._verdicts import judged_numbers
from biaslib.report import ledger as plots
from plantedworld.report import ledger as planted

PAPERS = tuple(published.PAPERS)
TEXTS = Path(__file__).parents[2] / "shared" / "papers"


def data(paper):
    return json.loads((DATA / f"{paper}.json").read_text(encoding="utf-8"))


def text_of(paper):
    """The paper's text; of Ross et al. with that of an earlier version, which two claims quote."""
    number = {"ross2021": "00[01]", "srinivasan2021": "002", "hamidieh2023": "003"}
    found = sorted(TEXTS.glob(f"{number.get(paper, '004')}_*.txt"))
    if not found:
        pytest.skip("the papers' texts are not at hand")
    return "\n".join(path.read_text(encoding="utf-8") for path in found)


# What is in the ledger


def test_every_printed_number_is_in_the_ledger_exactly_once():
    """Counted from the tables' files, column by column, without the ledger's own templates."""
    counted = {
        "ross2021": [("images", "images"), ("effect_sizes", "effect_size")],
        "hamidieh2023": [("casc", "casc")],
        "zhou2022": [("images", "images"), ("scores", "value")],
        "srinivasan2021": [("case_study", "probability")],
    }
    counted["ross2021"].append(("significant_counts", "significant"))
    counted["hamidieh2023"] += [("laion_pronouns", c) for c in ("male", "female", "images")]
    folder = Path(published.__file__).parent / "data"
    for paper, columns in counted.items():
        numbers = [
            pandas.read_csv(folder / f"{paper}_{file}.csv")[column].dropna()
            for file, column in columns
        ]
        table = ledger.contracts(paper)
        ours = table[table["kind"].isin(["number", "count"])]
        assert ours["id"].is_unique
        expected = sorted(float(each) for part in numbers for each in part)
        assert sorted(ours["value"]) == expected


def test_every_ranked_list_and_every_open_question_is_there_once():
    table = ledger.contracts()
    lists = pandas.read_csv(Path(published.__file__).parent / "data" / "hamidieh2023_casc.csv")
    n = lists.groupby(["table", "group"]).ngroups
    assert (table["kind"] == "list").sum() == n == 74
    questions = table[table["kind"] == "open question"]
    assert sorted(questions["erratum"]) == sorted(published.errata()["id"])


def test_the_claims_are_those_of_the_shared_list():
    shared = TEXTS.parent / "tables" / "claims.csv"
    if not shared.exists():
        pytest.skip("the list of claims is not at hand")
    ours = ledger.contracts().query("kind == 'claim'")
    assert sorted(ours["id"]) == sorted(pandas.read_csv(shared)["id"])


FIELDS = {"paper", "needs", "questions", "numbers", "claims", "limits"}
OF_A_NUMBER = {
    *("stem", "id", "kind", "column", "tables", "population", "statistic", "needs", "margin"),
    *("reason", "unit", "measure", "chapter"),
}
OF_A_CLAIM = {
    *("id", "place", "headline", "quotation", "claim", "population", "predicate", "thresholds"),
    *("needs", "tables", "erratum", "remark"),
}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_contract_says_all_that_it_is_judged_by(paper):
    found = data(paper)
    assert (found["paper"], set(found)) == (paper, FIELDS)
    for each in found["numbers"]:
        assert OF_A_NUMBER <= set(each) <= OF_A_NUMBER | {"printed", "wanted"}, each
        assert isinstance(each["margin"], (int, float)), each
        assert 0 <= each["margin"] < np.inf, each
        assert each["reason"], each
        assert each["kind"] in ledger.KINDS[:3], each
    for each in found["claims"]:
        assert OF_A_CLAIM <= set(each) <= OF_A_CLAIM | {"check"}, each
        assert all(each[name] for name in ("claim", "predicate", "population", "place")), each
        assert each["thresholds"] in ("the paper's", "ours", "none needed"), each
        assert "rule" in each.get("check", {"rule": ""}), each
    assert all(set(each) == {"place", "quotation", "says"} for each in found["limits"])
    names = [(each["id"], tuple(each["tables"])) for each in found["numbers"]]
    names += [each["id"] for each in found["claims"]]
    assert len(names) == len(set(names))


def quotations(paper):
    found = data(paper)
    return [each["quotation"] for each in found["claims"] + found["limits"]]


def letters(text):
    """A text without white space, hyphens and marks of emphasis."""
    return re.sub(r"[\s\-\u2010\xad*]+", "", text).lower()


@pytest.mark.parametrize("paper", PAPERS)
def test_quotations_are_of_25_words_at_most(paper):
    for each in quotations(paper):
        assert letters(each)
        assert len(each.split()) <= 25, each


@pytest.mark.parametrize("paper", PAPERS)
def test_quotations_are_in_the_papers_text(paper):
    text = letters(text_of(paper))
    assert [each for each in quotations(paper) if letters(each) not in text] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_needs_are_used_and_checks_are_of_claims(paper):
    found = data(paper)
    asked = {need for each in found["numbers"] + found["claims"] for need in each["needs"]}
    assert asked == set(found["needs"])
    claims = {each["id"] for each in found["claims"]}
    assert {name for name in ledger.CHECKS if name.startswith(paper)} <= claims
    errata = set(published.errata(paper)["id"]) | {""}
    assert set(found["questions"]) <= errata
    assert {each["erratum"] for each in found["claims"]} <= errata


def test_the_measures_of_contracts_have_a_verdict_of_the_planted_world():
    asked = set(ledger.contracts()["measure"]) - {""}
    assert asked <= set(planted.measures()["measure"])


@pytest.mark.parametrize(
    ("name", "questions"),
    [
        ("ross2021/table3/C8/lxmert/W", "A2"),
        ("ross2021/table5/C6/vl-bert/T", "A7"),
        ("ross2021/table1/google/C8", "A5, A6"),
        ("ross2021/table3/C6/lxmert/W", ""),
        ("hamidieh2023/table14/middle-eastern/militant", "B3"),
        ("zhou2022/table3/overall/vilt/ivlas", "C2, C3"),
        ("zhou2022/table1/religion", ""),
    ],
)
def test_open_questions_stand_beside_the_numbers_that_they_are_about(name, questions):
    assert ledger.contracts().set_index("id").loc[name, "erratum"] == questions


def test_the_example_of_the_issue_has_its_name():
    one = ledger.contracts("ross2021").set_index("id").loc["ross2021/table3/C6/visualbert/W"]
    printed = published.table("ross2021", 3).query(
        "test == 'C6' and model == 'VisualBERT' and level == 'W'"
    )
    assert one["value"] == printed["effect_size"].item() == 0.57
    assert one["printed"] == "0.57"


# Verdicts on numbers and lists


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.95, 1.05, "met"),
        (0.9, 1.1, "met"),
        (0.89, 1.0, "cannot be said"),
        (0.5, 2.0, "cannot be said"),
        (1.11, 1.2, "not met"),
        (0.2, 0.89, "not met"),
        (np.nan, np.nan, "cannot be said"),
        (1.0, np.nan, "cannot be said"),
    ],
)
def test_the_verdict_on_a_number(low, high, verdict):
    assert list(ledger.judge_number([1.0], [0.1], [low], [high])) == [verdict]


def test_a_list_is_met_by_itself_and_not_by_its_reverse():
    printed = {word: 10.0 - at for at, word in enumerate("abcdefghij")}
    others = {f"word {at}": -1.0 for at in range(10)}
    assert ledger.judge_list(printed, printed | others) == ("met", "10 of 10 words, tau 1.00")
    backwards = dict(sorted(((w, 10.0 - v) for w, v in printed.items()), key=lambda i: -i[1]))
    assert ledger.judge_list(printed, backwards | others)[0] == "not met"
    behind = {f"word {at}": 20.0 for at in range(10)} | printed
    assert ledger.judge_list(printed, behind)[0] == "not met"


def test_a_list_is_not_met_by_leaving_the_other_words_out():
    printed = {word: 10.0 - at for at, word in enumerate("abcdefghij")}
    assert ledger.judge_list(printed, printed)[0] == "cannot be said"


def printed_as_run(paper):
    """The paper's own numbers as those of a run without error."""
    tables = {}
    for stem, rows in ledger.printed(paper).items():
        value = {"casc": "casc", "effect_sizes": "effect_size", "scores": "value"}
        value |= {
            "images": "images",
            "significant_counts": "significant",
            "laion_pronouns": "female",
        }
        column = value.get(stem.partition("_")[2])
        if column:
            tables[stem] = rows.assign(low=rows[column], high=rows[column])
    return tables


@pytest.mark.parametrize("paper", ["ross2021", "hamidieh2023", "zhou2022"])
def test_the_printed_numbers_meet_their_own_contracts(paper):
    found = ledger.verdicts(paper, printed_as_run(paper), pandas.DataFrame())
    found = found[~found["id"].str.contains("table1/.*/(?:men|images)", regex=True)]
    numbers = found[found["kind"].isin(["number", "count"])]
    assert set(numbers["verdict"]) == {"met"}


def test_what_is_of_our_variant_is_never_met_and_an_interval_holds_its_value():
    printed = ledger.contracts("ross2021").set_index("id")["value"]["ross2021/table3/C6/lxmert/W"]
    name = ["ross2021/table3/C6/lxmert/W"]
    run = pandas.DataFrame({"id": name, "value": printed, "low": printed, "high": printed})
    for rows, verdict in (
        (run, "met"),
        (run.assign(variant="released"), "met"),
        (run.assign(variant="paper"), "cannot be said"),
        (run.assign(value=9.0), "cannot be said"),
    ):
        found = judged_numbers("ross2021", rows).set_index("id")
        assert found.loc[name[0], "verdict"] == verdict


def test_a_run_without_all_models_or_levels_meets_no_claim_about_them():
    rows = ledger.printed("ross2021")["ross2021_effect_sizes"]
    scores = pandas.DataFrame({"model": ["lxmert"]})
    for some in (rows[rows["model"] != "VisualBERT"], rows[rows["level"] == "C"]):
        found = ledger.verdicts("ross2021", {"ross2021_effect_sizes": some}, scores)
        claims = found[(found["kind"] == "claim") & (found["verdict"] == "met")]
        # These are about the three models with masks, and about the tests.
        assert set(claims["id"]) <= {f"ross2021/claim/{number}" for number in (8, 39, 44)}


def test_what_is_absent_is_never_met():
    for paper in PAPERS:
        found = ledger.verdicts(paper, {}, pandas.DataFrame())
        assert set(found["verdict"]) <= {"not run"}


@pytest.mark.parametrize("paper", PAPERS)
def test_a_claim_about_a_run_is_answered_as_the_same_claim_about_the_paper(paper):
    """The code is one: the paper's tables, given as a run's, get the answers of the paper."""
    own = ledger.reexamined(paper).set_index("id")["answer"]
    found = ledger.verdicts(paper, ledger.printed(paper), pandas.DataFrame()).set_index("id")
    claims = found[found["kind"] == "claim"]["verdict"]
    expected = {"follows": "met", "in part": "cannot be said", "does not follow": "not met"}
    assert claims.to_dict() == {name: expected.get(own[name], "not run") for name in claims.index}


# The tables of a run


def grounded_scores(**changed):
    tests = published.table("ross2021", 3)["test"].unique()
    row = {"study": "ross2021", "statistic": "effect size", "experiment": 1, "masking": "none"}
    row |= {"model": "lxmert", "level": "word", "images": "with", "domain": "out of domain"}
    row |= {"value": 1.0, "low": 0.8, "high": 1.2, "p_value": 0.01, "p_low": 0.01, "p_high": 0.01}
    return pandas.DataFrame([row | {"test": test} | changed for test in tests])


def test_effect_sizes_stand_where_the_paper_prints_them():
    parts = [
        grounded_scores(),
        grounded_scores(experiment=2, value=0.5),
        grounded_scores(level="sentence", masking="words", value=-0.5),
        grounded_scores(level="word", masking="words", value=0.91),
        grounded_scores(domain="in domain", value=0.25),
        grounded_scores(images="without", value=0.92),
        grounded_scores(experiment=3, statistic="effect size of X", value=0.93),
    ]
    tables = ledger.tables_of_run("ross2021", pandas.concat(parts), {})
    found = ledger.verdicts("ross2021", tables, pandas.concat(parts)).set_index("id")["value"]
    assert found["ross2021/table3/C6/lxmert/W"] == 1.0
    assert found["ross2021/table4/C6/lxmert/W"] == 0.5
    assert found["ross2021/table5/C6/lxmert/T"] == -0.5
    assert found["ross2021/table6/exp1/C6/lxmert/W"] == 0.25
    assert not {0.91, 0.92, 0.93} & set(found)


def test_significant_tests_are_counted_with_what_their_bounds_allow():
    scores = grounded_scores()
    scores.loc[scores["test"] == "C6", ["p_value", "p_low", "p_high"]] = (0.049, 0.04, 0.06)
    scores.loc[scores["test"] == "C8", ["p_value", "p_low", "p_high"]] = (0.5, 0.5, 0.5)
    images = published.table("ross2021", 1).query("source == 'google'")

    def counted(scores, images):
        tables = ledger.tables_of_run("ross2021", scores, {"ross2021_images": images})
        return tables["ross2021_significant_counts"].set_index("kind")

    counts = counted(scores, images)
    gender = ["significant", "low", "high", "total"]
    assert counts.loc["gender", gender].tolist() == [5, 4, 5, 6]
    assert counts["column"].unique().tolist() == [4]
    assert counted(scores[scores["test"] != "C11"], images).index.tolist() == ["race"]
    fewer = images.assign(images=images["images"] - (images["test"] == "C6"))
    counts = counted(scores, fewer)
    assert counts.loc["gender", ["low", "high"]].isna().all()
    assert counts.loc["race", ["low", "high"]].notna().all()


def test_an_interval_shrinks_with_the_share_of_pictures_that_are_there():
    """Closed form: a sample of a share f of a finite population, sqrt(1 - f)."""
    images = published.table("ross2021", 1).query("source == 'google'")
    half = images.assign(images=images["images"] // 2)
    tables = ledger.tables_of_run("ross2021", grounded_scores(), {"ross2021_images": half})
    row = tables["ross2021_effect_sizes"].query("test == 'C3'").iloc[0]
    assert row["high"] - 1.0 == pytest.approx(0.2 * np.sqrt(0.5), abs=1e-12)
    whole = ledger.tables_of_run("ross2021", grounded_scores(), {"ross2021_images": images})
    row = whole["ross2021_effect_sizes"].iloc[0]
    assert (row["low"], row["high"]) == (1.0, 1.0)
    nothing = ledger.tables_of_run("ross2021", grounded_scores(), {})
    assert nothing["ross2021_effect_sizes"].iloc[0]["low"] == 0.8


def test_a_lists_order_is_that_of_the_run():
    words = ["nurse", "maid", "miner"]
    rows = [
        {"statistic": "c_asc", "level": "gender", "bias_type": "Occupation", "group": "Female",
         "test": word, "value": value, "low": value, "high": value, "n": 86_744}
        for word, value in zip(words, (0.1, 0.9, -0.5), strict=True)
    ]  # fmt: skip
    scores = pandas.DataFrame(rows).assign(dataset="FairFace train, crop 0.25", model="open-clip")
    table = ledger.tables_of_run("hamidieh2023", scores, {})["hamidieh2023_casc"]
    table = table[table["table"] == 4].sort_values("rank")
    assert table["word"].tolist() == ["maid", "nurse", "miner"]


@pytest.mark.parametrize(
    ("dataset", "n", "half"),
    [
        ("FairFace train, crop 0.25", 86_744, 0.0),
        ("FairFace train, crop 0.25", 86_744 // 4, 0.1 * np.sqrt(0.75)),
        ("FairFace validation, crop 0.25", 86_744, 0.1),
        ("FairFace train, crop 0.25", 10**9, 0.1),
    ],
)
def test_other_people_are_no_census_of_the_papers(dataset, n, half):
    row = {"statistic": "c_asc", "level": "gender", "bias_type": "Occupation", "group": "Female"}
    row |= {"test": "nurse", "value": 1.0, "low": 0.9, "high": 1.1, "n": n, "dataset": dataset}
    row["model"] = "open-clip"
    table = ledger.tables_of_run("hamidieh2023", pandas.DataFrame([row]), {})["hamidieh2023_casc"]
    assert table["high"].iloc[0] - 1.0 == pytest.approx(half, abs=1e-12)


# Whether contracts can fail


@pytest.mark.parametrize("paper", PAPERS)
def test_wrong_scores_meet_few_numbers_of_a_paper(paper):
    """A tenth of a table at most, or the table is marked; and of each paper's tables together."""
    found = ledger.discrimination(paper)
    shares = found[[name for name in ("another column", "random weights") if name in found]]
    marked = ~(shares > 0.1).any(axis=1)
    assert found["discriminates"].tolist() == marked.tolist()


def test_papers_as_a_whole_are_met_by_a_tenth_of_wrong_scores_at_most():
    shares = plots.paper_shares(plots.discrimination_table()).set_index("paper")
    for name in ("met by another column, %", "met by random weights, %"):
        assert (shares[name].dropna() <= 10).all(), shares[name]


def test_an_exchange_of_columns_is_noticed_by_claims_that_name_a_model():
    found = ledger.claims_after_exchange("zhou2022")
    clip = found[found["exchanged"].str.contains("CLIP") & found["exchanged"].str.contains("FLAVA")]
    assert (clip["still"] < clip["followed"]).all()


# The page


def test_what_a_verdict_rests_on_stands_beside_the_number():
    printed = ledger.contracts("ross2021").set_index("id")["value"]["ross2021/table3/C6/lxmert/W"]
    run = {"id": ["ross2021/table3/C6/lxmert/W"], "value": printed, "low": printed, "high": printed}
    found = judged_numbers("ross2021", pandas.DataFrame(run).assign(variant="paper"))
    rows = ledger.standing({"ross2021": found}, "ross2021")
    page = plots.listing(rows).page()
    assert f"{printed:.2f}]: our variant, not as published" in page
    assert page.count("our variant, not as published") == 1


def test_the_scoreboard_counts_every_contract_once():
    table = plots.standing()
    board = plots.scoreboard(table).set_index("paper").loc["all four"]
    questions = ["questions: open", "questions: settled"]
    kinds = ["numbers", "lists", "claims", *questions]
    assert board[kinds].sum() == len(table) == len(ledger.contracts())
    answers = board[[name for name in board.index if name.startswith("claims: ")]]
    assert answers.sum() == board["claims"]
    runs = board[[name for name in board.index if name.startswith("run: ")]]
    assert runs["run: not run"] == runs.sum() == len(table) - board[questions].sum()


def test_questions_that_are_settled_are_counted_apart():
    standings = published.errata()["standing"]
    board = plots.scoreboard(plots.standing()).set_index("paper").loc["all four"]
    settled = standings.str.contains("confirmed by|agrees with")
    assert board["questions: settled"] == settled.sum() > 0
    assert board["questions: open"] == (~settled).sum() > 0
    one = published.errata("srinivasan2021")["standing"]
    n = one.isin(published.SETTLED).sum()
    said = plots.share_sentences("srinivasan2021", [])
    assert f"Of {len(one)} questions about its tables, {len(one) - n} " in said
    assert f" and {n} {'is' if n == 1 else 'are'} settled" in said
    assert f" contracts for this paper ({plots.CONTRACT}) has been tested." in said
    n = len(published.errata("hamidieh2023"))
    said = plots.share_sentences("hamidieh2023", [])
    assert f" All {n} questions about its tables are open." in said


def test_the_list_of_all_contracts_is_light_and_escaped():
    table = plots.standing()
    page = plots.listing(table).page()
    assert len(page.encode()) < 900_000
    assert page.count("<tr>") == len(table) + 1
    table.loc[0, "printed"] = "<script>alert(1)</script>"
    assert "<script>alert" not in plots.listing(table).page()


def test_ten_verdicts_by_hand():
    by_hand = ["met", "not met", "cannot be said", "met", "cannot be said"]
    by_hand += ["cannot be said", "met", "not met", "met", "not met"]
    assert plots.check_verdicts(by_hand).passed
    for at in range(10):
        for other in set(ledger.VERDICTS[:3]) - {by_hand[at]}:
            wrong = [*by_hand[:at], other, *by_hand[at + 1 :]]
            assert not plots.check_verdicts(wrong).passed
    for nonsense in (None, "met", [], ["met"] * 9, ["yes"] * 10, 3):
        assert not plots.check_verdicts(nonsense).passed
