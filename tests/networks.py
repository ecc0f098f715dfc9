"""Tiny Hugging Face models with no weight left at a neutral value, and their states."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModel

from rankcollapse.inputs.tokens import batches, prepare
from rankcollapse.streams import Dense
from rankcollapse.transformer import Transformer, Variant, sweep


def randomised(config: Any, seed: int = 0, dtype: torch.dtype = torch.float64) -> Any:
    """A live model whose biases and norm weights are random too, so that none can be forgotten."""
    torch.manual_seed(seed)
    model = AutoModel.from_config(config).to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    return model


def states(
    model: Transformer, inputs: Mapping[str, Any], variant: str | Variant = "transformer"
) -> list[dict[Any, Tensor]]:
    """Per sample, the state of its real tokens at every layer, with the model's own pass."""
    chosen = Variant.parse(variant) if isinstance(variant, str) else variant
    samples = prepare(inputs, model.read_tokenizer, model.architecture)
    parts = batches(samples, 64, None, model.device)
    embedding = model.read_embedding()
    result: list[dict[Any, Tensor]] = [{} for _ in samples]
    visits = sweep(
        (embedding(b.ids, b.positions, b.types) for b in parts),
        [b.layout for b in parts],
        model.blocks,
        model.final_norm,
        [chosen],
        Dense(model.dtype),
    )
    with torch.no_grad():
        for visit in visits:
            for row, sample in enumerate(parts[visit.batch].samples):
                result[sample][visit.layer] = visit.state[row]
    return result


def relative_error(ours: Tensor, theirs: Tensor) -> float:
    """Largest difference over the largest entry."""
    return float((ours - theirs).abs().max() / theirs.abs().max())


def ids(rows: Iterable[int], vocabulary: int = 99, seed: int = 0) -> list[list[int]]:
    """Random token ids, one row per length."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(4, vocabulary, (n,), generator=generator).tolist() for n in rows]
