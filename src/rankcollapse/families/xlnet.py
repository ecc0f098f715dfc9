"""XLNet: post-norm blocks whose scores have relative positions and segments added.

The content stream is measured, the one that every use without `target_mapping` runs.
"""

from typing import Any

from rankcollapse.families.family import Family, activation, require
from rankcollapse.families.tensors import Tensors
from rankcollapse.transformer import MLP, Architecture, Attention, Block, Embedding, Linear
from rankcollapse.transformer.scores import RelativePositions, Segments


class Xlnet(Family):
    """XLNet's content stream, bidirectional ("bi") or causal ("uni")."""

    title = "XLNet"
    model_types = ("xlnet",)
    covers = "post-norm, relative positions and segments in the scores; attn_type 'bi' and 'uni'"
    prefix = "transformer"
    probe = "word_embedding.weight"

    def architecture(self, config: Any) -> Architecture:
        """The sizes of an `XLNetConfig`; XLNet has no longest sequence."""
        require(not config.bi_data, "bi_data", config.bi_data, "use bi_data=False")
        require(not config.same_length, "same_length", config.same_length, "use same_length=False")
        kind = config.attn_type
        require(kind in ("bi", "uni"), "attn_type", kind, "use 'bi' or 'uni'")
        activation(config, "ff_activation")
        return Architecture(
            config.n_layer, config.n_head, config.d_model, config.vocab_size, None, "post"
        )

    def embedding(self, config: Any, read: Tensors) -> Embedding:
        """The bare word embedding: positions act in the scores."""
        return Embedding(read("word_embedding.weight", config.vocab_size, config.d_model))

    def block(self, config: Any, read: Tensors, index: int) -> Block:
        """One `XLNetLayer`."""
        name, width, inner = f"layer.{index}", config.d_model, config.d_inner
        heads, size = config.n_head, config.d_head

        def weight(part: str) -> Any:
            return read(f"{name}.rel_attn.{part}", width, heads, size).flatten(1)

        def offset(part: str) -> Any:
            return read(f"{name}.rel_attn.{part}", heads, size)

        # The content query carries r_w_bias; the other terms ask for their own bias in its place.
        content = offset("r_w_bias")
        return Block(
            Attention(
                Linear(weight("q").T, content.flatten()),
                Linear(weight("k").T),
                Linear(weight("v").T),
                Linear(weight("o")),
                heads=heads,
                key_heads=heads,
                scale=size**-0.5,
                causal=config.attn_type == "uni",
                terms=(
                    RelativePositions(
                        weight("r").T, offset("r_r_bias") - content, config.clamp_len
                    ),
                    Segments(
                        read(f"{name}.rel_attn.seg_embed", 2, heads, size),
                        offset("r_s_bias") - content,
                    ),
                ),
            ),
            MLP(
                read.linear(f"{name}.ff.layer_1", width, inner),
                read.linear(f"{name}.ff.layer_2", inner, width),
                activation(config, "ff_activation"),
            ),
            read.norm(f"{name}.rel_attn.layer_norm", width, config.layer_norm_eps),
            read.norm(f"{name}.ff.layer_norm", width, config.layer_norm_eps),
            "post",
        )
