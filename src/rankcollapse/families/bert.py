"""BERT: post-norm blocks, learned positions added to the tokens, bidirectional attention."""

from typing import Any

from rankcollapse.families.family import Family, activation, head_size, require
from rankcollapse.families.tensors import Tensors
from rankcollapse.transformer import MLP, Architecture, Attention, Block, Embedding


class Bert(Family):
    """BERT encoders, and BERT used as a decoder (causal mask)."""

    title = "BERT"
    model_types = ("bert",)
    covers = "post-norm, learned absolute positions; is_decoder gives a causal mask"
    prefix = "bert"
    probe = "embeddings.word_embeddings.weight"

    def architecture(self, config: Any) -> Architecture:
        """The sizes of a `BertConfig`."""
        positions = getattr(config, "position_embedding_type", "absolute")
        require(positions == "absolute", "position_embedding_type", positions, "use 'absolute'")
        cross = getattr(config, "add_cross_attention", False)
        require(not cross, "add_cross_attention", cross, "only self-attention stacks are measured")
        activation(config, "hidden_act")
        head_size(config.hidden_size, config.num_attention_heads)
        return Architecture(
            config.num_hidden_layers,
            config.num_attention_heads,
            config.hidden_size,
            config.vocab_size,
            config.max_position_embeddings,
            "post",
            config.type_vocab_size,
        )

    def embedding(self, config: Any, read: Tensors) -> Embedding:
        """Token, position and segment embeddings, then a LayerNorm."""
        return embeddings(config, read, config.hidden_size)

    def block(self, config: Any, read: Tensors, index: int) -> Block:
        """One `BertLayer`."""
        name, width = f"encoder.layer.{index}", config.hidden_size
        attention = f"{name}.attention"
        return Block(
            Attention(
                read.linear(f"{attention}.self.query", width, width),
                read.linear(f"{attention}.self.key", width, width),
                read.linear(f"{attention}.self.value", width, width),
                read.linear(f"{attention}.output.dense", width, width),
                heads=config.num_attention_heads,
                key_heads=config.num_attention_heads,
                scale=head_size(width, config.num_attention_heads) ** -0.5,
                causal=config.is_decoder,
            ),
            MLP(
                read.linear(f"{name}.intermediate.dense", width, config.intermediate_size),
                read.linear(f"{name}.output.dense", config.intermediate_size, width),
                activation(config, "hidden_act"),
            ),
            read.norm(f"{attention}.output.LayerNorm", width, config.layer_norm_eps),
            read.norm(f"{name}.output.LayerNorm", width, config.layer_norm_eps),
            "post",
        )


def embeddings(config: Any, read: Tensors, size: int) -> Embedding:
    """The embeddings that BERT and ALBERT share, of `size` features."""
    return Embedding(
        read("embeddings.word_embeddings.weight", config.vocab_size, size),
        read("embeddings.position_embeddings.weight", config.max_position_embeddings, size),
        read("embeddings.token_type_embeddings.weight", config.type_vocab_size, size),
        default_type=0,
        norm=read.norm("embeddings.LayerNorm", size, config.layer_norm_eps),
    )
