"""Training of the planted world's tiny checkpoints: ``python -m plantedworld.training --help``.

>>> list(RECIPES)[:3], list(RECIPES)[3:6]
(['vision', 'vit', 'regions'], ['bert', 'clip', 'open_clip'])
>>> list(RECIPES)[6:]
['visualbert', 'lxmert', 'vilt', 'flava', 'vilbert', 'albef', 'vl_bert', 'llava']
"""

from plantedworld.training._checkpoint import make_checkpoint, plan
from plantedworld.training._recipe import Recipe, WithSideHeads
from plantedworld.training._recipes import RECIPES
from plantedworld.training._train import train

__all__ = ["RECIPES", "Recipe", "WithSideHeads", "make_checkpoint", "plan", "train"]
