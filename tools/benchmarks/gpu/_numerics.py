"""How far each precision is from float64: planted models' outputs, and the papers' measures."""

import contextlib
import importlib
import tempfile
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from biaslib import capabilities, models, runtime
from biaslib.metrics import caption_association
from biaslib.studies import study1_grounded as grounded
from biaslib.studies import study2_masked as masked
from biaslib.studies import study3_clip_audit as audit
from biaslib.studies import study4_captions as selection
from plantedworld.models.checkpoints import checkpoint
from tools.benchmarks.gpu._machine import calculating_in, precisions, seconds

BOUNDS = {"float32": 1e-4, "tf32": 0.05, "float16": 0.05, "bfloat16": 0.25}
"""How far outputs may be from float64, in their standard deviations: some 1,000 roundings of
float32, 100 of the others. A processor stays below 1e-5 in float32 and below 0.15 in bfloat16."""

TOP, RESAMPLES = 100, 20
PER_CELL, SCENES = 24, 6
"""Portraits of each cell of people in study 3; scenes of a category in study 4."""


def measured(name: str, study: str, device: str) -> Iterator[dict[str, Any]]:
    """Yield the record of a family in a study, for each precision."""
    on_host, there = planted(name, "cpu"), planted(name, device)
    answers, _ = STUDIES[study]
    with calculating_in("float32", "cpu"), passes_in_float64():
        reference = answers(on_host)
    for precision in precisions(device):
        with calculating_in(precision, device):
            found = differences(answers(there), reference)
        error, bound = found["outputs_error"], BOUNDS[precision]
        within = error is not None and error < bound
        yield {"precision": precision} | found | {"bound": bound, "within": within}


def planted(name: str, device: str) -> Any:
    """Return a planted model of the world of dose 3 and seed 0, or LLaVA of its own world."""
    if name == "llava":
        return models.load(str(checkpoint("llava", 3, 2100)), device=device)
    return models.load(name, profile="planted", dose=3, seed=0, device=device)


@contextlib.contextmanager
def passes_in_float64() -> Iterator[None]:
    """Have the package's forward passes, where they are cast to half precision, run in float64."""
    with contextlib.ExitStack() as settings:
        for name in ("bert", "dual", "fusion", "generative", "text"):
            module = importlib.import_module(f"biaslib.models.{name}")
            cast = mock.patch.object(module, "autocast", side_effect=lambda _: InFloat64())
            settings.enter_context(cast)
        yield


class InFloat64(TorchFunctionMode):
    """Calls every function of torch with float64 where it was to be called with float32.

    Examples
    --------
    >>> layer = torch.nn.Linear(1, 1)
    >>> with InFloat64():
    ...     layer(torch.ones(1, 1)).dtype
    torch.float64
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call a function."""
        args, kwargs = tree_map(_double, (args, kwargs or {}))
        return tree_map(_double, function(*args, **kwargs))


def _double(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
        return value.double()
    return torch.float64 if value is torch.float32 else value


def differences(
    found: dict[str, np.ndarray], reference: dict[str, np.ndarray]
) -> dict[str, float | None]:
    """Return how far numbers are from those of the reference.

    Of ``outputs`` the largest difference, in standard deviations of the reference; of other
    numbers the largest difference; of whole numbers the share that is another one; of what is in a
    list or not the share of the list that is in both.

    Examples
    --------
    >>> differences({"d": np.array([1.5]), "choice": np.array([0, 1])},
    ...             {"d": np.array([1.0]), "choice": np.array([0, 0])})
    {'d_error': 0.5, 'choice_changed': 0.5}
    """
    record: dict[str, float | None] = {}
    for name, expected in reference.items():
        got = found[name]
        if expected.dtype == bool:
            record[f"{name}_kept"] = float((got & expected).sum() / expected.sum())
        elif np.issubdtype(expected.dtype, np.integer):
            record[f"{name}_changed"] = float((got != expected).mean())
        else:
            apart = np.abs(got.astype(float) - expected.astype(float))
            apart[np.isnan(got) & np.isnan(expected)] = 0
            unit = expected.std() if name == "outputs" else 1
            largest = float(apart.max() / unit)
            record[f"{name}_error"] = largest if np.isfinite(largest) else None
    return record


@contextlib.contextmanager
def empty_store() -> Iterator[Any]:
    """Give a store in which nothing is, and which is forgotten."""
    with tempfile.TemporaryDirectory() as folder:
        yield runtime.Store(folder)


def grounded_tests(model: Any) -> dict[str, np.ndarray]:
    """Return study 1's embeddings of one test, and d and p of its three experiments."""
    chosen = {"names": ["occupation-gender"], "levels": ("sentence",), "n_texts": 1}
    given = grounded.inputs("planted", **chosen)
    with_images = capabilities.EMBED_WITH_IMAGES in model.capabilities
    with empty_store() as store:
        (sets,) = grounded.embed(model, given["visualbert"], with_images=with_images, store=store)
    scores = [
        grounded.score(sets, experiment, n_bootstrap=0) for experiment in grounded.EXPERIMENTS
    ]
    found = {"outputs": np.concatenate(list(sets.embeddings.values()))}
    found["d"] = np.array([row["value"] for row in scores])
    return found | {"p": np.array([row.get("p_value", np.nan) for row in scores])}


def masked_words(model: Any) -> dict[str, np.ndarray]:
    """Return study 2's log-probabilities, the masked log-ratios S and B, and their signs."""
    given = masked.inputs("planted", per_agent=1)
    entities = given.entities[given.entities["set"] == "case study"].reset_index(drop=True)
    images = given.images if capabilities.FILL_WITH_IMAGES in model.capabilities else None
    choices = masked.Choices(
        no_image="text" if capabilities.FILL in model.capabilities else "blank"
    )
    with empty_store() as store:
        answers = masked.masked_log_probs(model, entities, images, choices, store)
    alone = answers[answers["image"] == ""]
    values = masked.scores(answers, alone, entities, n_resamples=0)["value"].to_numpy()
    signs = np.sign(values).astype(int)
    return {"outputs": answers["log_p"].to_numpy(), "s": values, "sign_of_s": signs}


def retrieved(model: Any) -> dict[str, np.ndarray]:
    """Return study 3's unit vectors, C-ASC by gender, and each word's nearest portraits."""
    given = audit.inputs("planted", n_per_cell=PER_CELL)
    captions = given.model_case(given.words["caption"])
    with empty_store() as store:
        images = audit.embed_images(model, given.portraits, store)
        texts = audit.embed_texts(model, captions, store)
    cosines = texts @ images.T
    nearest = np.zeros(cosines.shape, dtype=bool)
    np.put_along_axis(nearest, caption_association.top_k(cosines, TOP), True, axis=1)
    score = caption_association.c_asc(cosines, given.groups["gender"].to_numpy())
    return {"outputs": np.concatenate([images, texts]), "c_asc": score, "top_100": nearest}


def chosen_captions(model: Any) -> dict[str, np.ndarray]:
    """Return study 4's scores of captions, vlrs and vlbs in per cent, and the captions chosen."""
    given = selection.inputs("planted", n_per_category=SCENES)
    head = "matching" if capabilities.MATCH in model.capabilities else "contrastive"
    chosen = selection.ModelHead(model.name, head, False, model.name, model.name)
    scored = selection.score_inputs(model, chosen, given)
    table = selection.selection_scores(selection.Run(given, {head: scored}, None), n_resamples=0)
    found = {"outputs": scored.original, "choice": scored.original.argmax(axis=1)}
    for name in ("vlrs", "vlbs"):
        found[name] = table.loc[table["statistic"] == name, "value"].to_numpy(float)
    return found


STUDIES = {
    "1": (grounded_tests, "bert visualbert lxmert vilbert vl-bert vilt flava albef"),
    "2": (masked_words, "bert visualbert lxmert vilbert vl-bert vilt flava albef llava"),
    "3": (retrieved, "clip flava albef"),
    "4": (chosen_captions, "clip visualbert lxmert vilbert vilt flava albef llava"),
}
"""What is asked of whom, by study: the families with planted checkpoints, by their names."""


def study(device: str) -> Iterator[dict[str, Any]]:
    """Yield the seconds of study 3 on the device and again from its store, and on the processor.

    ``largest_difference`` is that of any score between device and processor.
    """
    given = audit.inputs("planted", n_per_cell=PER_CELL)
    scores, record = {}, {}
    for place in dict.fromkeys((device, "cpu")):
        model = models.load(**given.model, device=place)
        with calculating_in("float32", place), empty_store() as store:
            for name in (place, f"{place}, stored"):

                def scored(name=name, model=model, store=store) -> None:
                    found = audit.audit(given, model=model, n_resamples=RESAMPLES, store=store)
                    scores[name] = found.scores["value"].to_numpy(float)

                record[f"{name}_s"] = round(seconds(scored), 2)
    apart = [np.abs(values - scores["cpu"]) for values in scores.values()]
    record["scores"] = len(scores["cpu"])
    yield record | {"largest_difference": float(np.nanmax(apart))}
