"""What the `Centered` arithmetic costs, in units of plain float64 on the same work.

The work: BERT-base at random initialisation, 8 samples × 128 tokens, twelve blocks and the
relative residual after each, for `san` and `san+mlp`. Both arithmetics run in turn,
`--rounds` times, in one process; printed are medians of the ratio of neighbours. The limit is the
matrix products, which both share; beside them `Centered` forms rows of P and powers of residuals.

    python benchmarks/centered.py [--rounds 5] [--json results.json]
"""

import sys

sys.path.pop(0)  # this folder would put inspect.py in place of the standard module of that name

import argparse
import json
import statistics
import time

import torch
from transformers import BertConfig

import rankcollapse
from rankcollapse.metrics import relative_residual
from rankcollapse.streams import Centered, Dense
from rankcollapse.transformer import Arithmetic, Layout, Transformer, Variant, sweep

SAMPLES, TOKENS = 8, 128


def seconds(
    model: Transformer, states: list[torch.Tensor], variant: str, arithmetic: Arithmetic
) -> float:
    """One pass of one variant, every state measured."""
    layouts = [Layout.contiguous(TOKENS)] * len(states)
    start = time.perf_counter()
    with torch.inference_mode():
        visits = sweep(states, layouts, model.blocks, None, [Variant.parse(variant)], arithmetic)
        for visit in visits:
            relative_residual(arithmetic.tokens(visit.state, None))
    return time.perf_counter() - start


def main() -> None:
    """Runs both arithmetics in turn and prints ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="also write the figures there")
    options = parser.parse_args()
    model = rankcollapse.load(BertConfig(), init="random", seed=0, dtype="float64")
    embedding = model.read_embedding()
    ids = torch.randint(1000, 30000, (SAMPLES, TOKENS))
    positions = torch.arange(TOKENS).expand_as(ids)
    states = [embedding(*pair) for pair in zip(ids.split(4), positions.split(4), strict=True)]
    results: dict[str, dict[str, float]] = {}
    for variant in ("san", "san+mlp"):
        times: dict[str, list[float]] = {"dense": [], "centered": []}
        for arithmetic in (Dense(torch.float64), Centered()):
            seconds(model, states, variant, arithmetic)
        for _ in range(options.rounds):
            for arithmetic in (Dense(torch.float64), Centered()):
                times[arithmetic.name].append(seconds(model, states, variant, arithmetic))
        ratio = statistics.median(
            c / d for c, d in zip(times["centered"], times["dense"], strict=True)
        )
        results[variant] = {name: statistics.median(each) for name, each in times.items()}
        results[variant]["ratio"] = ratio
        print(
            f"{variant:8} dense {results[variant]['dense']:.2f} s, "
            f"centered {results[variant]['centered']:.2f} s, ratio {ratio:.2f} ×"
        )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"results": results, "torch": torch.__version__}, file, indent=1)


if __name__ == "__main__":
    main()
