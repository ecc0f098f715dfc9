"""From texts, lists, arrays and padded batches to the same real tokens; and every wrong input."""

import hashlib
import importlib.util
import re
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BatchEncoding, PreTrainedTokenizerFast

from rankcollapse.errors import InputError, TokenizerError
from rankcollapse.inputs import tokens as module
from rankcollapse.inputs.tokens import Sample, batches, digest, prepare
from rankcollapse.transformer import Architecture

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "saw", "a", "dog", "##s"]
CPU = torch.device("cpu")
SIZES = Architecture(
    layers=2, heads=2, width=8, vocabulary=50, positions=12, placement="post", segments=2
)
UNLIMITED = Architecture(
    layers=2, heads=2, width=8, vocabulary=50, positions=None, placement="post"
)
ROWS = [[5, 6, 7, 8], [9, 10], [11, 12, 13]]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    vocabulary = {word: index for index, word in enumerate(WORDS)}
    wordpiece = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    wordpiece.normalizer = normalizers.BertNormalizer()
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=wordpiece,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


@pytest.fixture(scope="module")
def unchecked() -> ModuleType:
    """The same source without the tests' runtime type checks, which would raise in its place."""
    spec = importlib.util.spec_from_file_location("unchecked_tokens", str(module.__file__))
    assert spec is not None and spec.loader is not None
    plain = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = plain
    spec.loader.exec_module(plain)
    return plain


def no_tokenizer() -> Any:
    raise AssertionError("token ids need no tokenizer")


def read(inputs: Any, architecture: Architecture = SIZES, **options: Any) -> list[Sample]:
    return prepare(inputs, no_tokenizer, architecture, **options)


def found(samples: list[Sample]) -> list[list[int]]:
    return [sample.ids.tolist() for sample in samples]


def padded(side: str = "right") -> dict[str, list[list[int]]]:
    longest = max(map(len, ROWS))
    result: dict[str, list[list[int]]] = {"input_ids": [], "attention_mask": []}
    for row in ROWS:
        fill = [0] * (longest - len(row))
        ones = [1] * len(row)
        result["input_ids"].append(fill + row if side == "left" else row + fill)
        result["attention_mask"].append(fill + ones if side == "left" else ones + fill)
    return result


class TestTexts:
    def test_ids_are_the_tokenizers_and_nothing_is_padded(self, tokenizer):
        texts = ["The cat saw dogs", "a dog", "the the the the"]
        samples = prepare(texts, lambda: tokenizer, SIZES)
        assert found(samples) == [tokenizer(text)["input_ids"] for text in texts]
        assert found(samples)[0] == [2, 4, 5, 6, 8, 9, 3]
        for sample in samples:
            assert sample.positions.tolist() == list(range(len(sample.ids)))
            assert sample.special is not None
            assert sample.special.tolist() == [i in (2, 3) for i in sample.ids]
            assert sample.types is None or not sample.types.any()

    def test_one_text_alone(self, tokenizer):
        assert found(prepare("a dog", lambda: tokenizer, SIZES)) == [[2, 7, 8, 3]]

    def test_tokens_uses_the_first_ones_and_keeps_the_closing_token(self, tokenizer):
        samples = prepare(["the cat saw a dog", "a dog"], lambda: tokenizer, SIZES, tokens=5)
        assert found(samples) == [[2, 4, 5, 6, 3], [2, 7, 8, 3]]

    def test_too_long_is_an_error_unless_told_to_cut(self, tokenizer):
        texts = ["a dog", "cat " * 20]
        with pytest.raises(InputError) as error:
            prepare(texts, lambda: tokenizer, SIZES)
        message = str(error.value)
        assert "input 1" in message and "22 tokens" in message and "12 positions" in message
        assert "truncate=True" in message and "tokens=12" in message
        samples = prepare(texts, lambda: tokenizer, SIZES, truncate=True)
        assert found(samples) == [[2, 7, 8, 3], [2] + [5] * 10 + [3]]
        both = prepare(texts, lambda: tokenizer, SIZES, truncate=True, tokens=7)
        assert found(both) == [[2, 7, 8, 3], [2] + [5] * 5 + [3]]
        more = prepare(texts, lambda: tokenizer, SIZES, truncate=True, tokens=500)
        assert found(more)[1] == [2] + [5] * 10 + [3]

    def test_exactly_as_long_as_the_positions_is_not_too_long(self, tokenizer):
        assert len(prepare("cat " * 10, lambda: tokenizer, SIZES)[0].ids) == 12
        with pytest.raises(InputError, match="13 tokens"):
            prepare("cat " * 11, lambda: tokenizer, SIZES)

    def test_a_model_without_positions_takes_any_length(self, tokenizer):
        assert len(prepare("cat " * 300, lambda: tokenizer, UNLIMITED)[0].ids) == 302
        cut = prepare("cat " * 300, lambda: tokenizer, UNLIMITED, truncate=True)
        assert len(cut[0].ids) == 302

    @pytest.mark.parametrize("text", ["", " ", "\n\t \u3000"])
    def test_empty_text_is_named(self, tokenizer, text):
        with pytest.raises(InputError, match="text 1 is empty: remove it or give it words"):
            prepare(["a dog", text], lambda: tokenizer, SIZES)

    def test_text_of_one_token(self):
        bare = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, "a")))
        bare.backend_tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        with pytest.raises(InputError, match="input 1 has one token: rank needs at least two"):
            prepare(["a a", "a"], lambda: bare, SIZES)

    def test_tokens_below_two(self, tokenizer):
        for tokens in (1, 0, -3):
            with pytest.raises(InputError, match=rf"tokens={tokens} .*at least 2"):
                prepare(["a dog"], lambda: tokenizer, SIZES, tokens=tokens)

    def test_a_tokenizer_of_another_model(self, tokenizer):
        small = Architecture(2, 2, 8, vocabulary=8, positions=12, placement="post")
        with pytest.raises(InputError, match=r"input 1 has token id 8.* vocabulary of 8"):
            prepare(["the cat", "a dog"], lambda: tokenizer, small)

    def test_no_texts(self, tokenizer):
        with pytest.raises(InputError, match="there are no inputs"):
            prepare([], lambda: tokenizer, SIZES)

    def test_not_a_tokenizer(self):
        with pytest.raises(TokenizerError, match="dict is not a tokenizer"):
            prepare(["a dog"], lambda: {}, SIZES)

    @pytest.mark.parametrize(
        ("inputs", "what"),
        [
            (["a dog", 3], "input 1 is int"),
            ([None, "a dog"], "input 0 is NoneType"),
            ([b"a dog"], "input 0 is bytes"),
            ([[2, 5, 3]], "input 0 is list"),
            (torch.tensor([[2, 5, 3]]), "input 0 is Tensor"),
        ],
    )
    def test_what_is_not_text(self, unchecked, tokenizer, inputs, what):
        with pytest.raises(InputError, match=f"{what}, not text: pass strings"):
            unchecked.prepare(inputs, lambda: tokenizer, SIZES)

    @pytest.mark.parametrize("inputs", [None, 5])
    def test_what_is_neither_texts_nor_a_mapping(self, unchecked, tokenizer, inputs):
        with pytest.raises(InputError, match=type(inputs).__name__):
            unchecked.prepare(inputs, lambda: tokenizer, SIZES)


class TestMappings:
    @pytest.mark.parametrize("side", ["left", "right"])
    @pytest.mark.parametrize(
        "kind",
        [
            lambda x: x,
            np.asarray,
            torch.tensor,
            lambda x: [np.asarray(row) for row in x],
            lambda x: [torch.tensor(row) for row in x],
            lambda x: tuple(map(tuple, x)),
            lambda x: np.asarray(x, dtype=np.int32),
            lambda x: torch.tensor(x, dtype=torch.float32),
        ],
        ids=["lists", "numpy", "tensor", "arrays", "tensors", "tuples", "int32", "whole floats"],
    )
    def test_padding_is_taken_out_and_positions_stay(self, kind, side):
        inputs = {name: kind(rows) for name, rows in padded(side).items()}
        for samples in (read(inputs), read(BatchEncoding(inputs))):
            assert found(samples) == ROWS
            for sample, row in zip(samples, ROWS, strict=True):
                start = 4 - len(row) if side == "left" else 0
                assert sample.positions.tolist() == list(range(start, start + len(row)))

    def test_bool_mask(self):
        mask = torch.tensor(padded()["attention_mask"]).bool()
        assert found(read({**padded(), "attention_mask": mask})) == ROWS

    def test_gap_in_the_middle(self):
        samples = read({"input_ids": [[5, 0, 0, 6, 7]], "attention_mask": [[1, 0, 0, 1, 1]]})
        assert found(samples) == [[5, 6, 7]]
        assert samples[0].positions.tolist() == [0, 3, 4]
        assert batches(samples, 64, None, CPU)[0].layout.positions.tolist() == [0, 3, 4]

    def test_ragged_rows_without_mask(self):
        assert found(read({"input_ids": ROWS})) == ROWS
        ragged = np.empty(3, dtype=object)
        ragged[:] = ROWS
        assert found(read({"input_ids": ragged})) == ROWS

    @pytest.mark.parametrize("row", [[5, 6, 7], np.array([5, 6, 7]), torch.tensor([5, 6, 7])])
    def test_single_row(self, row):
        mask = [1, 1, 0]
        assert found(read({"input_ids": row})) == [[5, 6, 7]]
        assert found(read({"input_ids": row, "attention_mask": mask})) == [[5, 6]]

    def test_segments_and_special_tokens_go_with_their_tokens(self):
        inputs = {
            "input_ids": [[0, 2, 5, 6, 3]],
            "attention_mask": [[0, 1, 1, 1, 1]],
            "token_type_ids": [[9, 0, 0, 1, 1]],
            "special_tokens_mask": [[1, 1, 0, 0, 1]],
        }
        sample = read(inputs)[0]
        assert sample.types is not None and sample.special is not None
        assert sample.types.tolist() == [0, 0, 1, 1]
        assert sample.special.tolist() == [True, False, False, True]
        batch = batches([sample], 64, None, CPU)[0]
        assert batch.types is not None and batch.types.tolist() == [[0, 0, 1, 1]]
        assert batch.layout.positions.tolist() == [0, 1, 2, 3]
        assert batch.positions.tolist() == [[1, 2, 3, 4]]

    def test_none_stands_for_absent(self):
        inputs = {"input_ids": ROWS, "attention_mask": None, "token_type_ids": None}
        assert found(read(inputs)) == ROWS

    @pytest.mark.parametrize("side", ["left", "right"])
    def test_tokens_uses_the_first_real_ones(self, side):
        inputs = {**padded(side), "token_type_ids": [[1, 1, 1, 1]] * 3}
        samples = read(inputs, tokens=3)
        assert found(samples) == [[5, 6, 7], [9, 10], [11, 12, 13]]
        assert [len(s.types) for s in samples if s.types is not None] == [3, 2, 3]

    def test_too_long_is_an_error_unless_told_to_cut(self):
        inputs = {"input_ids": [[5, 6], list(range(13))]}
        with pytest.raises(InputError, match=r"input 1 has 13 tokens.*12 positions.*truncate=True"):
            read(inputs)
        assert found(read(inputs, truncate=True)) == [[5, 6], list(range(12))]
        assert found(read(inputs, tokens=12))[1] == list(range(12))

    def test_left_padding_beyond_the_positions(self):
        inputs = {"input_ids": [[0] * 11 + [5, 6]], "attention_mask": [[0] * 11 + [1, 1]]}
        with pytest.raises(InputError, match=r"input 0 .*12 positions"):
            read(inputs)
        assert found(read(inputs, UNLIMITED)) == [[5, 6]]

    @pytest.mark.parametrize(
        ("inputs", "message"),
        [
            ({"input_ids": [[5, 6], [5, 50]]}, r"input 1 has token id 50, .*vocabulary of 50"),
            ({"input_ids": [[5, -1]]}, r"input 0 has token id -1, .*vocabulary of 50"),
            (
                {"input_ids": [[5, 6], [7, 8]], "attention_mask": [[1, 1], [0, 0]]},
                "row 1 is all padding: remove it",
            ),
            ({"input_ids": [[5, 6], [7]]}, "input 1 has one token: rank needs at least two"),
            (
                {"input_ids": [[5, 6, 7]], "attention_mask": [[1, 0, 0]]},
                "input 0 has one token",
            ),
            ({"input_ids": [[5, 6], []]}, "input 1 has no tokens"),
            ({"input_ids": [[5, 6.5]]}, "input_ids row 0 is not a row of integers"),
            ({"input_ids": torch.randn(2, 3)}, "input_ids row 0 is not a row of integers"),
            ({"input_ids": [[5, float("nan")]]}, "input_ids row 0 is not a row of integers"),
            ({"input_ids": [[5, float("inf")]]}, "input_ids row 0 is not a row of integers"),
            ({"input_ids": ["five", "six"]}, "input_ids row 0 is not a row of integers"),
            ({"input_ids": torch.ones(2, 3, 4).long()}, "input_ids row 0 is not a row of"),
            ({"input_ids": [[[5, 6], [7]]]}, "input_ids row 0 is not a row of"),
            ({"input_ids": [[5, None]]}, "input_ids row 0 is not a row of integers"),
            ({"input_ids": None}, "input_ids"),
            ({"input_ids": 5}, "input_ids"),
            ({"input_ids": torch.tensor(5)}, "input_ids"),
            (
                {"input_ids": [[5, 6]], "attention_mask": [[1, 1, 1]]},
                "attention_mask and input_ids differ in shape",
            ),
            (
                {"input_ids": [[5, 6], [7, 8]], "attention_mask": [[1, 1]]},
                "attention_mask and input_ids differ in shape",
            ),
            (
                {"input_ids": [[5, 6]], "token_type_ids": [[0]]},
                "token_type_ids and input_ids differ in shape",
            ),
            (
                {"input_ids": [[5, 6]], "special_tokens_mask": [[0]]},
                "special_tokens_mask and input_ids differ in shape",
            ),
            (
                {"input_ids": [[5, 6]], "attention_mask": torch.ones(1, 1, 2, 2)},
                "attention_mask",
            ),
            ({"input_ids": [[5, 6]], "attention_mask": [[1, 2]]}, "attention_mask of row 0 holds"),
            (
                {"input_ids": [[5, 6]], "attention_mask": [[0.0, float("-inf")]]},
                "attention_mask",
            ),
            ({"input_ids": [[5, 6]], "token_type_ids": [[0, 2]]}, r"input 0 has token type 2.* 2"),
            ({"input_ids": [[5, 6]], "token_type_ids": [[0, -1]]}, "input 0 has token type -1"),
            ({"input_ids": []}, "there are no inputs"),
            ({"input_ids": torch.zeros(0, 4).long()}, "there are no inputs"),
            ({}, "no input_ids"),
            ({"inputs_embeds": 0, "attention_mask": [[1]]}, r"no input_ids, only .*inputs_embeds"),
        ],
    )  # fmt: skip
    def test_wrong_input(self, inputs, message):
        with pytest.raises(InputError, match=message):
            read(inputs)

    def test_every_message_is_one_sentence_with_a_remedy(self):
        for inputs in ({"input_ids": [[5]]}, {"input_ids": [[5, 99]]}, {"input_ids": [[]]}, {}):
            with pytest.raises(InputError) as error:
                read(inputs)
            message = str(error.value)
            assert message.endswith(".") and ": " in message and "\n" not in message


class TestBatches:
    def make(self, *lengths: int, **parts: Any) -> list[Sample]:
        return [Sample(np.arange(5, 5 + n), np.arange(n), **parts) for n in lengths]

    def test_every_sample_comes_once_with_its_own_tokens(self):
        samples = self.make(3, 5, 3, 4, 5, 3)
        for limit in (1, 6, 7, 64):
            seen = {}
            for batch in batches(samples, limit, None, CPU):
                assert batch.ids.shape == batch.positions.shape
                assert batch.counted is None and batch.types is None
                assert batch.ids.numel() <= limit or len(batch.samples) == 1
                for row, sample in enumerate(batch.samples):
                    assert sample not in seen
                    seen[sample] = batch.ids[row].tolist()
            assert [seen[i] for i in range(6)] == found(samples)

    def test_samples_of_one_length_share_a_batch(self):
        parts = batches(self.make(3, 5, 3, 5, 3), 64, None, CPU)
        assert sorted(batch.samples for batch in parts) == [(0, 2, 4), (1, 3)]

    def test_equal_lengths_with_other_gaps_or_segments_stay_apart(self):
        samples = [
            Sample(np.array([5, 6, 7]), np.array([0, 1, 2])),
            Sample(np.array([5, 6, 7]), np.array([0, 2, 3])),
            Sample(np.array([5, 6, 7]), np.array([0, 1, 2]), np.array([0, 0, 1])),
            Sample(np.array([5, 6, 7]), np.array([4, 5, 6])),
        ]
        parts = batches(samples, 64, None, CPU)
        assert sorted(batch.samples for batch in parts) == [(0, 3), (1,), (2,)]
        together = next(batch for batch in parts if batch.samples == (0, 3))
        assert together.positions.tolist() == [[0, 1, 2], [4, 5, 6]]

    def test_leave_out_first(self):
        batch = batches(self.make(4), 64, "first", CPU)[0]
        assert batch.counted is not None
        assert batch.counted.tolist() == [[False, True, True, True]]
        assert batch.ids.shape == (1, 4)

    def test_leave_out_special(self, tokenizer):
        samples = prepare(["the cat", "a dogs"], lambda: tokenizer, SIZES)
        counted = {
            sample: batch.counted[row].tolist()
            for batch in batches(samples, 64, "special", CPU)
            if batch.counted is not None
            for row, sample in enumerate(batch.samples)
        }
        assert counted == {
            0: [False, True, True, False],
            1: [False, True, True, True, False],
        }

    def test_too_few_are_left(self, tokenizer):
        samples = prepare(["the cat", "dog"], lambda: tokenizer, SIZES)
        with pytest.raises(InputError, match=r"input 1 has 1 tokens once special .*at least two"):
            batches(samples, 64, "special", CPU)
        with pytest.raises(InputError, match=r"input 0 has 1 tokens once first"):
            batches(self.make(2), 64, "first", CPU)

    def test_special_tokens_of_bare_ids_are_not_guessed(self):
        with pytest.raises(InputError, match="special_tokens_mask"):
            batches(read({"input_ids": ROWS}), 64, "special", CPU)


def test_digest_knows_tokens_their_order_and_their_bounds():
    one = digest(read({"input_ids": [[5, 6, 7], [8, 9]]}))
    assert re.fullmatch("[0-9a-f]{64}", one)
    padded_same = {"input_ids": [[5, 6, 7], [0, 8, 9]], "attention_mask": [[1, 1, 1], [0, 1, 1]]}
    assert digest(read(padded_same)) == one
    others = ([[5, 6], [7, 8, 9]], [[5, 6, 7, 8, 9]], [[8, 9], [5, 6, 7]], [[5, 6, 7], [8, 10]])
    assert len({digest(read({"input_ids": rows})) for rows in others} | {one}) == 5
    little = np.array([5, 6], dtype="<i8").tobytes() + b"|"
    assert digest(read({"input_ids": [[5, 6]]})) == hashlib.sha256(little).hexdigest()
