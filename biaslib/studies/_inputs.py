"""How a study gets its inputs: from what provides the run's profile."""

import inspect
from collections.abc import Mapping
from typing import Any

from biaslib import runtime


def provided_inputs(study: str, profile: str | None, settings: Mapping[str, Any]) -> Any:
    """Return a study's inputs in a profile; what another profile alone knows is left out.

    Raises
    ------
    UnknownNameError
        If no profile knows a setting; the message gives the nearest names.
    """
    makers = {name: getattr(each, study) for name, each in runtime.providers().items()}
    known = {name: _settings(maker) for name, maker in makers.items()}
    every = sorted(set().union(*known.values()))
    unknown = sorted(set(settings) - set(every))
    if unknown:
        raise runtime.unknown_name("setting", unknown[0], every)
    own = getattr(runtime.provider(profile), study)
    return own(**{name: settings[name] for name in settings if name in _settings(own)})


def _settings(maker) -> list[str]:
    return list(inspect.signature(maker).parameters)
