"""The three base models of Figure 2: their sizes, and how their inputs begin and end.

The values are those of the published config.json of each model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PretrainedConfig

LAYERS = 12


@dataclass(frozen=True)
class BaseModel:
    """A base model.

    Attributes:
        title: Its family's name in print.
        name: What it is called on the hub.
        config: Makes its configuration.
        before: Ids of the special tokens before a text.
        after: Ids of those behind it.
        lowercase: Whether its tokenizer makes text lower case.
    """

    title: str
    name: str
    config: "Callable[[], PretrainedConfig]"
    before: tuple[int, ...]
    after: tuple[int, ...]
    lowercase: bool


# transformers is imported by those that are called: it takes seconds.
def _bert() -> "PretrainedConfig":
    from transformers import BertConfig

    return BertConfig(
        vocab_size=28996,
        hidden_size=768,
        num_hidden_layers=LAYERS,
        num_attention_heads=12,
        intermediate_size=3072,
        hidden_act="gelu",
        max_position_embeddings=512,
        type_vocab_size=2,
        initializer_range=0.02,
        layer_norm_eps=1e-12,
    )


def _albert() -> "PretrainedConfig":
    from transformers import AlbertConfig

    return AlbertConfig(
        vocab_size=30000,
        embedding_size=128,
        hidden_size=768,
        num_hidden_layers=LAYERS,
        num_hidden_groups=1,
        inner_group_num=1,
        num_attention_heads=12,
        intermediate_size=3072,
        hidden_act="gelu_new",
        max_position_embeddings=512,
        type_vocab_size=2,
        initializer_range=0.02,
        layer_norm_eps=1e-12,
    )


def _xlnet() -> "PretrainedConfig":
    from transformers import XLNetConfig

    return XLNetConfig(
        vocab_size=32000,
        d_model=768,
        n_layer=LAYERS,
        n_head=12,
        d_inner=3072,
        ff_activation="gelu",
        attn_type="bi",
        bi_data=False,
        clamp_len=-1,
        same_length=False,
        initializer_range=0.02,
        layer_norm_eps=1e-12,
    )


BASE_MODELS = {
    "bert": BaseModel("BERT", "bert-base-cased", _bert, (101,), (102,), False),
    "albert": BaseModel("ALBERT", "albert-base-v2", _albert, (2,), (3,), True),
    "xlnet": BaseModel("XLNet", "xlnet-base-cased", _xlnet, (), (4, 3), False),
}
"""By family, in the order of the figure's columns."""
