"""The families that can be trained."""

from biaslib.training.albef import AlbefRecipe
from biaslib.training.bert import BertRecipe
from biaslib.training.clip import ClipRecipe
from biaslib.training.flava import FlavaRecipe
from biaslib.training.lxmert import LxmertRecipe
from biaslib.training.open_clip import OpenClipRecipe
from biaslib.training.regions import RegionRecipe
from biaslib.training.vilbert import VilbertRecipe
from biaslib.training.vilt import ViltRecipe
from biaslib.training.vision import VisionRecipe
from biaslib.training.visualbert import VisualBertRecipe
from biaslib.training.vit import VitRecipe
from biaslib.training.vl_bert import VlBertRecipe

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
)
RECIPES = {recipe.family: recipe for recipe in ALL}
"""Recipes by family, in the order of their training."""
