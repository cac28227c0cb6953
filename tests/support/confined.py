"""A Python that may neither reach a host nor start a program, and says when something tried.

``python -m support.confined CODE`` runs code in a fresh process whose every attempt is refused by
the interpreter itself, and exits with 3 and a line for each attempt, also for one that the code
has caught.
"""

import importlib
import os
import subprocess
import sys
import traceback
from pathlib import Path

REFUSED = {
    *("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"),
    *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile"),
}
ATTEMPTED = 3
ROOT = Path(__file__).resolve().parents[2]
OF_A_HUB = ("HF_", "BIASLIB_")
IMPORTED = ("matplotlib.pyplot", "torch", "torchvision", "transformers", "open_clip")
"""Libraries that start a program when they are imported, such as ldconfig; imported before."""


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    """Run code in such a process, with no hub or folder of downloads but those that are given."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    own = {name: value for name, value in os.environ.items() if not name.startswith(OF_A_HUB)}
    return subprocess.run(
        [sys.executable, "-m", "support.confined", code],
        cwd=ROOT,
        env={**own, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def main() -> None:
    attempts = []

    def refuse(event, arguments):
        if event == "socket.connect" and isinstance(arguments[1], str):
            return  # a socket of this machine, by which workers hand on pictures
        if event in REFUSED:
            attempts.append(f"{event} {arguments!r:.200}")
            raise PermissionError(f"refused: {attempts[-1]}")

    for name in IMPORTED:
        importlib.import_module(name)
    code, status = compile(sys.argv[1], "confined", "exec"), 0
    sys.addaudithook(refuse)
    try:
        exec(code, {"__name__": "__main__"})
    except Exception:
        traceback.print_exc()
        status = 1
    for each in attempts:
        print(each, file=sys.stderr)
    raise SystemExit(ATTEMPTED if attempts else status)


if __name__ == "__main__":
    main()
