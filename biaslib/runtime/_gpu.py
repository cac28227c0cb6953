"""Whether there is a graphics card, and what that means, in words and without torch."""

import platform
import re
import shutil
import subprocess
import sys


def gpu_name() -> str | None:
    """Return the name of the graphics card that models would run on, or ``None``."""
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return "Apple"
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    done = subprocess.run([program, "-L"], capture_output=True, text=True, check=False)
    found = re.search(r"^GPU \d+: (.+?)(?: \(|$)", done.stdout, re.M)
    return found[1] if found and done.returncode == 0 else None


def gpu_advice(profile: str = "planted") -> str:
    """Return what the presence or absence of a graphics card means for a profile.

    Parameters
    ----------
    profile
        ``planted`` or ``paper``.

    Returns
    -------
    str
        A sentence or two for the reader of a notebook: what was found, and what to do about it.
    """
    name = gpu_name()
    if profile == "planted":
        found = "No GPU was found" if name is None else f"There is a GPU ({name})"
        return f"{found}, and none is needed: this runs on any laptop."
    if name is not None:
        return f"There is a GPU ({name}). The profile {profile!r} will use it."
    return (
        f"No GPU was found, and without one the profile {profile!r} takes hours. {_way_to_a_gpu()} "
        "Or choose the profile 'planted', which needs none."
    )


def _way_to_a_gpu() -> str:
    if "google.colab" in sys.modules:
        return "On Colab: Runtime, Change runtime type, a GPU; then run this cell again."
    return "Use a machine with a GPU, or Colab."
