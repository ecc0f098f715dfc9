"""What was measured, in a few plain sentences: numbers and their comparison, no verdict beyond.

Two values are called different from a factor of two on; a claim about what holds the tokens
apart needs one part to keep a tenth of the residual where another does not.
"""

import math

import xarray as xr

from rankcollapse.report.metadata import describe, metadata
from rankcollapse.report.numbers import number, power
from rankcollapse.report.summary import FINAL_NORM, is_marked, per_state_variables, summarize

FACTOR = 2.0
MASSIVE = 10.0
SENTENCES_PER_VARIANT = 6

Rows = dict[str, dict[str, dict]]


def findings(dataset: xr.Dataset) -> list[str]:
    """Return sentences about the data set, the most important first.

    Args:
        dataset: what `rankcollapse.inspect` returns, with any variants and metrics.

    Returns:
        Sentences about the relative residual of each variant, what the skip connection and the
        MLP each keep, the final norm, the effective rank, the token cosine and massive tokens, as
        far as the data set has them.
    """
    present = per_state_variables(dataset)
    sentences: list[str] = []
    if "relative_residual" in present:
        rows = _rows(dataset, "relative_residual")
        sentences += _without_numbers(dataset)
        sentences += _through_depth(dataset, rows)
        sentences += _skip_against_mlp(rows)
        sentences += _final_norm(dataset, rows)
    sentences += _last_layer(dataset, present)
    if "largest_token_ratio" in present:
        sentences += _massive(dataset, _rows(dataset, "largest_token_ratio"))
    return sentences


def _rows(dataset: xr.Dataset, variable: str) -> Rows:
    rows: Rows = {}
    for row in summarize(dataset, variable).to_dict("records"):
        rows.setdefault(row["variant"], {})[row["layer"]] = row
    return {variant: states for variant, states in rows.items() if _has_numbers(states)}


def _without_numbers(dataset: xr.Dataset) -> list[str]:
    """Say from which layer on a variant has no numbers: a dash in a table needs a reason."""
    missing = dataset["relative_residual"].isnull().any("sample")
    dtype = metadata(dataset).get("dtype", "float")
    sentences = []
    for variant in dataset["variant"].values:
        layers = dataset["layer"].values[missing.sel(variant=variant).values]
        if len(layers):
            name = describe(dataset, str(variant))
            remedy = "; float64 reaches further" if dtype == "float32" else ""
            sentences.append(
                f"{name} the state is zero, or overflows {dtype}, from layer {layers[0]} on: its "
                f"residual has no value there{remedy}."
            )
    return sentences


def _has_numbers(states: dict[str, dict]) -> bool:
    through = _through(states)
    return not math.isnan(through[0]["mean"]) and not math.isnan(through[-1]["mean"])


def _through(states: dict[str, dict]) -> list[dict]:
    return [row for layer, row in states.items() if layer != FINAL_NORM]


def _log(row: dict) -> float:
    if row["as_log10"]:
        return row["log10_mean"]
    return math.log10(row["mean"]) if row["mean"] > 0 else -math.inf


def _value(row: dict) -> str:
    return power(row["log10_mean"]) if row["as_log10"] else number(row["mean"])


def _shown(row: dict) -> str:
    return f"{_value(row)}{' (rounding)' if is_marked(row) else ''}"


def _through_depth(dataset: xr.Dataset, rows: Rows) -> list[str]:
    if len(rows) <= SENTENCES_PER_VARIANT:
        return [_one_variant(dataset, variant, states) for variant, states in rows.items()]
    ordered = sorted(rows, key=lambda variant: _log(_through(rows[variant])[-1]))
    ends = [*ordered[:2], *ordered[-2:]]
    sentences = [_one_variant(dataset, variant, rows[variant]) for variant in ends]
    low, high = (_through(rows[ordered[n]])[-1] for n in (2, -3))
    between = (
        f"The other {len(ordered) - 4} variants end between {_value(low)} and {_value(high)} "
        f"at layer {low['layer']}."
    )
    return [*sentences, between]


def _one_variant(dataset: xr.Dataset, variant: str, states: dict[str, dict]) -> str:
    through = _through(states)
    first, last = through[0], through[-1]
    subject = f"{describe(dataset, variant)} the relative residual"
    floor = next((row for row in through if is_marked(row)), None)
    if floor is not None:
        return _to_the_floor(dataset, subject, first, floor, last)
    if last is first:
        return f"{subject} is {_value(first)} at layer {first['layer']}."
    change = _log(last) - _log(first)
    ends = f"{_value(first)} at layer {first['layer']} to {_value(last)} at layer {last['layer']}"
    if abs(change) < math.log10(FACTOR):
        verb = " remains" if change < 0 else ""
        return (
            f"{subject} is {_value(first)} at layer {first['layer']} and {_value(last)}{verb} at "
            f"layer {last['layer']}."
        )
    return f"{subject} {'falls' if change < 0 else 'rises'} from {ends}."


def _to_the_floor(dataset: xr.Dataset, subject: str, first: dict, floor: dict, last: dict) -> str:
    dtype = metadata(dataset).get("dtype")
    name = f"the rounding floor of {dtype}" if dtype else "the rounding floor"
    if floor is first:
        return f"{subject} is at {name} from layer {first['layer']} on ({_value(first)})."
    sentence = (
        f"{subject} falls from {_value(first)} at layer {first['layer']} to {name} "
        f"({_value(floor)}) at layer {floor['layer']}"
    )
    return f"{sentence}." if is_marked(last) else f"{sentence}, and ends at {_value(last)}."


def _skip_against_mlp(rows: Rows) -> list[str]:
    """Compare what the attention skip and the MLP each give back to pure attention."""
    if not {"san", "san+skip", "san+mlp"} <= rows.keys():
        return []
    last = {variant: _through(states)[-1] for variant, states in rows.items()}
    skip, mlp = last["san+skip"], last["san+mlp"]
    layer = skip["layer"]
    both = (
        f"giving back only the skip connection (san+skip) keeps {_shown(skip)} at layer {layer} "
        f"and giving back only the MLP (san+mlp) keeps {_shown(mlp)}"
    )
    if is_marked(skip) and is_marked(mlp):
        return [f"{both[0].upper()}{both[1:]}: both are at the rounding floor."]
    distance = _log(skip) - _log(mlp)
    if math.isnan(distance) or abs(distance) < math.log10(FACTOR):
        return [f"{both[0].upper()}{both[1:]}: the two are close."]
    winner, loser = ("skip connection", "MLP") if distance > 0 else ("MLP", "skip connection")
    kept = "san+skip" if distance > 0 else "san+mlp"
    lost = "san+mlp" if distance > 0 else "san+skip"
    holds = _kept(rows[kept]) >= -1 and max(_kept(rows[lost]), _kept(rows["san"])) < -1
    if holds:
        end = f"the {winner} is what holds the tokens apart"
    else:
        end = f"the {winner} keeps more than the {loser}"
    return [f"Of the two, {both}: {end}."]


def _kept(states: dict[str, dict]) -> float:
    through = _through(states)
    return _log(through[-1]) - _log(through[0])


def _main_variant(rows: Rows) -> str:
    return "transformer" if "transformer" in rows else next(reversed(rows))


def _final_norm(dataset: xr.Dataset, rows: Rows) -> list[str]:
    if not rows:
        return []
    states = rows[_main_variant(rows)]
    after = states.get(FINAL_NORM)
    if after is None or math.isnan(after["mean"]):
        return []
    before = _through(states)[-1]
    subject = describe(dataset, _main_variant(rows))
    if _value(before) == _value(after):
        return [f"{subject} the final norm leaves the relative residual at {_value(after)}."]
    return [
        f"{subject} the final norm takes the relative residual from {_value(before)} to "
        f"{_value(after)}."
    ]


def _last_layer(dataset: xr.Dataset, present: list[str]) -> list[str]:
    names = {
        "effective_rank": "the effective rank of the tokens",
        "token_cosine": "the mean pairwise token cosine",
    }
    clauses, layer = [], ""
    for variable, name in names.items():
        rows = _rows(dataset, variable) if variable in present else {}
        last = {variant: _through(states)[-1] for variant, states in rows.items()}
        if not last:
            continue
        ordered = sorted(last, key=lambda variant: last[variant]["mean"])
        low, high = ordered[0], ordered[-1]
        layer = last[low]["layer"]
        low_text, high_text = _value(last[low]), _value(last[high])
        if low_text == high_text:
            clauses.append(f"{name} is {low_text} ({', '.join(ordered)})")
        else:
            clauses.append(f"{name} lies between {low_text} ({low}) and {high_text} ({high})")
    return [f"At layer {layer} {', and '.join(clauses)}."] if clauses else []


def _massive(dataset: xr.Dataset, rows: Rows) -> list[str]:
    if not rows:
        return []
    main = _main_variant(rows)
    through = [row for row in _through(rows[main]) if not math.isnan(row["mean"])]
    largest = max(through, key=lambda row: row["mean"])
    if largest["mean"] <= MASSIVE:
        return []
    return [
        f"{describe(dataset, main)} the largest token is {number(largest['mean'])} times as long "
        f"as the median token at layer {largest['layer']}, the most of all layers: there are "
        "massive activations."
    ]
