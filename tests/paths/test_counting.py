"""Counts against exact integers, against every path written out, and against Figure 5."""

import json
import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
import xarray as xr

import rankcollapse
from rankcollapse.errors import OptionError
from rankcollapse.experiments.published import figure_5
from rankcollapse.paths import (
    FIGURE_5,
    Stack,
    count_paths,
    length_distribution,
    length_distributions,
)

SIZES = [(1, 1), (1, 10**6), (2, 3), (6, 12), (12, 3), (12, 12), (24, 128), (96, 96), (1000, 1000)]


def exact(layers: int, heads: int) -> list[int]:
    return [math.comb(layers, n) * heads**n for n in range(layers + 1)]


@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (3, 2), (4, 3), (5, 1)])
def test_every_path_written_out(layers, heads, skips):
    choices = range(0 if skips else 1, heads + 1)
    lengths = [sum(h > 0 for h in path) for path in product(choices, repeat=layers)]
    counted = length_distribution(layers, heads, skips)
    counts = [lengths.count(n) for n in range(layers + 1)]
    assert count_paths(layers, heads, skips) == len(lengths)
    np.testing.assert_allclose(10**counted.log10_count, counts, rtol=1e-14)
    np.testing.assert_allclose(counted.share, np.array(counts) / len(lengths), rtol=1e-15)
    assert counted.is_mode.values.tolist() == [c == max(counts) for c in counts]
    assert counted.mean_length == pytest.approx(np.mean(lengths), rel=1e-14)
    assert counted.std_length == pytest.approx(np.std(lengths), rel=1e-14)
    assert counted.log10_paths == pytest.approx(math.log10(len(lengths)), rel=1e-14)


@pytest.mark.parametrize(("layers", "heads"), SIZES)
def test_against_exact_integers_in_fifty_digits(layers, heads):
    counted = length_distribution(layers, heads)
    counts, every = exact(layers, heads), (1 + heads) ** layers
    assert sum(counts) == every == count_paths(layers, heads)
    assert counted.length.values.tolist() == list(range(layers + 1))
    assert np.isfinite(counted.log10_count).all()
    assert np.isfinite(counted.log10_share).all()
    with mpmath.workdps(50):
        for length, count in enumerate(counts):
            ratio = mpmath.mpf(count) / every
            for name, log in (
                ("log10_count", mpmath.log10(count)),
                ("log10_share", mpmath.log10(ratio)),
            ):
                assert float(counted[name][length]) == pytest.approx(float(log), rel=2e-15, abs=0)
        assert float(counted.log10_paths) == pytest.approx(
            float(layers * mpmath.log10(1 + heads)), rel=2e-15
        )
    shares = [float(Fraction(count, every)) for count in counts]
    assert counted.share.values.tolist() == shares
    assert counted.share.sum() == pytest.approx(1, abs=1e-13)
    mean = Fraction(sum(n * c for n, c in enumerate(counts)), every)
    square = Fraction(sum(n * n * c for n, c in enumerate(counts)), every)
    assert counted.mean_length == pytest.approx(float(mean), rel=1e-14)
    assert counted.std_length == pytest.approx(math.sqrt(square - mean**2), rel=1e-14)
    modes = counted.length.values[counted.is_mode.values].tolist()
    assert modes == [n for n, count in enumerate(counts) if count == max(counts)]


def test_two_lengths_tie_where_layers_and_heads_are_equal():
    bert = length_distribution(12, 12)
    assert bert.length.values[bert.is_mode.values].tolist() == [11, 12]


def test_without_skips_there_is_one_length():
    gpt3 = length_distribution(96, 96, skips=False)
    assert gpt3.share.values.tolist() == [0.0] * 96 + [1.0]
    assert gpt3.log10_share[-1] == 0
    assert np.isneginf(gpt3.log10_share[:-1]).all()
    assert np.isneginf(gpt3.log10_count[:-1]).all()
    assert gpt3.log10_count[-1] == gpt3.log10_paths == pytest.approx(96 * math.log10(96))
    assert (float(gpt3.mean_length), float(gpt3.std_length)) == (96, 0)


def test_figure_5():
    points = figure_5()
    ours = length_distributions(FIGURE_5)
    sizes = {(point.architecture, point.layers, point.heads) for point in points}
    assert sizes == {(s.name, s.layers, s.heads) for s in FIGURE_5}
    assert len(points) == sum(s.layers + 1 for s in FIGURE_5)
    for point in points:
        at = {"architecture": point.architecture, "length": point.length}
        share = float(ours.share.sel(at))
        assert share == pytest.approx(point.formula, rel=1e-11, abs=0)
        assert 10 ** float(ours.log10_share.sel(at)) == pytest.approx(share, rel=1e-12, abs=0)
        # The printed shares are those of the figure, whose vertices lie on a grid of about 1e-8.
        if point.printed is not None:
            assert share == pytest.approx(point.printed, abs=1e-8)


def test_side_by_side_equals_one_by_one():
    joined = length_distributions(FIGURE_5)
    for stack in FIGURE_5:
        one = joined.sel(architecture=stack.name)
        assert (one.layers, one.heads) == (stack.layers, stack.heads)
        assert str(one.note.values) == stack.note
        alone = length_distribution(stack.layers, stack.heads)
        beyond = one.sel(length=slice(stack.layers + 1, None))
        for name, values in alone.data_vars.items():
            inside = one[name].sel(length=alone.length) if values.dims else one[name]
            np.testing.assert_array_equal(inside.values, values.values)
            assert inside.dtype == values.dtype
            assert inside.attrs == values.attrs
        assert np.isnan(beyond.share).all() and not beyond.is_mode.any()


def test_numbers_say_what_they_are_and_survive_a_file(tmp_path):
    joined = length_distributions(FIGURE_5, skips=False)
    for dataset in (joined, length_distribution(12, 12)):
        for array in dataset.data_vars.values():
            assert array.attrs["units"] == "1"
            assert array.attrs["definition"] and array.attrs["long_name"]
    joined.to_netcdf(tmp_path / "paths.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "paths.nc", engine="h5netcdf") as back:
        np.testing.assert_array_equal(back.share.values, joined.share.values)
        assert back.architecture.values.tolist() == [stack.name for stack in FIGURE_5]
        assert json.loads(back.attrs["metadata"]) == {"skips": False}


def test_numpy_integers_are_whole_numbers():
    assert count_paths(np.int64(2), np.uint8(200)) == 201**2  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("count", [count_paths, length_distribution])
@pytest.mark.parametrize("value", [0, -1, 2.0, 1.5, "12", None, True, float("nan")])
def test_wrong_sizes_are_named(count, value):
    for sizes, name in (((value, 12), "layers"), ((12, value), "heads")):
        with pytest.raises(OptionError, match=rf"^{name}=.*whole number of at least 1\.$"):
            count(*sizes)


def test_sizes_that_would_take_for_ever_are_refused():
    with pytest.raises(OptionError, match=r"layers=10001 .* at most 10000"):
        length_distribution(10_001, 1)
    with pytest.raises(OptionError, match=r"heads=1000001 .* at most 1000000"):
        count_paths(1, 1_000_001)


def test_what_cannot_be_compared():
    with pytest.raises(OptionError, match="at least one"):
        length_distributions([])
    with pytest.raises(OptionError, match="'a'"):
        length_distributions([Stack("a", 1, 1), Stack("b", 1, 1), Stack("a", 2, 1)])


def test_it_is_reached_from_the_package():
    assert rankcollapse.paths.count_paths(12, 12) == 13**12
