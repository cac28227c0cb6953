"""A Colab user's way: a wheel, no clone, torch and NumPy left as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# As on Colab, torchvision is there and fits torch: OpenCLIP needs it, and its newest release
# would bring the newest torch.
OTHERS = ["torch==2.12.1", "torchvision==0.27.1", "numpy==2.3.5", "ipykernel", "nbconvert"]


@pytest.mark.minutes
def test_every_notebook_runs_beside_other_versions_of_torch_and_numpy(tmp_path):
    """Build the wheel, install it beside other versions, run the notebooks in an empty folder."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "colab")], check=True)
    python = tmp_path / "colab" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *OTHERS], check=True)
    done = subprocess.run(
        [python, ROOT / "tools" / "run_like_colab.py"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"running {notebook.name}" in done.stdout
    assert "'torch': '2.12.1" in done.stdout
    assert "'torchvision': '0.27.1" in done.stdout
    assert "'numpy': '2.3.5'} unchanged" in done.stdout
