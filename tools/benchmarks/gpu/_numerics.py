"""How far each precision is from float64: planted models' outputs, and the papers' measures."""

import contextlib
import functools
import importlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from tools.benchmarks.gpu._machine import calculating_in, precisions
from tools.benchmarks.gpu._schedule import Step

FAMILIES = ("clip", "visualbert", "vl-bert", "vilt", "flava", "albef", "lxmert", "vilbert")
FAMILIES += ("bert", "open-clip")
"""Those with planted checkpoints, each under the name it is loaded by."""

TOP = 100
SIZES = {
    "full": {"texts": 2, "entities": None, "per_agent": 2, "n_per_cell": 30, "words": None}
    | {"n_per_category": 24},
    "tiny": {"texts": 1, "entities": 2, "per_agent": 1, "n_per_cell": 12, "words": 20}
    | {"n_per_category": 4},
}
"""Texts of a word in study 1; entities of study 2 and images of each; portraits of a cell and words
of study 3; scenes of a category in study 4. None are all words, and all entities of a case study.
"""


def steps(size: str, device: str, families: tuple[str, ...] = FAMILIES) -> list[Step]:
    """Return a step for each family."""
    return [
        Step("numerics", name, 10, functools.partial(measured, name, size, device))
        for name in families
    ]


def measured(name: str, size: str, device: str) -> Iterator[dict[str, Any]]:
    """Yield a record for each study that a family takes part in, and precision."""
    on_host = planted(name, "cpu")
    there = on_host if device == "cpu" else planted(name, device)
    for study, (needed, answers) in STUDIES.items():
        if not needed() & on_host.capabilities:
            continue
        ask = functools.partial(answers, size=SIZES[size])
        reference, how = referred(ask, on_host)
        for precision in precisions(device):
            with calculating_in(precision, device):
                found = differences(ask(there), reference)
            yield {"study": study, "precision": precision, "reference": how} | found


def planted(name: str, device: str) -> Any:
    """Return a planted model of the world of dose 3 and seed 0."""
    from biaslib import models

    return models.load(name, profile="planted", dose=3, seed=0, device=device)


def referred(ask: Callable[[Any], dict], model: Any) -> tuple[dict[str, np.ndarray], str]:
    """Return what a model on the processor says in float64, or in float32 where that fails."""
    with calculating_in("float32", "cpu"):
        try:
            with passes_in_float64():
                return ask(model), "float64 on the CPU"
        except Exception as error:  # Whatever float64 meets, float32 is known to run.
            return ask(model), f"float32 on the CPU (float64: {str(error)[:80]})"


@contextlib.contextmanager
def passes_in_float64() -> Iterator[None]:
    """Have the package's forward passes, where they are cast to half precision, run in float64.

    Tensors of inference mode could not be viewed then; gradients are switched off instead.
    """
    with contextlib.ExitStack() as settings:
        settings.enter_context(torch.no_grad())
        for name in ("__enter__", "__exit__"):
            inside = mock.patch.object(torch.inference_mode, name, _nothing)
            settings.enter_context(inside)
        for name in ("bert", "dual", "fusion", "text"):
            module = importlib.import_module(f"biaslib.models.{name}")
            cast = mock.patch.object(module, "autocast", side_effect=lambda _: InFloat64())
            settings.enter_context(cast)
        yield


def _nothing(*_: Any) -> None:
    """Enter and leave without a change."""


class InFloat64(TorchDispatchMode):
    """Calls every operation with float64 where it was to be called with float32.

    Examples
    --------
    >>> layer = torch.nn.Linear(1, 1)
    >>> with torch.no_grad(), InFloat64():
    ...     layer(torch.ones(1, 1)).dtype
    torch.float64
    """

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Call an operation."""
        args, kwargs = tree_map(_double, (args, kwargs or {}))
        return tree_map(_double, function(*args, **kwargs))


def _double(each: Any) -> Any:
    if isinstance(each, torch.Tensor) and each.dtype == torch.float32:
        return each.double()
    return torch.float64 if each is torch.float32 else each


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
    from biaslib import runtime

    with tempfile.TemporaryDirectory() as folder:
        yield runtime.Store(folder)


def grounded_tests(model: Any, size: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return study 1's embeddings of one test, and d and p of its three experiments."""
    from biaslib.capabilities import EMBED_WITH_IMAGES
    from biaslib.studies import study1_grounded as study

    chosen = {"names": ["occupation-gender"], "levels": ("sentence",), "n_texts": size["texts"]}
    given = study.inputs("planted", **chosen)
    with_images = EMBED_WITH_IMAGES in model.capabilities
    with empty_store() as store:
        (sets,) = study.embed(model, given["visualbert"], with_images=with_images, store=store)
    scores = [study.score(sets, experiment, n_bootstrap=0) for experiment in study.EXPERIMENTS]
    found = {"outputs": np.concatenate(list(sets.embeddings.values()))}
    found["d"] = np.array([row["value"] for row in scores])
    return found | {"p": np.array([row.get("p_value", np.nan) for row in scores])}


def masked_words(model: Any, size: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return study 2's log-probabilities, the masked log-ratios S and B, and their signs."""
    from biaslib.capabilities import FILL, FILL_WITH_IMAGES
    from biaslib.studies import study2_masked as study

    given = study.inputs("planted", per_agent=size["per_agent"])
    case_study = given.entities[given.entities["set"] == "case study"].reset_index(drop=True)
    entities = case_study[: size["entities"]]
    images = given.images if FILL_WITH_IMAGES in model.capabilities else None
    choices = study.Choices(no_image="text" if FILL in model.capabilities else "blank")
    with empty_store() as store:
        answers = study.masked_log_probs(model, entities, images, choices, store)
    alone = answers[answers["image"] == ""]
    values = study.scores(answers, alone, entities, n_resamples=0)["value"].to_numpy()
    signs = np.sign(values).astype(int)
    return {"outputs": answers["log_p"].to_numpy(), "s": values, "sign_of_s": signs}


def retrieved(model: Any, size: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return study 3's unit vectors, C-ASC by gender, and each word's nearest portraits."""
    from biaslib.metrics import caption_association
    from biaslib.studies import study3_clip_audit as study

    given = study.inputs("planted", n_per_cell=size["n_per_cell"])
    captions = given.model_case(given.words["caption"][: size["words"]])
    with empty_store() as store:
        images = study.embed_images(model, given.portraits, store)
        texts = study.embed_texts(model, captions, store)
    cosines = texts @ images.T
    nearest = np.zeros(cosines.shape, dtype=bool)
    np.put_along_axis(nearest, caption_association.top_k(cosines, TOP), True, axis=1)
    score = caption_association.c_asc(cosines, given.groups["gender"].to_numpy())
    return {"outputs": np.concatenate([images, texts]), "c_asc": score, "top_100": nearest}


def chosen_captions(model: Any, size: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return study 4's scores of captions, vlrs and vlbs in per cent, and the captions chosen."""
    from biaslib.capabilities import MATCH
    from biaslib.studies import study4_captions as study

    given = study.inputs("planted", n_per_category=size["n_per_category"])
    head = "matching" if MATCH in model.capabilities else "contrastive"
    chosen = study.ModelHead(model.name, head, False, model.name, model.name)
    scored = study.score_inputs(model, chosen, given)
    table = study.selection_scores(study.Run(given, {head: scored}, None), n_resamples=0)
    found = {"outputs": scored.original, "choice": scored.original.argmax(axis=1)}
    for name in ("vlrs", "vlbs"):
        found[name] = table.loc[table["statistic"] == name, "value"].to_numpy(float)
    return found


def _capabilities(*names: str) -> Callable[[], set[str]]:
    def found() -> set[str]:
        from biaslib import capabilities

        return {getattr(capabilities, name) for name in names}

    return found


STUDIES = {
    "1": (_capabilities("EMBED", "EMBED_WITH_IMAGES"), grounded_tests),
    "2": (_capabilities("FILL", "FILL_WITH_IMAGES"), masked_words),
    "3": (_capabilities("ENCODE"), retrieved),
    "4": (_capabilities("MATCH", "ENCODE"), chosen_captions),
}
"""By study: one of these capabilities is needed, and what is asked."""
