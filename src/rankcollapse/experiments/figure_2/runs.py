"""One run of Figure 2: a model in four variants, in plain floating point and in `Centered`."""

from collections.abc import Callable
from dataclasses import replace

import xarray as xr

from rankcollapse.experiments.figure_2.base_models import BASE_MODELS
from rankcollapse.experiments.figure_2.word_ids import word_ids
from rankcollapse.inputs.documents import biographies

VARIANTS: tuple[str, ...] = ("san", "san+mlp", "san+skip", "transformer")
SURGERY = {"bert": "-attention_skip"}
"""What san+mlp is in the paper's code, where there are published curves of it."""

DENSE = {"relative_residual": "relative_residual", "at_floor": "at_floor"}
CENTERED = {
    "log10_relative_residual": "centered_log10_relative_residual",
    "dense_log10_relative_residual": "float64_log10_relative_residual",
}
"""What is kept of each arithmetic's run, with the names that it gets."""

Progress = Callable[[float, float], None]


def initial(
    family: str,
    seed: int,
    tokens: int,
    samples: int,
    centered_samples: int,
    as_published: bool,
    progress: Progress,
) -> xr.Dataset:
    """Measures a base model at random initialisation, in both arithmetics."""
    from rankcollapse.families.load import load

    base = BASE_MODELS[family]
    model = load(base.config(), init="random", seed=seed)
    ids = word_ids(biographies()[:samples], tokens, base.before, base.after, base.lowercase)
    inputs = {"input_ids": ids}, {"input_ids": ids[:centered_samples]}
    further = () if as_published or family not in SURGERY else (SURGERY[family],)
    return _measure(model, *inputs, tokens, as_published, progress, further)


def pretrained(
    source: str,
    name: str,
    tokens: int,
    samples: int,
    centered_samples: int,
    as_published: bool,
    progress: Progress,
) -> xr.Dataset:
    """Measures a pretrained model on the same texts, taken apart by its own tokenizer."""
    from rankcollapse.families.load import load

    model = replace(load(source), name=name)
    texts = biographies()[:samples]
    return _measure(model, texts, texts[:centered_samples], tokens, as_published, progress)


def _measure(
    model: object,
    inputs: object,
    few_inputs: object,
    tokens: int,
    as_published: bool,
    progress: Progress,
    further: tuple[str, ...] = (),
) -> xr.Dataset:
    """Measures all variants; `further` ones in plain floating point only."""
    from rankcollapse.inspection import inspect

    def measured(
        inputs: object, variants: tuple[str, ...], arithmetic: str, start: float
    ) -> xr.Dataset:
        return inspect(
            model,
            inputs,  # pyright: ignore[reportArgumentType]
            variants,
            arithmetic,
            as_published,
            metrics=("residual",),
            tokens=tokens,
            progress=lambda done, total: progress(start + done / total, 2),
        )

    dense = measured(inputs, (*VARIANTS, *further), "dense", 0)
    centered = measured(few_inputs, VARIANTS, "centered", 1)
    apart = centered[list(CENTERED)].rename(CENTERED).reindex_like(dense)
    return dense[list(DENSE)].merge(apart, join="exact").assign_attrs(dense.attrs)
