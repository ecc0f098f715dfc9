"""The terminal's tables: they fit, and their cells say what was measured."""

import pytest
import xarray as xr
from rich.console import Console

from rankcollapse.errors import OptionError
from rankcollapse.report import table
from tests.report.synthetic import synthetic

SEVEN = ("san", "san+mlp", "san+skip", "transformer", "-mlp_skip", "-attention_norm", "-mlp")


def printed(dataset: xr.Dataset, variable: str = "relative_residual") -> list[str]:
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        for part in table(dataset, variable):
            console.print(part)
    return capture.get().splitlines()


def cells(lines: list[str], layer: str) -> list[str]:
    line = next(line for line in lines if line.split()[:1] == [layer])
    return line.split(maxsplit=1)[1].split("   ")


def test_rows_are_layers_and_columns_are_variants_in_order():
    dataset = synthetic(layers=3, samples=5)
    lines = printed(dataset)
    assert lines[0].strip() == "Relative residual, mean ± std over 5 samples"
    assert lines[1].split() == ["layer", "san", "san+mlp", "san+skip", "transformer"]
    values = dataset["relative_residual"].sel(variant="transformer", layer=2)
    expected = f"{values.mean().item():.3f} ± {values.std(ddof=1).item():.3f}"
    line = next(line for line in lines if line.split()[:1] == ["2"])
    assert line.rstrip().endswith(expected)


def test_cells_at_the_floor_are_starred_and_explained():
    lines = printed(synthetic())
    row = next(line for line in lines if line.split()[:1] == ["5"])
    assert row.count("*") == 1 and row.index("*") < row.index("e-04")
    assert any(line.startswith("* rounding") for line in lines)
    assert not any("*" in line for line in printed(synthetic(("transformer", "san+skip"))))


def test_half_of_the_samples_is_enough_for_a_star_and_less_is_not():
    dataset = synthetic(("transformer",), layers=1, samples=4)
    dataset["at_floor"][0, :2, 1] = True
    assert any("*" in line for line in printed(dataset))
    dataset["at_floor"][0, 1, 1] = False
    assert not any("*" in line for line in printed(dataset))


@pytest.mark.parametrize(
    "dataset",
    [
        synthetic(),
        synthetic(final_norm=True, layers=24),
        synthetic(deep=True),
        synthetic(SEVEN, deep=True),
        synthetic(SEVEN, samples=1),
        synthetic(cubic=True),
    ],
    ids=["plain", "final norm", "deep", "deep and many", "many", "cubic"],
)
def test_every_table_fits_eighty_columns_whole(dataset: xr.Dataset):
    for variable in ("relative_residual", "effective_rank", "token_cosine", "absolute_residual"):
        lines = printed(dataset, variable)
        assert max(len(line.rstrip()) for line in lines) <= 80
        assert not any("…" in line for line in lines)
        for variant in dataset["variant"].values:
            assert sum(str(variant) in line.split() for line in lines) >= 1


def test_more_than_four_variants_are_split_evenly():
    parts = table(synthetic(SEVEN))
    assert [len(part.columns) - 1 for part in parts] == [4, 3]
    five = table(synthetic(SEVEN[:5]))
    assert [len(part.columns) - 1 for part in five] == [3, 2]


def test_the_state_after_the_final_norm_is_the_last_row():
    lines = printed(synthetic(final_norm=True, layers=2))
    last = next(n for n, line in enumerate(lines) if line.split()[:1] == ["2"])
    assert [line.split()[0] for line in lines[last + 1 :] if line.split()][:3] == [
        "after",
        "final",
        "norm",
    ]


def test_ratios_below_the_smallest_float_are_powers_of_ten():
    lines = printed(synthetic(deep=True))
    assert any("10^(-900.2±" in line for line in lines)
    assert any(line.startswith("10^(a±b)") for line in lines)


def test_four_variants_of_centered_data_are_one_table_without_room_for_stars():
    dataset = synthetic(cubic=True)
    assert len(table(dataset)) == 1
    lines = printed(dataset)
    logs = dataset["log10_relative_residual"].sel(variant="san", layer=12)
    assert logs.mean().item() < -100_000
    expected = f"10^({logs.mean().item():.0f}±{logs.std(ddof=1).item():.2f}"
    assert expected[:12] in "".join(lines)
    rows = [line for line in lines if line.split()[:1] == ["6"]]
    assert "e-" in rows[0] and "10^" not in rows[0]
    assert all(len(line.rstrip()) == len(lines[2].rstrip()) for line in rows)


def test_one_sample_of_centered_data_has_no_caption_on_deviations():
    lines = printed(synthetic(cubic=True, samples=1))
    assert any("10^-" in line for line in lines)
    assert not any("a±b" in line for line in lines)


def test_one_sample_has_no_deviation_and_missing_values_are_dashes():
    dataset = synthetic(("transformer",), layers=1, samples=1)
    dataset["token_cosine"][0, 0, 0] = float("nan")
    lines = printed(dataset, "token_cosine")
    assert "±" not in "".join(lines)
    assert cells(lines, "0")[-1].strip() == "–"


def test_names_are_text_and_not_markup():
    dataset = synthetic(("transformer",), layers=1).assign_coords(variant=["[red]x[/red]"])
    assert any("[red]x[/red]" in line for line in printed(dataset))


def test_an_unknown_variable_is_refused():
    with pytest.raises(OptionError, match="'nonsense'"):
        table(synthetic(), "nonsense")
