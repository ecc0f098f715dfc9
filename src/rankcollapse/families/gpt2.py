"""GPT-2: pre-norm blocks, learned positions, causal mask, a final norm."""

from typing import Any

from rankcollapse.families.family import Family, activation, head_size, require
from rankcollapse.families.tensors import Tensors
from rankcollapse.transformer import MLP, Architecture, Attention, Block, Embedding, Linear, Norm


class Gpt2(Family):
    """GPT-2 decoders."""

    title = "GPT-2"
    model_types = ("gpt2",)
    covers = "pre-norm, causal mask, learned absolute positions, final norm"
    prefix = "transformer"
    probe = "wte.weight"

    def architecture(self, config: Any) -> Architecture:
        """The sizes of a `GPT2Config`."""
        cross = config.add_cross_attention
        require(not cross, "add_cross_attention", cross, "only self-attention stacks are measured")
        activation(config, "activation_function")
        head_size(config.n_embd, config.n_head)
        return Architecture(
            config.n_layer,
            config.n_head,
            config.n_embd,
            config.vocab_size,
            config.n_positions,
            "pre",
            config.vocab_size,  # segments are embedded with the tokens' own table
        )

    def embedding(self, config: Any, read: Tensors) -> Embedding:
        """Token and position embeddings."""
        tokens = read("wte.weight", config.vocab_size, config.n_embd)
        return Embedding(tokens, read("wpe.weight", config.n_positions, config.n_embd), tokens)

    def block(self, config: Any, read: Tensors, index: int) -> Block:
        """One `GPT2Block`."""
        name, width = f"h.{index}", config.n_embd
        inner = config.n_inner or 4 * width
        scale = head_size(width, config.n_head) ** -0.5 if config.scale_attn_weights else 1.0
        if config.scale_attn_by_inverse_layer_idx:
            scale /= index + 1
        query, key, value = _split(_conv(read, f"{name}.attn.c_attn", width, 3 * width), width)
        return Block(
            Attention(
                query,
                key,
                value,
                _conv(read, f"{name}.attn.c_proj", width, width),
                heads=config.n_head,
                key_heads=config.n_head,
                scale=scale,
                causal=True,
            ),
            MLP(
                _conv(read, f"{name}.mlp.c_fc", width, inner),
                _conv(read, f"{name}.mlp.c_proj", inner, width),
                activation(config, "activation_function"),
            ),
            read.norm(f"{name}.ln_1", width, config.layer_norm_epsilon),
            read.norm(f"{name}.ln_2", width, config.layer_norm_epsilon),
            "pre",
        )

    def final_norm(self, config: Any, read: Tensors) -> Norm:
        """The LayerNorm that Hugging Face's last hidden state has behind it."""
        return read.norm("ln_f", config.n_embd, config.layer_norm_epsilon)


def _conv(read: Tensors, name: str, inputs: int, outputs: int) -> Linear:
    """A `Conv1D`, which stores its weight as [inputs, outputs]."""
    return Linear(read(f"{name}.weight", inputs, outputs).T, read(f"{name}.bias", outputs))


def _split(linear: Linear, size: int) -> list[Linear]:
    assert linear.bias is not None
    parts = zip(linear.weight.split(size), linear.bias.split(size), strict=True)
    return [Linear(weight, bias) for weight, bias in parts]
