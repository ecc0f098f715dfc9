"""Which token a decomposition was projected on: kept in its metadata, said in its sentences."""

import json
from collections.abc import Mapping
from typing import Any

import xarray as xr

from rankcollapse.report.metadata import metadata


def name_target(dataset: xr.Dataset, target: Mapping[str, Any]) -> xr.Dataset:
    """Return the data set with its target in the metadata.

    Args:
        dataset: what `rankcollapse.decompose` returns.
        target: `token` (text), `id` and `position`, negative where counted from the end.
    """
    run = metadata(dataset) | {"target": dict(target)}
    return dataset.assign_attrs(metadata=json.dumps(run))


def target_name(dataset: xr.Dataset) -> str:
    """Return the target as the end of a phrase: "'cat' at the last token", or "the target"."""
    target = metadata(dataset).get("target")
    if not isinstance(target, dict):
        return "the target"
    position = int(target["position"])
    if position == -1:
        where = "the last token"
    elif position < 0:
        where = f"token {-position} from the end"
    else:
        where = f"token {position}"
    token = target["token"]
    return f"{token if token == '#' + str(target['id']) else repr(token)} at {where}"
