"""What an adapter reads a checkpoint through: names resolved, shapes and finiteness checked, cast.

Cost: reading a tensor costs its bytes; a cast costs a copy. Nothing is kept.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rankcollapse.errors import CheckpointError
from rankcollapse.families.weights import Weights
from rankcollapse.transformer.parts import Linear, Norm

# Checkpoints written before 2019 call a LayerNorm's weight gamma and its bias beta.
_OLD_NAMES = {".weight": ".gamma", ".bias": ".beta"}


NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True)
class Tensors:
    """A checkpoint seen by an adapter.

    Attributes:
        weights: The checkpoint.
        prefix: What stands before the base model's names, such as "bert." in a model with a head.
        dtype: What tensors are cast to; None keeps the checkpoint's own.
        device: Where tensors are put; None leaves them.
        check: Whether each tensor is searched for NaN and infinity.
    """

    weights: Weights
    prefix: str = ""
    dtype: torch.dtype | None = None
    device: torch.device | None = None
    check: bool = False

    @classmethod
    def of(cls, weights: Weights, base: str, probe: str) -> "Tensors":
        """Finds the prefix: names may start with `base` (a model with a head) or not.

        Raises:
            CheckpointError: The tensor `probe`, which each checkpoint must have, is absent.
        """
        names = set(weights.names())
        for prefix in ("", f"{base}."):
            if prefix + probe in names:
                return cls(weights, prefix)
        raise CheckpointError(
            f"the checkpoint has no tensor {probe!r} (nor {base + '.' + probe!r}); its first names "
            f"are {sorted(names)[:3]}: is it of the type that config.json says?"
        )

    def to(
        self, dtype: torch.dtype | None, device: torch.device | None, check: bool = False
    ) -> "Tensors":
        """The same checkpoint, read in another way."""
        return replace(self, dtype=dtype, device=device, check=check)

    def __call__(self, name: str, *shape: int) -> Tensor:
        """Reads a tensor.

        Raises:
            CheckpointError: It is missing, has another shape, or (with `check`) is not finite.
        """
        full = self.prefix + name
        stored = self.weights.names()
        if full not in stored:
            for new, old in _OLD_NAMES.items():
                if full.endswith(new) and full.removesuffix(new) + old in stored:
                    full = full.removesuffix(new) + old
        if full not in stored:
            raise CheckpointError(
                f"the checkpoint has no tensor {full!r}, expected with shape {list(shape)}: it is "
                "incomplete, or config.json belongs to another model."
            )
        try:
            tensor = self.weights.read(full)
        except Exception as error:  # each backend has its own types for a file cut short
            raise CheckpointError(
                f"tensor {full!r} cannot be read ({error}): the checkpoint is truncated or "
                "damaged; download or save it again."
            ) from None
        if tuple(tensor.shape) != shape:
            raise CheckpointError(
                f"tensor {full!r} has shape {list(tensor.shape)} where config.json asks for "
                f"{list(shape)}: the checkpoint and its configuration do not belong together."
            )
        if tensor.dtype not in NUMBERS:
            raise CheckpointError(
                f"tensor {full!r} is stored as {str(tensor.dtype).removeprefix('torch.')}, which "
                "needs scales to be read: save the model dequantised."
            )
        if self.check and not finite(tensor):
            raise CheckpointError(
                f"tensor {full!r} holds NaN or infinite values: the checkpoint is damaged or its "
                "training diverged; use an earlier one."
            )
        return tensor.to(self.device, self.dtype)

    def linear(self, name: str, inputs: int, outputs: int, bias: bool = True) -> Linear:
        """A `torch.nn.Linear`: weight [outputs, inputs]."""
        return Linear(
            self(f"{name}.weight", outputs, inputs),
            self(f"{name}.bias", outputs) if bias else None,
        )

    def norm(self, name: str, width: int, eps: float) -> Norm:
        """A `torch.nn.LayerNorm` with weight and bias."""
        return Norm("layer", eps, self(f"{name}.weight", width), self(f"{name}.bias", width))


def finite(tensor: Tensor) -> bool:
    """Whether all entries are finite, without a copy of the tensor."""
    low, high = torch.aminmax(tensor)  # NaN goes through both
    return bool(torch.isfinite(low) & torch.isfinite(high))
