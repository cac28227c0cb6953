"""The families that can be trained."""

from plantedworld.training.albef import AlbefRecipe
from plantedworld.training.bert import BertRecipe
from plantedworld.training.clip import ClipRecipe
from plantedworld.training.flava import FlavaRecipe
from plantedworld.training.llava import LlavaRecipe
from plantedworld.training.lxmert import LxmertRecipe
from plantedworld.training.open_clip import OpenClipRecipe
from plantedworld.training.regions import RegionRecipe
from plantedworld.training.vilbert import VilbertRecipe
from plantedworld.training.vilt import ViltRecipe
from plantedworld.training.vision import VisionRecipe
from plantedworld.training.visualbert import VisualBertRecipe
from plantedworld.training.vit import VitRecipe
from plantedworld.training.vl_bert import VlBertRecipe

ALL = (
    VisionRecipe,
    VitRecipe,
    RegionRecipe,
    BertRecipe,
    ClipRecipe,
    OpenClipRecipe,
    VisualBertRecipe,
    LxmertRecipe,
    ViltRecipe,
    FlavaRecipe,
    VilbertRecipe,
    AlbefRecipe,
    VlBertRecipe,
    LlavaRecipe,
)
RECIPES = {recipe.family: recipe for recipe in ALL}
"""Recipes by family, in the order of their training."""
