"""ALBERT: BERT's block with weights shared between layers and a projection after the embedding."""

from dataclasses import replace
from typing import Any

from rankcollapse.families.bert import embeddings
from rankcollapse.families.family import Family, activation, head_size, require
from rankcollapse.families.tensors import Tensors
from rankcollapse.transformer import MLP, Architecture, Attention, Block, Embedding


class Albert(Family):
    """ALBERT encoders, with any number of groups and of layers within a group."""

    title = "ALBERT"
    model_types = ("albert",)
    covers = "post-norm, shared layers in groups, embedding projected to the width before layer 0"
    prefix = "albert"
    probe = "embeddings.word_embeddings.weight"

    def architecture(self, config: Any) -> Architecture:
        """The sizes of an `AlbertConfig`; every inner layer of a group counts as a layer."""
        positions = getattr(config, "position_embedding_type", "absolute")
        require(positions == "absolute", "position_embedding_type", positions, "use 'absolute'")
        activation(config, "hidden_act")
        head_size(config.hidden_size, config.num_attention_heads)
        return Architecture(
            config.num_hidden_layers * config.inner_group_num,
            config.num_attention_heads,
            config.hidden_size,
            config.vocab_size,
            config.max_position_embeddings,
            "post",
            config.type_vocab_size,
        )

    def embedding(self, config: Any, read: Tensors) -> Embedding:
        """BERT's embedding in `embedding_size` features, projected to the width."""
        return replace(
            embeddings(config, read, config.embedding_size),
            projection=read.linear(
                "encoder.embedding_hidden_mapping_in", config.embedding_size, config.hidden_size
            ),
        )

    def block(self, config: Any, read: Tensors, index: int) -> Block:
        """One `AlbertLayer`: of the group that this depth belongs to."""
        layer, inner = divmod(index, config.inner_group_num)
        group = int(layer / (config.num_hidden_layers / config.num_hidden_groups))
        name = f"encoder.albert_layer_groups.{group}.albert_layers.{inner}"
        width = config.hidden_size
        return Block(
            Attention(
                read.linear(f"{name}.attention.query", width, width),
                read.linear(f"{name}.attention.key", width, width),
                read.linear(f"{name}.attention.value", width, width),
                read.linear(f"{name}.attention.dense", width, width),
                heads=config.num_attention_heads,
                key_heads=config.num_attention_heads,
                scale=head_size(width, config.num_attention_heads) ** -0.5,
            ),
            MLP(
                read.linear(f"{name}.ffn", width, config.intermediate_size),
                read.linear(f"{name}.ffn_output", config.intermediate_size, width),
                activation(config, "hidden_act"),
            ),
            read.norm(f"{name}.attention.LayerNorm", width, config.layer_norm_eps),
            read.norm(f"{name}.full_layer_layer_norm", width, config.layer_norm_eps),
            "post",
        )
