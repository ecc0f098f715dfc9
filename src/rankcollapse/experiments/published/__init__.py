"""The paper's numbers, as far as they can be read off its figures (README.md in this folder)."""

import csv
from dataclasses import dataclass
from importlib import resources

# The figure's spelling of four architectures, and the one used everywhere else.
_SPELLED = {
    "Bert-Base, ViT-B": "BERT-base, ViT-B",
    "Bert-Large, ViT-L": "BERT-large, ViT-L",
    "DistilBert": "DistilBERT",
    "MobileBert": "MobileBERT",
}
_VARIANTS = {
    "SAN": "san",
    "SAN+MLP": "san+mlp",
    "SAN+skip": "san+skip",
    "transformer": "transformer",
}

FIGURE_2_XLNET = {1: 1.5e-3, 2: 5.5e-5, 3: 2.6e-6}
"""XLNet's relative residual at initialisation without skips and MLPs, by layer, in two digits."""


@dataclass(frozen=True)
class Residual:
    """A point of Figure 2: BERT's relative residual, mean and deviation over 32 samples."""

    panel: str
    variant: str
    layer: int
    mean: float
    std: float


@dataclass(frozen=True)
class Share:
    """A point of Figure 5: the share of paths of one length.

    `printed` is the figure's, None where it has no point; `formula` is C(L, l) H^l / (1 + H)^L.
    """

    architecture: str
    layers: int
    heads: int
    length: int
    printed: float | None
    formula: float


def figure_2_bert() -> list[Residual]:
    """Returns both panels ("init", "pretrained") with the four variants at layers 0 to 12."""
    return [
        Residual(
            row["panel"],
            _VARIANTS[row["variant"]],
            int(row["layer"]),
            float(row["mean"]),
            float(row["std"]),
        )
        for row in _rows("fig2_bert.csv")
    ]


def figure_5() -> list[Share]:
    """Returns all lengths of the nine architectures."""
    return [
        Share(
            _SPELLED.get(row["architecture"], row["architecture"]),
            int(row["L"]),
            int(row["H"]),
            int(row["path_length"]),
            float(row["proportion"]) if row["proportion"] else None,
            float(row["proportion_formula"]),
        )
        for row in _rows("fig5.csv")
    ]


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
