# ruff: noqa: F401
"""What the rows of ``tests/typed`` compute with: the package, its tables and its records."""

import inspect
import json
import re
from fractions import Fraction
from itertools import combinations
from math import comb, factorial

import numpy as np
import pandas
import plans
import yaml
from numpy import cos, exp, log, mean, sqrt
from scipy import stats
from support import typed

from biaslib import inference, metrics, models, published, reproduction, stimuli
from biaslib.audit import nulls
from biaslib.datasets import fairface, links, ross2021
from biaslib.inference import _permutation
from biaslib.metrics import association, caption_association, caption_selection, masked_lm
from biaslib.models import region_model, vl_bert
from biaslib.pictures import detector as pictures
from biaslib.reproduction import _compare
from biaslib.runtime._prepare import REACHED
from biaslib.studies import study2_masked, study3_clip_audit
from companion import published_numbers
from companion import study2_masked as masked_plots
from companion import study3_clip_audit as audit_plots
from companion import study4_captions as caption_plots
from companion import text_encoders as text_plots
from companion.capstone import FLAWED
from companion.planted_study2_masked import GENDER_ALONE
from companion.what_is_measured import agreement, two_levels
from plantedworld import _seeds, _sprites
from plantedworld.inputs import study3_clip_audit as toy_audit
from plantedworld.studies import held_out, measures, recovery
from plantedworld.studies import study1_grounded as planted_grounded
from plantedworld.studies import study4_captions as planted_captions
from plantedworld.studies.recorded import recorded
from tools import decision_rule
from tools.levels import comparison, reruns


def default(function, name):
    return inspect.signature(function).parameters[name].default


confidence = 100 * default(inference.proportion_interval, "confidence")
level = default(inference.power, "alpha")


def csv(path):
    return pandas.read_csv(typed.ROOT / path)


def word(said, holds):
    """A word that a page may say only if something holds."""
    return said if holds else f"what does not say {said!r}"


def binomial(k, n, sides="two-sided"):
    return stats.binomtest(int(k), int(n), alternative=sides).pvalue


def fraction(p):
    return Fraction(float(p)).limit_denominator(10_000)


def least_significant(n):
    """The least share of n that differs from one half at the 5% level."""
    return next(k for k in range(int(n) // 2, int(n) + 1) if binomial(k, n) < level)


SIDES = binomial(5, 6) / binomial(5, 6, "greater")


def regions(model):
    """What the package says of a model's regions: how many it reads, their size, and ours."""
    return [int(n) for n in re.findall(r"\d+", models.REGISTRY[model].features.replace(",", ""))]


STAMP = json.loads((typed.ROOT / "companion/data/language_stamp.json").read_text())
language_bits = int(re.search(r"Q(\d)", STAMP["file"])[1])
without_pictures = caption_plots.language_choices()["vlbs"].str.split().str[0].astype(float)


p_ends = inference.proportion_interval(0, 9).low, inference.proportion_interval(9, 9).high
n_tests = len(stimuli.association_tests(study1=True))
n_results = n_tests * len(stimuli.LEVELS)
bound = inference.largest_effect_size(4, 4, ddof=0)
floor_share = next(int(name[1:]) for name in measures.STATISTICS if name[0] == "q")


def least_p(n):
    """One over the number of deals of n targets a side."""
    return 1 / comb(2 * int(n), int(n))


def deviations_within(c_asc):
    """By how many standard deviations within a group two equally large groups differ."""
    low, high = 0.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle / sqrt(1 + middle**2 / 4) < c_asc else (low, middle)
    return low


# The held-out test

KEYS = ["measure", "model", "dose", "statistic"]
results = held_out.results()
targets, rises, attacks = results["verdicts"], results["rises"], results["attacks"]
recovers = targets.groupby(["measure", "model"])["reached"].all()
wrong = attacks[attacks["scores"] != "the models' own"]
clean = attacks["scores"] == "no bias"
biased = attacks[~clean]
beside = results["stand_ins"].merge(targets[[*KEYS, "least", "most"]], on=KEYS)
near = beside[beside["mean"].between(beside["least"], beside["most"])].drop_duplicates(KEYS)
starts = held_out.models().query("start != '-'")["start"]
anew = ~starts.isin(held_out.models()["sha256"])
no_width = targets[targets["low"] == targets["high"]]
casc_scores = pandas.read_parquet(held_out.DATA / "scores.parquet").query(
    "measure == 'C-ASC' and model == 'clip' and dose == 3 and slot in ('role', 'object')"
)
casc_ranks = [
    recovery.rank_within_signs(part["value"], part["truth"])
    for _, part in casc_scores.groupby(["seed", "sample"])
]


# Printed tables

percent = caption_selection.ivlas(100, 0)
harmonic = caption_selection.ivlas(1, 99) / (1 * 1 / (1 + 1))


def of_religion(metric):
    table = published.table("zhou2022", 4)
    where = (table["model"] == "ViLT") & (table["category"] == "religion")
    return float(table.loc[where & (table["metric"] == metric), "value"].item())


def fitting(percentage, most, step=1):
    """Numbers of images up to ``most`` of which a whole number rounds to a printed percentage."""
    sizes = range(step, int(most) + 1, step)
    return [
        n
        for n in sizes
        if any(round(100 * k / (n // step), 2) == percentage for k in range(n // step + 1))
    ]


vlrs_printed, vlbs_printed = of_religion("vlrs"), of_religion("vlbs")
most = int(re.search(r"71\.43, (\d+)", inspect.getsource(published_numbers.check_sizes))[1])
half_a_digit = 0.5 / 10 ** len(str(vlrs_printed).partition(".")[2])
published_models = published.table("ross2021", 4)["model"].dropna().unique()


def errata(number):
    return published.errata().set_index("id").at[number, "printed"]


def model_bytes(name):
    return 4 * models.REGISTRY[name].parameters


authors_files = len(pandas.read_csv(ross2021.DATA / "ross2021_files.csv"))
taste_pictures = len(ross2021.taste())

documented = [
    float(n)  # gigabytes of portraits, files of captions, gigabytes of one, millions in it
    for n in re.findall(r"(\d[\d.]*)\s+(?:GB|files|million)", study3_clip_audit.fetch.__doc__)
]


def to_judge(word, column):
    row = audit_plots.scores_to_judge().set_index("word").loc[word]
    low, high = re.findall(r"[−\d.]+", row["95% interval"])
    return typed.read({"value": str(row["C-ASC"]), "low": low, "high": high}[column])


def pairs(model, other="sentence"):
    """Of Ross et al.'s printed effects at two levels: how many agree in sign, of how many, rank."""
    table = agreement(effects, "word", other).set_index("model").loc[model]
    return int(table["same sign"]), int(table["n"]), float(table["rank correlation"])


def same_sign(rows):
    return int((rows["word"] * rows["sentence"] > 0).sum())


effects = two_levels(3)
n_agree, n_pairs = pairs("all four")[:2]
sizes = effects[["word", "sentence"]].dropna().abs()
large = effects.loc[sizes.index[(sizes > 0.5).all(axis=1)]]
large_once = sizes[(sizes > 0.5).any(axis=1)]
flaws, sound = sorted(FLAWED), sorted(set(range(1, 11)) - FLAWED)


# Worked examples


def reach(least, *cards):
    """Hands of three cards whose sum is at least so much, the largest first."""
    hands = [sorted(hand, reverse=True) for hand in combinations(cards, 3) if sum(hand) >= least]
    return sorted(hands, key=sum, reverse=True)


def detectable(n):
    """The effect size that a test of n a side finds four times out of five; and corrected."""
    return [
        inference.minimum_detectable_effect(int(n), int(n), alpha).effect_size
        for alpha in (level, level / n_tests)
    ]


def own_and_pooled(man, woman, lm, lw, tm, tw):
    """The statistic with all pictures (Experiment 1) and with those of one's own (2), of angles."""

    def score(word, *attributes):
        return cos(np.radians(np.subtract(attributes, word))).mean()

    everywhere = (
        score(man, lm, lw) - score(man, tm, tw) - score(woman, lm, lw) + score(woman, tm, tw)
    )
    own = score(man, lm) - score(man, tm) - score(woman, lw) + score(woman, tw)
    return everywhere, own


def clopper(vlbs, n):
    return inference.proportion_interval(round(vlbs * n / 100), int(n))


def judged(margin, low, high):
    table = published.table("zhou2022", 3).query("metric == 'vlbs' and category == 'overall'")
    printed = table.set_index("model").at["CLIP", "value"]
    return reproduction.judge_number([printed], [margin], [low], [high]).tolist()[0]


# The real text encoder, as the chapter's run had it: tests/golden/text_encoder_results.README.md

RESULTS = csv("tests/golden/text_encoder_results.csv").set_index(["test", "level"])
SENTENCES = csv("tests/golden/text_encoder_analyses.csv").query("words == 'all'")
SENTENCES = SENTENCES.set_index(["test", "sentences"])["value"]
analyses = text_plots.all_analyses(csv("tests/golden/text_encoder_analyses.csv"))
four = text_plots.four_counts(RESULTS, RESULTS)
by_bh = int((inference.adjust(RESULTS["p_value"], "bh") < level).sum())
rejections = 100 * RESULTS["rejected"]
lone = RESULTS[text_plots.significant(RESULTS, RESULTS, True, True, True)]


def significant_rows(level_name, column):
    return int((RESULTS.xs(level_name, level="level")[column] < level).sum())


def surviving(test):
    return 100 * analyses.loc[analyses["test"] == test, "survives"].mean()


def reached(d, *random):
    return int((np.abs(random) >= abs(d)).sum())


words_a_side = RESULTS["n_words"]
n_words = int(words_a_side.min())


def binomial_weight(k, n):
    return stats.binom.pmf(k, n, 0.5)


def said(page, words):
    """Numbers that another page types at these words, with ``[*]`` for each of them."""
    match = typed.pattern(words.replace("[*]", "{*}"), {}).search(typed.source(page))
    return [typed.read(each) for each in match.groups()]


# What pages say of files, settings and plans

kinds = stimuli.taxonomy_kinds()["kind"].value_counts()
(purse_times,) = said("notebooks/planted_study2_masked.ipynb", "women carry purses [*] times")
n_papers = n_studies = len(published.PAPERS)
case_study = int((stimuli.entities()["set"] == "case study").sum())
half_precision = int(re.search(r"float16 keeps (\d+) in 100", inspect.getsource(pictures))[1])
cards = [
    *said("book/slides/foundations.md", "X holds [*], [*] and [*]."),
    *said("book/slides/foundations.md", "Y holds [*], [*] and"),
]
arrows = np.array(
    [
        said("book/things.md", f"{name} ([*], [*])")
        for name in ("daisy", "tulip", "poppy", "drum", "trumpet", "harp")
    ]
)
things = np.round((arrows[:, 0] - arrows[:, 1]) / np.hypot(*arrows.T), 9)
things_d = association.effect_size_of_scores(things[:3], things[3:], ddof=1)
tie = said("notebooks/study2_masked.ipynb", "−0.24 | [*] to [*] | 6 and 6")
in_either_order = said(
    "notebooks/study2_masked.ipynb",
    "probability of [*] in one picture, [*] in a second and [*] in a third, and [*] without",
)
constant_scores = said(
    "book/slides/foundations.md", "Four scores of [*], against four scores of [*]."
)
two_models = said("book/quizzes/own_model.yml", "vlbs of [*] ([*] to [*]) and [*] ([*] to [*]) on")
noise_floor = said("notebooks/planted_study4_captions.ipynb", "noise floor is [*] points")[0]
four_models = [
    said(
        "notebooks/planted_study4_captions.ipynb",
        f"| {name} | [*] ([*] to [*]) | [*] | [*] ([*] to [*]) |",
    )
    for name in "ABCD"
]
hand_out = said("book/slides/study2_masked.md", "| [*] | [*] | [*] |")


toy = toy_audit.inputs()


def of_nurse():
    """What the toy of study 3 gives for a nurse: women retrieved, C-ASC, gap, spreads."""
    model = study3_clip_audit.load_model(toy)
    text = model.encode_text(toy.model_case([stimuli.caption("nurse", "noun")]))[0]
    near = study3_clip_audit.embed_images(model, toy.portraits) @ text / np.linalg.norm(text)
    women = toy.groups["gender"]["women"].to_numpy()
    nearest = np.argsort(-near, kind="stable")[: toy.k]
    gap, spread = near[women].mean() - near[~women].mean(), near.std(ddof=1)
    return int(women[nearest].sum()), gap / spread, gap, spread, near[women].std(ddof=1)


by_hand = said("notebooks/foundations.ipynb", "$w = ([*], [*])$, one attribute $a = ([*], [*])$ in")
by_hand += said("notebooks/foundations.ipynb", "one, $b = ([*], [*])$, in")
four_scores = said("notebooks/foundations.ipynb", "scores [*] and [*], in $X$, and [*] and [*], in")
own_context = [
    np.subtract(*said("notebooks/study1_grounded.ipynb", f"| {name} | [*] | [*] |"))
    for name in ("first | $X$", "second | $X$", "third | $Y$", "fourth | $Y$")
]
retrieved, casc_of_women, gap_of_women, spread_of_all, spread_of_women = of_nurse()
six_pictures = [
    said("book/instructor/study4_captions.yml", f"| {n} | {against} | [*] | [*] | [*] |")
    for n, against in enumerate(["yes"] * 4 + ["no"] * 2, 1)
]
six_scores = caption_selection.selection_scores(np.array(six_pictures), np.arange(6) < 4)["overall"]


def checkpoints(number):
    """Gigabytes of the models that a study downloads."""
    row = csv("biaslib/checkpoints/data/downloads.csv").iloc[number - 1]
    return sum(model_bytes(name) for name in re.findall(r"`([\w-]+)`", row["Checkpoints"])) / 1e9


def full_size(family, column):
    return csv("tools/benchmarks/results/full_size.csv").set_index("family").at[family, column]


def card(chapter):
    """Minutes of a chapter and of its exercises, as its card says."""
    found = plans.CARD.search(typed.source(f"notebooks/{chapter}.ipynb"))
    return int(found[1]), int(found[2])


def plan(name):
    return yaml.safe_load(typed.source(f"book/plans/{name}.yml"))


def minute(name, shown):
    """When the slot is over whose words begin so."""
    slots = plan(name)["sessions"][0]["slots"]
    last = next(n for n, slot in enumerate(slots) if shown in slot["show"])
    return sum(slot["minutes"] for slot in slots[: last + 1])


def names_capstone(session):
    return any("notebooks/capstone" in slot.get("pages", []) for slot in session["slots"])


capstone_sessions = [each["week"] for each in plan("semester")["sessions"] if names_capstone(each)]
all_entities = len(stimuli.entities())
intervals = published_numbers.score_intervals()
own_vlbs = intervals.query("category == 'overall' and metric == 'vlbs'")


def observed(condition, n, quantity, of="", nominal=0.95):
    """Shares in 100 of runs of ``make levels``, the least and the largest of these conditions."""
    table = csv("tools/benchmarks/results/levels.csv").query(
        "quantity == @quantity and nominal == @nominal"
    )
    for column, words in (("condition", condition), ("n", n), ("of", of)):
        table = table[table[column].str.contains(words)]
    return 100 * table["observed"].min(), 100 * table["observed"].max()


zhou_cells = intervals.query("category != 'overall' and metric == 'vlbs'")
OF_WORDS = observed("^words", "", "level", "words as units", level)
OWN_TEST = observed("^words", "", "level", "Experiment 2, the paper's own test", level)
SKEWED, SMALL = "skewed scores, C-ASC of 0", "^(?:4 and 26|8 and 192)"
WIDE = "log probabilities with SD 1.2"
small_groups = [int(n) for n in re.findall(r"\d+", SMALL)]
CLAIMED = observed("labels by coin", "60 people", "level", "audit.compare", level)


def found(condition, number):
    """How many in 100 reports claim a difference of ``comparison.PLANTED``."""
    words = condition if isinstance(condition, str) else f"by {condition:g};"
    planted = f"{words}; a difference of {comparison.PLANTED[number]:g}$".replace(";;", ";")
    return observed(planted, "60 people", "power", "audit.compare", level)[0]
