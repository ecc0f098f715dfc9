"""A tiny random BERT with a tokenizer of a handful of words, and a way to run commands on it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
from typer.testing import CliRunner, Result

from rankcollapse.cli.app import app

WORDS = (
    *("the", "a", "cat", "dog", "bird", "house", "tree", "river", "stone", "saw", "met", "built"),
    *("found", "left", "near", "old", "new", "and"),
)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LAYERS, HEADS, POSITIONS = 3, 4, 24

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Runs `rankcollapse` with these arguments; `stdin` is what is piped into it."""

    def run(*arguments: object, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)

    return run


@pytest.fixture(scope="session")
def config() -> BertConfig:
    return BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS),
        hidden_size=32,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=64,
        max_position_embeddings=POSITIONS,
    )


@pytest.fixture(scope="session")
def model(config: BertConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with configuration, weights and tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    BertModel(config).save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def save_tokenizer(folder: Path) -> None:
    vocabulary = {word: index for index, word in enumerate((*SPECIAL, *WORDS))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    ).save_pretrained(folder)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Three documents: of 8, 7 and 12 tokens with the two special ones."""
    path = tmp_path / "text.txt"
    path.write_text(
        "the cat saw the old dog\n"
        "a bird found the river\n\n"
        "the dog left the new house and met a cat\n"
    )
    return path
