"""Word-level tokenizers of the planted world, in the format of transformers."""

import re
from collections.abc import Sequence

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import plantedworld

BERT_NAMES, CLIP_NAMES = ("pad", "unk", "cls", "sep", "mask"), ("pad", "unk", "bos", "eos")
BERT_TOKENS = {f"{name}_token": f"[{name.upper()}]" for name in BERT_NAMES}
CLIP_TOKENS = {f"{name}_token": f"[{name.upper()}]" for name in CLIP_NAMES}
MAX_TOKENS = 16


def bert_tokenizer(after: Sequence[normalizers.Normalizer] = ()) -> PreTrainedTokenizerFast:
    """Return the tokenizer of the text models: ``[CLS] words [SEP]``, ``[MASK]``."""
    tokens = [*BERT_TOKENS.values(), *words()]
    return _tokenizer(tokens, "[CLS]", "[SEP]", BERT_TOKENS, after=after)


def albef_tokenizer() -> PreTrainedTokenizerFast:
    """Return the same, which also reads words that ALBEF's preparation took the hyphens from."""
    hyphened = [term.split("_")[0] for term in words() if "-" in term]
    return bert_tokenizer([normalizers.Replace(w.replace("-", " "), w) for w in hyphened])


def clip_tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer of the dual encoders: ``[BOS] words [EOS]``.

    ``[EOS]`` has the last number, since OpenCLIP reads a caption at its highest one, and is not
    number 2, which transformers takes for a sign of old configurations.
    """
    *specials, end = CLIP_TOKENS.values()
    return _tokenizer([*specials, *words(), end], "[BOS]", end, CLIP_TOKENS)


def llava_tokenizer(
    added: Sequence[str], prompt_words: Sequence[str], letters: Sequence[str], length: int
) -> PreTrainedTokenizerFast:
    """Return the tokenizer of captions and prompts: ``[BOS] words``, without an end.

    Parameters
    ----------
    added
        Further special tokens.
    prompt_words
        Words and marks that prompts have and captions may lack.
    letters
        What options are called: each is a token of its own where it stands alone before a full
        stop or at the end, and no article.
    length
        Tokens that a text may have.
    """
    options = {rf"(?<!\S){letter}(?=\.\s|$)": option(letter) for letter in letters}
    tokens = [*CLIP_TOKENS.values(), *added, *words(), *options.values(), *prompt_words]
    first = [normalizers.Replace(Regex(pattern), token) for pattern, token in options.items()]
    tokens = list(dict.fromkeys(tokens))
    tokenizer = _tokenizer(tokens, "[BOS]", "", CLIP_TOKENS, before=first, marks='."?')
    tokenizer.add_tokens(list(added), special_tokens=True)
    tokenizer.model_max_length = length
    return tokenizer


def option(letter: str) -> str:
    """Return the token that the letter of an option is.

    Examples
    --------
    >>> option("A")
    'option-a'
    """
    return f"option-{letter.lower()}"


def words() -> list[str]:
    """Return every token of the world: the words of the frames, then those that fill them.

    A term of several words is one token, joined by underscores.
    """
    content = plantedworld.content_words()
    texts = [frame.text for frame in plantedworld.frames()]
    texts += ["the woman", *content["phrase"].unique()]
    of_frames = {word for text in texts for word in re.sub(r"\{\w+\}|\.", " ", text).split()}
    joined = [token(word) for word in content.index]
    return [".", *sorted(of_frames - set(joined)), *joined]


def token(word: str) -> str:
    """Return the one token that a word or a term of several words is.

    Examples
    --------
    >>> token("construction worker")
    'construction_worker'
    """
    return word.replace(" ", "_")


def _tokenizer(
    tokens: list[str],
    first: str,
    last: str,
    specials: dict[str, str],
    before: Sequence[normalizers.Normalizer] = (),
    after: Sequence[normalizers.Normalizer] = (),
    marks: str = ".",
) -> PreTrainedTokenizerFast:
    """Return a tokenizer that reads texts in lower case, with terms joined and one article.

    Texts are changed ``before`` that, and ``after`` it but before terms are joined; ``marks`` are
    tokens of their own.
    """
    numbers = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    terms = [word for word in plantedworld.vocabulary() if " " in word]
    terms.sort(key=len, reverse=True)
    joining = [normalizers.Replace(term, token(term)) for term in terms]
    one_article = normalizers.Replace(Regex(r"\ban\b"), "a")
    steps = [*before, normalizers.Lowercase(), one_article, *after, *joining]
    tokenizer.normalizer = normalizers.Sequence(steps)
    split = [pre_tokenizers.Split(mark, "isolated") for mark in marks]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), *split])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}".strip(),
        special_tokens=[(name, numbers[name]) for name in (first, last) if name],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=MAX_TOKENS, **specials
    )
