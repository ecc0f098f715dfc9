"""The one JSON document of `--json`: the run, every metric by variant and layer, the rates."""

import json
import math
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

    from rankcollapse.theory import Rate


def json_document(dataset: "xr.Dataset") -> str:
    """Returns the results as JSON, summarised over samples.

    Args:
        dataset: what `rankcollapse.inspect` returns.

    Returns:
        An object with `metadata`, and with `variants`: for each variant a list of states in order,
        each with its `layer` (0 is the state that enters the first block; `"final_norm"` the one
        after a final norm), `at_floor` (share of samples, where the residual was measured) and
        `{"mean": ..., "std": ...}` for each metric; per head these are lists, and one list where
        samples have no part in it. `rates` has, for each variant, what theory expects of its rate
        and what was measured (`rankcollapse.theory.Rate`). A number that does not exist (the
        deviation of one sample, attention at layer 0) is null.
    """
    from rankcollapse.report.metadata import metadata
    from rankcollapse.report.summary import layer_labels, per_state_variables, summarize
    from rankcollapse.theory import rates

    states: dict[str, list[dict[str, Any]]] = {
        str(variant): [{"layer": _layer(label)} for label in layer_labels(dataset)]
        for variant in dataset["variant"].values
    }
    for name in per_state_variables(dataset):
        rows = summarize(dataset, name).to_dict("records")
        # summarize goes through the variants and their states in the same order.
        for state, row in zip(chain.from_iterable(states.values()), rows, strict=True):
            mean = _number(row["mean"])
            state[name] = mean if name == "at_floor" else {"mean": mean, "std": _number(row["std"])}
    for name, array in dataset.data_vars.items():
        if set(array.dims) == {"variant", "sample", "layer", "head"}:
            _add_heads(states, str(name), array.transpose("variant", "layer", "head", "sample"))
        elif set(array.dims) == {"variant", "layer", "head"}:
            for layers, values in zip(states.values(), array.values, strict=True):
                for state, heads in zip(layers, values, strict=False):
                    state[str(name)] = [_number(value) for value in heads]
    document = {
        "metadata": metadata(dataset),
        "variants": states,
        "rates": [_rate(rate) for rate in rates(dataset)],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)


def _add_heads(states: dict[str, list[dict[str, Any]]], name: str, array: "xr.DataArray") -> None:
    values = array.values
    samples = values.shape[-1]
    means = values.mean(axis=-1)
    deviations = values.std(axis=-1, ddof=1) if samples > 1 else means * math.nan
    for layers, mean, std in zip(states.values(), means, deviations, strict=True):
        # A final norm is behind the last layer and has no heads.
        for state, head_means, head_stds in zip(layers, mean, std, strict=False):
            state[name] = {
                "mean": [_number(value) for value in head_means],
                "std": [_number(value) for value in head_stds],
            }


def _rate(rate: "Rate") -> dict[str, Any]:
    return {
        name: _number(value) if isinstance(value, float) else value
        for name, value in asdict(rate).items()
    }


def _layer(label: str) -> int | str:
    return int(label) if label.isdigit() else label


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
