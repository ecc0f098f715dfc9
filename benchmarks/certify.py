"""What `certify` costs, in units of the `Centered` pass that it bounds, and its memory.

The work: BERT-base at random initialisation, 8 samples × 128 tokens, twelve blocks, for `san` and
`transformer`: every bound at every layer, against the same pass with the residual alone. Both run
in turn, `--rounds` times, in one process; printed are medians of the ratio of neighbours. The limit
is per head the width × width products W_QK and W_h (once a block), RW_h, and n³ differences
for Dobrushin's coefficient.

    python benchmarks/certify.py [--rounds 3] [--json results.json]
"""

import sys

sys.path.pop(0)  # this folder would put inspect.py in place of the standard module of that name

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from transformers import BertConfig

import rankcollapse
from rankcollapse.metrics import relative_residual
from rankcollapse.streams import Centered
from rankcollapse.transformer import Layout, Transformer, Variant, sweep

SAMPLES, TOKENS = 8, 128


def centered(model: Transformer, ids: torch.Tensor, variant: str) -> None:
    """The pass alone, the residual measured at every layer."""
    embedding, arithmetic = model.read_embedding(), Centered()
    positions = torch.arange(TOKENS)
    states = [embedding(part, positions.expand_as(part)) for part in ids.split(4)]
    layouts = [Layout.contiguous(TOKENS)] * len(states)
    with torch.inference_mode():
        visits = sweep(states, layouts, model.blocks, None, [Variant.parse(variant)], arithmetic)
        for visit in visits:
            relative_residual(arithmetic.tokens(visit.state, None))


def seconds(work: Callable[[], object]) -> float:
    """The time one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Runs both in turn and prints ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="also write the figures there")
    options = parser.parse_args()
    model = rankcollapse.load(BertConfig(), init="random", seed=0, dtype="float64")
    ids = torch.randint(1000, 30000, (SAMPLES, TOKENS))
    inputs = {"input_ids": ids.tolist()}
    results: dict[str, dict[str, float]] = {}
    for variant in ("san", "transformer"):
        pairs = [
            (
                seconds(lambda v=variant: centered(model, ids, v)),
                seconds(lambda v=variant: rankcollapse.certify(model, inputs, v)),
            )
            for _ in range(options.rounds)
        ]
        ratio = statistics.median(bounds / alone for alone, bounds in pairs)
        alone, bounds = (statistics.median(times) for times in zip(*pairs, strict=True))
        results[variant] = {"centered": alone, "certify": bounds, "ratio": ratio}
        print(f"{variant:12} centered {alone:.2f} s, certify {bounds:.2f} s, ratio {ratio:.2f} ×")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"results": results, "torch": torch.__version__}, file, indent=1)


if __name__ == "__main__":
    main()
