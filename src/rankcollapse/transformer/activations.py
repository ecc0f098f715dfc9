"""The activations that families use, each with the derivative that differences need.

Names are Hugging Face's. Cost: one elementwise pass.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Elementwise = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Activation:
    """A function of one number.

    Attributes:
        function: The function.
        derivative: Its first derivative.
        slope: Its largest |f'|, the Lipschitz constant; infinite where there is none.
        pieces: For powers of the ReLU, the power, since differences across their kink are exact;
            None for smooth functions.
    """

    function: Elementwise
    derivative: Elementwise
    slope: float
    pieces: int | None = None


def _gelu(approximate: str, slope: float) -> Activation:
    return Activation(
        lambda x: F.gelu(x, approximate=approximate),
        lambda x: torch.ops.aten.gelu_backward(torch.ones_like(x), x, approximate=approximate),
        slope,
    )


def _swish(slope: float) -> Activation:
    def derivative(x: Tensor) -> Tensor:
        gate = torch.sigmoid(slope * x)
        return gate * (1 + slope * x * (1 - gate))

    return Activation(lambda x: x * torch.sigmoid(slope * x), derivative, _SWISH_SLOPE)


# Attained where f'' = 0: at √2 by the GELU, at roots found in 30 digits by the others; rounded up.
_GELU_SLOPE = 1.128904145185155
_TANH_GELU_SLOPE = 1.128993068658772
_SWISH_SLOPE = 1.0998393201288672
_TANH_GELU = _gelu("tanh", _TANH_GELU_SLOPE)
_SILU = Activation(F.silu, _swish(1.0).derivative, _SWISH_SLOPE)

ACTIVATIONS: dict[str, Activation] = {
    "gelu": _gelu("none", _GELU_SLOPE),
    "gelu_new": _TANH_GELU,
    "gelu_pytorch_tanh": _TANH_GELU,
    "gelu_fast": _TANH_GELU,
    "quick_gelu": _swish(1.702),
    "relu": Activation(F.relu, lambda x: (x > 0).to(x.dtype), 1.0, pieces=1),
    "relu2": Activation(lambda x: F.relu(x).square(), lambda x: 2 * F.relu(x), math.inf, pieces=2),
    "silu": _SILU,
    "swish": _SILU,
    "tanh": Activation(torch.tanh, lambda x: 1 - torch.tanh(x).square(), 1.0),
}
