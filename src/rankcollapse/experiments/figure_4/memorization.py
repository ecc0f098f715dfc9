"""Memorization: sentences, and for every token a random bit that is to be learnt by heart.

The paper's sentences come from Wikipedia and news. Here they come from a text file of the user, or
are made: words drawn by Zipf's law from a lexicon that begins with the words of the bundled
biographies, the most frequent first, and goes on with invented ones, made of the same letter
triples. Either way a SentencePiece (unigram) vocabulary is trained on the text.
Cost: seconds for the vocabulary.
"""

import importlib.util
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np
import torch

from rankcollapse.errors import InputError, TokenizerError
from rankcollapse.experiments.figure_4.task import Samples, Task
from rankcollapse.inputs.documents import biographies, read_documents

SENTENCES, LENGTH, VOCABULARY = 500, 128, 30_522
LEXICON, LONGEST = 60_000, 14
TEXT_SEED = 0  # the text is part of the task: seeds differ in labels and networks


def memorization(
    generator: torch.Generator,
    text: str | None = None,
    sentences: int = SENTENCES,
    lexicon: int = LEXICON,
) -> Task:
    """500 sequences of 128 tokens, each token with a label of 0 or 1 drawn at random.

    Tested on what is trained on. Tokens do not know their position, of which the text says nothing
    and the published code has none: a token that comes twice in a sequence has one state and two
    labels, so not everything can be learnt (`baselines.attainable`). Ids are numbered anew, without
    the pieces that occur nowhere, whose embedding would never be trained.

    Args:
        generator: Draws the labels.
        text: A .txt, .jsonl or .parquet file; None for sentences made here.
        sentences: Number of sequences.
        lexicon: Words to draw from where the sentences are made here.

    Raises:
        InputError: The text cannot be read or is too short.
    """
    ids = token_ids(text, sentences, lexicon)
    used, compact = np.unique(ids, return_inverse=True)
    inputs = torch.from_numpy(compact.reshape(ids.shape))
    labels = torch.randint(2, tuple(inputs.shape), generator=generator)
    samples = Samples(inputs, labels)
    return Task("memorization", samples, samples, 2, len(used), positions=False)


def token_ids(text: str | None, sentences: int, lexicon: int) -> np.ndarray:
    """Ids (sentence × 128) under a vocabulary trained on the same text."""
    lines = read_documents(text) if text is not None else None
    if isinstance(lines, dict):
        raise InputError(f"{text} holds token ids: memorization needs text to train a vocabulary.")
    if lines is None:
        known = words(lexicon)
        lines = sentences_of(known, sentences)
        encode = vocabulary([*lines, *known])
    else:
        encode = vocabulary(lines)
    found = [i for line in encode(lines) for i in line]
    if len(found) < sentences * LENGTH:
        raise InputError(
            f"{text} has {len(found)} tokens: memorization needs {sentences} × {LENGTH} = "
            f"{sentences * LENGTH}, so give a longer text."
        )
    return np.array(found[: sentences * LENGTH]).reshape(sentences, LENGTH)


def vocabulary(lines: list[str]) -> Callable[[list[str]], list[list[int]]]:
    """Trains up to 30522 pieces, fewer where the text does not have as many, on one thread.

    Returns:
        What turns lines into ids.

    Raises:
        TokenizerError: The sentencepiece package is missing.
    """
    check_installed()
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="unigram",
        vocab_size=VOCABULARY,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return SentencePieceProcessor(model_proto=model.getvalue()).encode


def check_installed() -> None:
    """Makes sure that a vocabulary can be trained.

    Raises:
        TokenizerError: The sentencepiece package is missing.
    """
    if importlib.util.find_spec("sentencepiece") is None:
        raise TokenizerError(
            "the package sentencepiece, which trains the vocabulary for memorization, is missing: "
            "install rankcollapse[reproduce]."
        )


def words(count: int) -> list[str]:
    """The words and marks of the bundled biographies, most frequent first, then invented words.

    Invented words are drawn letter by letter, given the two before, as in the biographies' words.
    """
    found = Counter(re.findall(r"[^\W\d_]+|\S", " ".join(biographies())))
    lexicon = [word for word, _ in found.most_common()]
    follows: dict[str, list[str]] = defaultdict(list)
    for word in lexicon:
        if len(word) > 2:
            lower = f"  {word.lower()} "
            for at in range(2, len(lower)):
                follows[lower[at - 2 : at]].append(lower[at])
    generator = np.random.default_rng(TEXT_SEED)
    known = set(lexicon)
    while len(lexicon) < count:
        word = "  "
        while len(word) == 2 or word[-1] != " ":
            choices = follows[word[-2:]]
            word += choices[generator.integers(len(choices))]
        word = word.strip()
        if 2 < len(word) <= LONGEST and word not in known:
            known.add(word)
            lexicon.append(word)
    return lexicon


def sentences_of(lexicon: list[str], count: int) -> list[str]:
    """Lines of 128 words, each drawn with probability ∝ 1/(rank + 1), ranks from 1."""
    generator = np.random.default_rng(TEXT_SEED)
    weights = 1 / (np.arange(len(lexicon)) + 2)
    drawn = generator.choice(len(lexicon), (count, LENGTH), p=weights / weights.sum())
    return [" ".join(lexicon[word] for word in line) for line in drawn]
