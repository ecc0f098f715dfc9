"""What `inspect` costs, beside the way the paper's notebook measures and beside the bare forwards.

The work: BERT-base at random initialisation, 32 samples × 128 tokens, four variants. Four ways:

- ours: `rankcollapse.inspect`, residual metrics, similarity and magnitude;
- spectral: the same with the singular values of every state;
- notebook: four Hugging Face models, cut as the paper cut them, run with `output_hidden_states`,
  the relative residual of every state by the notebook's formula afterwards;
- bare: the same four forwards and nothing else, the limit for anything that runs them.

Each way runs in a process of its own, in turn, `--rounds` times. Printed are medians and ratios of
wall time (the second of two calls) and of peak memory beyond what was resident when the model and
the inputs were in memory. Linux only: the peak is read from /proc.

    python benchmarks/inspect.py [--rounds 5] [--json results.json]
"""

import sys

sys.path.pop(0)  # this folder would put inspect.py in place of the standard module of that name

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

WAYS = ("ours", "spectral", "notebook", "bare")
VARIANTS = ("san", "san+mlp", "san+skip", "transformer")


class NoSkip(nn.Module):
    """BERT's attention output without its skip connection."""

    def __init__(self, output: Any) -> None:
        super().__init__()
        self.dense, self.norm = output.dense, output.LayerNorm

    def forward(self, hidden_states: Tensor, input_tensor: Tensor) -> Tensor:
        """The sub-layer with `input_tensor`, the skip connection, left out."""
        return self.norm(self.dense(hidden_states))


class Through(nn.Module):
    """In place of an MLP: hands on its input."""

    def forward(self, hidden_states: Tensor, input_tensor: Tensor | None = None) -> Tensor:
        """The identity."""
        return hidden_states


def cut(model: Any, variant: str) -> Any:
    """The published surgery, on a live model."""
    for layer in model.encoder.layer:
        if variant in ("san", "san+mlp"):
            layer.attention.output = NoSkip(layer.attention.output)
        if variant in ("san", "san+skip"):
            layer.intermediate, layer.output = Through(), Through()
    return model


def residuals(states: tuple[Tensor, ...]) -> list[Tensor]:
    """The notebook's formula: residual about the token mean over the state, composite norm."""

    def composite(x: Tensor) -> Tensor:
        return (x.abs().sum(1).amax(-1) * x.abs().sum(2).amax(-1)).sqrt()

    return [composite(x - x.mean(1, keepdim=True)) / composite(x) for x in states]


def work(way: str, models: dict[str, Any], ids: Tensor) -> Callable[[], object]:
    """The callable that is timed."""
    import rankcollapse

    if way in ("ours", "spectral"):
        model = rankcollapse.load(models["transformer"])
        groups = ["residual", "similarity", "magnitude"] + ["spectrum"] * (way == "spectral")
        return lambda: rankcollapse.inspect(
            model, {"input_ids": ids}, VARIANTS, as_published=True, metrics=groups
        )

    def forwards() -> object:
        with torch.inference_mode():
            if way == "bare":
                return [models[variant](ids).last_hidden_state for variant in VARIANTS]
            outputs = [models[variant](ids, output_hidden_states=True) for variant in VARIANTS]
            return [residuals(output.hidden_states) for output in outputs]

    return forwards


def resident(kind: str) -> float:
    """Resident size of this process in MiB: "VmRSS" now, "VmHWM" at its highest since the reset."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(kind))
    return int(line.split()[1]) / 1024


def reset_peak() -> None:
    """Makes "VmHWM" start again from what is resident now."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def child(way: str) -> None:
    """One way in this process: prints seconds and MiB."""
    from transformers import AutoModel, BertConfig

    torch.manual_seed(0)
    whole = AutoModel.from_config(BertConfig()).eval()
    ids = torch.randint(1000, 30000, (32, 128))
    models = {"transformer": whole}
    if way in ("notebook", "bare"):
        # All four share one set of weights, so that weights weigh the same in every way.
        for variant in VARIANTS[:3]:
            other = AutoModel.from_config(BertConfig()).eval()
            for ours, theirs in zip(other.parameters(), whole.parameters(), strict=True):
                ours.data = theirs.data
            models[variant] = cut(other, variant)
    run = work(way, models, ids)
    reset_peak()
    before = resident("VmRSS")
    run()
    memory = resident("VmHWM") - before
    start = time.perf_counter()
    run()
    print(json.dumps({"seconds": time.perf_counter() - start, "mib": memory}))


def main() -> None:
    """Runs every way in turn and prints medians and ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="also write the figures there")
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            command = [sys.executable, __file__, "--child", way]
            result = subprocess.run(command, capture_output=True, text=True, check=True)
            runs[way].append(json.loads(result.stdout.splitlines()[-1]))

    def median(way: str, key: str) -> float:
        return statistics.median(run[key] for run in runs[way])

    print(
        f"{'way':10} {'seconds':>9} {'MiB':>8}   median of {options.rounds}, MiB beyond the weights"
    )
    for way in WAYS:
        print(f"{way:10} {median(way, 'seconds'):9.2f} {median(way, 'mib'):8.0f}")
    ratios: dict[str, float] = {}
    for way in ("ours", "spectral"):
        for other, key in (("notebook", "seconds"), ("bare", "seconds"), ("notebook", "mib")):
            # Ratio of neighbours in time, then the median: a slow minute touches both.
            pairs = zip(runs[way], runs[other], strict=True)
            ratio = statistics.median(a[key] / b[key] for a, b in pairs)
            ratios[f"{way} / {other}, {key}"] = ratio
            print(f"{way + ' / ' + other:22} {key:8} {ratio:6.2f} ×")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"runs": runs, "ratios": ratios, "torch": torch.__version__}, file, indent=1)


if __name__ == "__main__":
    main()
