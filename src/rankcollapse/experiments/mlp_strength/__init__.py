"""§3.2's tug-of-war: collapse and robustness as MLPs grow stronger."""

from rankcollapse.experiments.mlp_strength.mlp_strength import EXPERIMENT

__all__ = ["EXPERIMENT"]
