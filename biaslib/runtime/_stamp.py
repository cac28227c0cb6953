"""The stamp at the end of every executed page: what ran, where, on what."""

import datetime
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import biaslib
from biaslib.runtime._profile import begin
from biaslib.runtime._sources import USED, used

MAIN = ("numpy", "scipy", "pandas", "torch", "transformers", "matplotlib")
"""Libraries whose versions a stamp names, where the page has loaded them."""

_smaller_batches: list[str] = []


def note_batches(what: str) -> None:
    """Note for the stamps of this process that a model ran in smaller batches than it was asked to.

    Examples
    --------
    >>> run = start("planted")
    >>> note_batches("bert: 900 texts, 32 a batch (64 did not fit in memory)")
    >>> run.as_dict()["Batches"]
    'bert: 900 texts, 32 a batch (64 did not fit in memory)'
    >>> "Batches" in start("planted").as_dict()
    False
    """
    _smaller_batches.append(what)


_devices: list[tuple[str, str]] = []


def note_device(device: object, precision: str = "float32") -> None:
    """Note for the stamps of this process where a model was loaded, and how it calculates.

    Parameters
    ----------
    device
        A torch device.
    precision
        As of ``biaslib.models._batches.precision_name``.

    Examples
    --------
    >>> note_device("cpu")
    """
    name = str(device)
    if name.startswith("cuda"):
        import importlib

        torch = importlib.import_module("torch")
        name = f"{name}, {torch.cuda.get_device_name(device)}"
    _devices.append((name, precision))


def _versions() -> list[str]:
    """Return Python and the main libraries that are loaded, each with its version."""
    found = used()["settings"]
    return [
        f"{name} {found[name]}" for name in ("Python", *MAIN) if name in {"Python", *sys.modules}
    ]


@dataclass
class Provenance:
    """What a notebook ran on; displayed as the stamp at the end of its page.

    ``weights`` and ``data`` map what was loaded to its revision or checksum. Add to them with
    :meth:`record` as the run goes on. Devices and precisions are those of the models that were
    loaded since it began; batches that memory did not suffice for are listed if there were any.
    """

    profile: str
    weights: dict[str, str] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    batches_before: int = field(default_factory=lambda: len(_smaller_batches))
    devices_before: int = field(default_factory=lambda: len(_devices))

    def record(self, *, weights=None, data=None) -> "Provenance":
        """Note the revision of weights or the checksum of data by name."""
        self.weights.update(weights or {})
        self.data.update(data or {})
        return self

    def as_dict(self) -> dict[str, str]:
        """Return the stamp's rows as label and text."""
        import platform

        def listing(entries):
            return "; ".join(f"{name}: {value}" for name, value in entries.items()) or "none"

        smaller = dict.fromkeys(_smaller_batches[self.batches_before :])
        noted = _devices[self.devices_before :] or [("cpu", "float32")]
        devices, precisions = (dict.fromkeys(each) for each in zip(*noted, strict=True))
        return {
            "Profile": self.profile if self.weights else f"{self.profile} (no model on this page)",
            "Device": f"{'; '.join(devices)} ({platform.machine()})",
            "Precision": "; ".join(precisions),
            "biaslib": f"{biaslib.__version__}, source {used()['source']}",
            "Versions": ", ".join(_versions()),
            "Weights": listing(self.weights),
            "Data": listing(self.data),
            **({"Batches": "; ".join(smaller)} if smaller else {}),
            "Date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "Run time": f"{time.perf_counter() - self.started:.0f} s",
        }

    def _repr_html_(self) -> str:
        import html

        rows = "".join(
            f"<div><dt>{html.escape(label)}</dt><dd>{html.escape(text)}</dd></div>"
            for label, text in self.as_dict().items()
        )
        return (
            f'<dl class="stamp" data-source="{used()["source"]}" '
            f'aria-label="How this page was made">{rows}</dl>'
        )

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        """Give programs what the page used, in the metadata of the output."""
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}, {USED: used()}

    def __repr__(self) -> str:
        return "\n".join(f"{label}: {text}" for label, text in self.as_dict().items())


def start(profile_name: str | None = None) -> Provenance:
    """Begin a notebook's run: choose its profile and start the clock.

    From here on the profile is that of :func:`profile` and of every model that is loaded without
    another. It can be begun anew, in another profile too, until the first model is loaded.

    Parameters
    ----------
    profile_name
        ``planted`` or ``paper``; ``None`` takes what :func:`profile` says.

    Raises
    ------
    UnknownNameError
        If there is no such profile.
    ProfileError
        If models of the other profile are loaded already.

    Examples
    --------
    >>> start("planted").profile
    'planted'
    """
    return Provenance(profile=begin(profile_name))
