"""What the decomposition by length costs, in units of one plain Hugging Face forward.

The work: BERT at random initialisation (base width), 8 samples × 128 tokens, float32, all sources.
Both run in turn, `--rounds` times, in one process; printed is the median ratio for 2, 4, 8 and 12
layers, beside what the matrix products alone would cost (the limit), the number of paths that
enumeration would list, and what it would take at one value and output product per path and layer.

    python benchmarks/decompose.py [--rounds 3] [--json results.json]
"""

import sys

sys.path.pop(0)  # this folder would put inspect.py in place of the standard module of that name

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from transformers import AutoModel, BertConfig

import rankcollapse
from rankcollapse.paths.decompose import decompose

SAMPLES, TOKENS = 8, 128


def products(layers: int, width: int, tokens: int, heads: int) -> tuple[float, float]:
    """Multiplications per token of a plain forward, and of the decomposition beside it."""
    attend, output = 2 * tokens * width, 2 * width**2
    plain = layers * (4 * width**2 + 2 * 4 * width**2 + attend)
    # Terms that enter block l: input at lengths 0 to l-1; mlp and bias likewise, from block 2 on.
    terms = sum(length + 2 * max(0, length - 1) for length in range(1, layers + 1))
    return plain, plain + terms * (output + tokens * width)


def seconds(run: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    """Runs both in turn and prints ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="also write the figures there")
    options = parser.parse_args()
    ids = torch.randint(1000, 30000, (SAMPLES, TOKENS))
    results = []
    print(f"{'layers':>6} {'forward':>9} {'decompose':>10} {'ratio':>7} {'limit':>7}  paths")
    for layers in (2, 4, 8, 12):
        config = BertConfig(num_hidden_layers=layers)
        torch.manual_seed(0)
        model = AutoModel.from_config(config).eval()
        ours = rankcollapse.load(model)

        def forward(model: torch.nn.Module = model) -> None:
            with torch.inference_mode():
                model(ids)

        def split(ours: rankcollapse.Transformer = ours) -> None:
            decompose(ours, {"input_ids": ids})

        forward()
        split()
        pairs = [(seconds(forward), seconds(split)) for _ in range(options.rounds)]
        plain, all_terms = products(layers, 768, TOKENS, 12)
        row = {
            "layers": layers,
            "forward": statistics.median(a for a, _ in pairs),
            "decompose": statistics.median(b for _, b in pairs),
            "ratio": statistics.median(b / a for a, b in pairs),
            "limit": all_terms / plain,
            "paths": float(13**layers),
        }
        results.append(row)
        print(
            f"{layers:6} {row['forward']:8.2f}s {row['decompose']:9.2f}s {row['ratio']:6.2f}× "
            f"{row['limit']:6.2f}×  {row['paths']:.1e}"
        )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"results": results, "torch": torch.__version__}, file, indent=1)


if __name__ == "__main__":
    main()
