"""What a first hour with a card should tell, measured in minutes: speed, digits, limits.

Run as ``python -m tools.benchmarks.gpu --seconds 420 --out FOLDER`` on the machine with the card,
from the root of the repository, where the package is installed with its extra ``audit``. Each
record goes to ``gpu_DEVICE.jsonl`` as soon as it is there, behind those of earlier runs:

- *ceilings*: what products and copies reach, which is what networks are measured against;
- *numerics*: how far each precision is from float64, in outputs and in the papers' measures;
- *speed*: networks of published sizes, their forward passes alone and through the public calls;
- *memory*: whether numbers stay when memory runs out;
- *study*: study 3 in the planted world, from end to end.

What fails says why, and what has no time left says so. On another device than CUDA networks have
tiny sizes, which show that this runs and nothing about speed.
"""
