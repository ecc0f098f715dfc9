"""Colours, shapes and type of the charts.

The palette is Okabe and Ito's, which readers with any colour vision tell apart, its yellow and
black replaced and each colour tuned once for white and once for near-black ground. Variants also
differ by point shape, so that nothing depends on colour alone.
"""

from dataclasses import dataclass

SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-right",
    "triangle-left",
)

# The names the paper uses keep their colour and shape whatever else is drawn beside them.
PAPER_VARIANTS = ("transformer", "san", "san+skip", "san+mlp")

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True)
class Theme:
    """What a chart looks like: colours for its ground, its text, its rules and its variants."""

    surface: str
    text: str
    muted: str
    grid: str
    palette: tuple[str, ...]
    font: str = FONT


LIGHT = Theme(
    surface="#ffffff",
    text="#1c2126",
    muted="#5b6570",
    grid="#e6e9ec",
    palette=("#0072b2", "#d55e00", "#008f68", "#c0588f", "#2490c8", "#b87d00", "#6f6f6f"),
)

DARK = Theme(
    surface="#15191d",
    text="#e8ebee",
    muted="#9aa5b0",
    grid="#2a3138",
    palette=("#4aa8e0", "#f0803c", "#2fbd92", "#e08dbb", "#8fd0f5", "#e6b030", "#b4b4b4"),
)

# Colours that the page defines for both schemes; the drawing follows without being redrawn.
PAGE = Theme(
    surface="var(--surface)",
    text="var(--text)",
    muted="var(--muted)",
    grid="var(--grid)",
    palette=tuple(f"var(--variant-{n})" for n in range(len(LIGHT.palette))),
)


def look(variants: list[str]) -> dict[str, int]:
    """Return each variant's number in the palette and among the shapes, in the given order.

    The paper's four have numbers of their own; others take the free ones in turn.
    """
    numbers = {name: n for n, name in enumerate(PAPER_VARIANTS) if name in variants}
    free = [n for n in range(len(variants) + len(PAPER_VARIANTS)) if n not in numbers.values()]
    others = [name for name in variants if name not in numbers]
    numbers |= dict(zip(others, free, strict=False))
    return {name: numbers[name] for name in variants}


def css_variables(theme: Theme) -> dict[str, str]:
    """Return the custom properties that `PAGE` refers to, with the colours of `theme`."""
    colours = {f"--variant-{n}": colour for n, colour in enumerate(theme.palette)}
    return {
        "--surface": theme.surface,
        "--text": theme.text,
        "--muted": theme.muted,
        "--grid": theme.grid,
        **colours,
    }
