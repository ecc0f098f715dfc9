"""Draws docs/images/rates.png: three models at random initialisation, followed below rounding.

Pure attention (`san`) in BERT-base, XLNet-base and GPT-2, on the first tokens of bundled texts as
the pretrained model's tokenizer splits them. Prints what the README says of them.

    python tools/rates_figure.py
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import xarray as xr
from pretrained_model import folder
from transformers import AutoTokenizer, BertConfig, GPT2Config, XLNetConfig

import rankcollapse
from rankcollapse import report
from rankcollapse.inputs.documents import biographies
from rankcollapse.theory import rates

MODELS: dict[str, Any] = {
    "GPT-2": GPT2Config(),
    "XLNet-base": XLNetConfig(d_model=768, n_layer=12, n_head=12, d_inner=3072),
    "BERT-base": BertConfig(),
}
KEPT = ["relative_residual", "log10_relative_residual", "dense_log10_relative_residual", "at_floor"]


def main() -> None:
    """Measures the three, prints their layers and rates, writes the picture."""
    ids = AutoTokenizer.from_pretrained(folder())(
        biographies()[:8], truncation=True, max_length=128
    )["input_ids"]
    parts: list[xr.Dataset] = []
    run: dict[str, Any] = {}
    for name, config in MODELS.items():
        model = rankcollapse.load(config, init="random", seed=0)
        results = rankcollapse.inspect(
            model, {"input_ids": ids}, ["san"], "centered", metrics=["residual"]
        )
        (rate,) = rates(results)
        means = results.log10_relative_residual.isel(variant=0).mean("sample").values
        orders = results.local_order.isel(variant=0).mean("sample").values
        print(f"{name}\n  log10 {means.round(2).tolist()}\n  order {orders.round(3).tolist()}")
        print(f"  {rate}")
        own = json.loads(results.attrs["metadata"])
        run = {**own, **run, "variants": {**run.get("variants", {}), name: own["variants"]["san"]}}
        parts.append(results[KEPT].assign_coords(variant=[name]))
    together = xr.concat(parts, dim="variant", combine_attrs="override")
    run["model"] = "Attention alone (san)"
    together.attrs["metadata"] = json.dumps(run)
    picture = Path(__file__).parent.parent / "docs" / "images" / "rates.png"
    with tempfile.TemporaryDirectory() as scratch:
        report.write(together, Path(scratch) / "page")
        picture.write_bytes((Path(scratch) / "page" / "relative_residual.png").read_bytes())
    print(f"wrote {picture.relative_to(picture.parents[2])}")


if __name__ == "__main__":
    main()
