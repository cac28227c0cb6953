"""What a first hour with a card should tell, measured in eight minutes: digits, speed, limits.

``make gpu-bundle`` packs this, the code and the tiny checkpoints that it needs into one archive
(:mod:`tools.gpu_bundle`); there ``python run_gpu.py --out FOLDER`` runs it, and in a clone
``python -m tools.benchmarks.gpu``. Each row goes to ``gpu_DEVICE.csv`` as soon as it is there,
behind those of earlier runs. In order of worth:

- *ceilings*: what products and copies reach, which is what networks are measured against;
- *numerics*: how far each precision is from float64 on the processor, in the outputs of ten
  families and in the papers' measures; *within* says whether the outputs keep the bound;
- *study*: study 3 in the planted world, from end to end;
- *memory*: whether numbers stay when memory runs out;
- *speed*: networks of published sizes with random weights, by family: their forward passes alone,
  as a share of the ceiling, the public calls, and the most memory that they take.

A part that fails, ends the process or takes too long says so in its place, and the next one begins
in a new process. On another device than CUDA everything is tiny, which shows that this runs and
nothing about speed.
"""
