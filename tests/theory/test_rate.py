import json
from typing import Any

import numpy as np
import pytest
import xarray as xr
from transformers import BertConfig, GPT2Config, XLNetConfig

import rankcollapse
from rankcollapse.theory import expected_rate, rates
from tests.networks import ids


def made(y: list[float], off: list[str], causal: bool = False) -> xr.Dataset:
    """Two samples with the given log10 residuals, as `inspect` would return them."""
    log10 = np.array([[y, y]])
    dims = ("variant", "sample", "layer")
    run = {"variants": {"v": {"off": off}}, "causal": causal, "positions_in_scores": False}
    return xr.Dataset(
        {
            "log10_relative_residual": (dims, log10),
            "at_floor": (dims, np.zeros(log10.shape, bool)),
        },
        coords={"variant": ["v"]},
        attrs={"metadata": json.dumps(run)},
    )


def test_a_cubic_sequence_is_cubic() -> None:
    (rate,) = rates(made([-1.0, -3, -9, -27, -81, -243], ["attention_skip"]))
    assert (rate.expected, rate.layers, rate.agrees) == ("cubic", (3, 5), True)
    assert rate.order == pytest.approx(3.0)


def test_a_linear_sequence_where_a_cubic_one_is_expected_does_not_agree() -> None:
    (rate,) = rates(made([-7.0, -8, -9, -10, -11], ["attention_skip"]))
    assert rate.agrees is False and rate.order == pytest.approx(1.0)
    assert rate.log10_factor == pytest.approx(-1.0)
    assert "does not agree" in str(rate)


def test_states_at_the_floor_are_not_used() -> None:
    dataset = made([-1.0, -3, -9, -27, -27.1], ["attention_skip"])
    dataset["at_floor"][0, 1, 4] = True
    (rate,) = rates(dataset)
    assert rate.layers == (3, 3)
    dataset["at_floor"][:] = True
    assert rates(dataset)[0].layers is None and rates(dataset)[0].agrees is None


@pytest.mark.parametrize(
    ("off", "causal", "positions", "expected"),
    [
        (set(), False, False, "none"),
        ({"mlp"}, True, True, "none"),
        ({"attention_skip"}, False, False, "cubic"),
        ({"attention_skip", "mlp"}, True, False, "linear"),
        ({"attention_skip", "mlp_skip"}, False, True, "linear"),
    ],
)
def test_what_the_structure_says(
    off: set[str], causal: bool, positions: bool, expected: str
) -> None:
    assert expected_rate(frozenset(off), causal, positions)[0] == expected


def test_measured_rates_agree_with_the_structure() -> None:
    small: dict[str, Any] = dict(vocab_size=99)
    configs = {
        "cubic": BertConfig(
            hidden_size=64,
            num_hidden_layers=8,
            num_attention_heads=4,
            intermediate_size=64,
            **small,
        ),
        "linear": XLNetConfig(d_model=64, n_layer=8, n_head=4, d_inner=64, **small),
        "causal": GPT2Config(n_embd=64, n_layer=24, n_head=4, n_positions=64, **small),
    }
    for name, config in configs.items():
        model = rankcollapse.load(config, init="random", seed=0)
        results = rankcollapse.inspect(
            model, {"input_ids": ids((48, 48, 48))}, ["san"], "centered", metrics=["residual"]
        )
        (rate,) = rates(results)
        assert rate.expected == ("cubic" if name == "cubic" else "linear")
        assert rate.agrees, str(rate)
        if name == "causal":
            assert rate.lambda2 == pytest.approx(0.5)  # uniform over the past: eigenvalues 1/i
        if name == "linear":
            assert rate.lambda2 is not None
            assert 0.5 < 10**rate.log10_factor / rate.lambda2 < 2
