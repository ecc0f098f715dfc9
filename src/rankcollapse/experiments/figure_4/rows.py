"""What Figure 4 says, beside what is measured here."""

import numpy as np
import xarray as xr

from rankcollapse.experiments.experiment import Row

WHOLE = {"memorization": 0.85, "sorting": 0.98, "convex hull": 0.90}
LENGTH_1 = {"memorization": 0.8, "sorting": 0.6, "convex hull": 0.65}
LABELS = (
    "the labels are the text's, the place of each letter; those of the published code, the sorted "
    "letters (--as-published), are what the paper's number belongs to"
)
ABOUT = 0.01  # a constant of the plotting code with two digits


def rows(dataset: xr.Dataset) -> list[Row]:
    """The accuracies of whole networks, of single heads, and how accuracy falls with length."""
    found = []
    for task in dataset["task"].values.tolist():
        one = dataset.sel(task=task).dropna("seed", subset=["whole_accuracy"])
        found += [_whole(task, one), *_first(task, one), _fall(task, one), *_limits(task, one)]
    return found


def _whole(task: str, one: xr.Dataset) -> Row:
    steps = int(one["steps"].max())
    return Row(
        f"{task}: whole network",
        WHOLE[task],
        "Figure 4, line",
        _each(one["whole_accuracy"]),
        ABOUT,
        f"trained until it is as accurate as the paper's, in at most {steps} steps",
    )


def _first(task: str, one: xr.Dataset) -> list[Row]:
    claim = LENGTH_1[task]
    result = []
    for count in one["count"].values.tolist():
        values = _each(one["subnetwork_accuracy"].sel(count=count, length=1).mean("repeat"))
        seen = "seen" if min(values) > claim else "not seen"
        if min(values) <= claim < max(values):
            seen = "seen in some seeds"
        remark = f"the paper has more than {claim:g}: {seen}"
        if task == "sorting" and not one.attrs.get("as_published"):
            remark += f"\n{LABELS}"
        result.append(
            Row(
                f"{task}: {count} paths of length 1",
                None,
                "§5, text",
                values,
                remark=remark,
            )
        )
    return result


def _fall(task: str, one: xr.Dataset) -> Row:
    means = one["subnetwork_accuracy"].mean("repeat").sel(count=20)
    longest = one["length"].values[-1]
    values = _each(means.sel(length=1) - means.sel(length=longest))
    profile = means.mean("seed").values
    falls = bool(np.all(np.diff(profile[1:]) <= ABOUT))
    return Row(
        f"{task}: 20 paths, length 1 less length {longest}",
        None,
        "Figure 4",
        values,
        remark="accuracy "
        + ("falls with every step of length" if falls else "does not fall with every step")
        + f": {', '.join(f'{value:.2f}' for value in profile)} from length 0 on",
    )


def _limits(task: str, one: xr.Dataset) -> list[Row]:
    result = [
        Row(f"{task}: majority by position", None, "", _each(one["position_majority"])),
    ]
    if float(one["attainable"].min()) < 1:
        result.append(
            Row(
                f"{task}: most that can be reached",
                None,
                "",
                _each(one["attainable"]),
                remark="tokens have no position here, as in the published code, so a token that "
                "comes twice in a sentence has one answer for two random labels",
            )
        )
    return result


def _each(values: xr.DataArray) -> tuple[float, ...]:
    return tuple(float(value) for value in values.values)
