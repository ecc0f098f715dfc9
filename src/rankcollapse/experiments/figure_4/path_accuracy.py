"""What paths of one length know: accuracies of a trained network's sub-networks and terms.

Sub-networks are Figure 4's: attention is recomputed on the path's own states. Terms are those of
Theorem 2.1: attention is the whole network's, and they add up to its output. Both go through one
norm without weight and bias and then through the network's own read-out.
Cost: count × length attention layers per sum of sub-networks; one graded pass for all terms.
"""

import numpy as np
import torch
from torch import Tensor

from rankcollapse.experiments.figure_4.task import Samples
from rankcollapse.experiments.learning.networks import Network
from rankcollapse.paths.subnetwork import bare, subnetwork_sum
from rankcollapse.streams import Graded
from rankcollapse.transformer import Layout, apply_block

_ROWS = 50  # sequences at a time


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """The share of tokens whose largest logit is their label's."""
    return float((logits.argmax(-1) == labels).double().mean())


def whole_accuracy(network: Network, samples: Samples) -> float:
    """The accuracy of the whole network."""
    with torch.no_grad():
        logits = [network(x) for x in samples.inputs.split(_ROWS)]
    return accuracy(torch.cat(logits), samples.labels)


def subnetwork_accuracy(
    network: Network, samples: Samples, length: int, count: int, repeats: int, seed: int
) -> list[float]:
    """Accuracies of sums of `count` random paths of one length, drawn `repeats` times.

    Args:
        network: A trained network.
        samples: What it is tested on.
        length: Heads on each path, 0 to the number of layers.
        count: Paths in a sum.
        repeats: Number of draws.
        seed: Of the first draw; the others have the next ones.
    """
    model, ids = network.on(samples.inputs)
    found = []
    for draw in range(seed, seed + repeats):
        states = torch.stack(subnetwork_sum(model, ids, length, count, draw))
        with torch.no_grad():
            found.append(accuracy(network.readout(states), samples.labels))
    return found


def term_accuracies(network: Network, samples: Samples) -> np.ndarray:
    """Accuracies of the exact decomposition's terms by length, 0 to the number of layers.

    The term of length l is the sum of all paths from the input through l heads. Biases of attention
    and norms belong to no path and are left out.
    """
    blocks = network.transformer.blocks
    right = np.zeros(len(blocks) + 1)
    norm = bare(blocks[-1].attention_norm)
    with torch.no_grad():
        for x, labels in zip(samples.inputs.split(_ROWS), samples.labels.split(_ROWS), strict=True):
            arithmetic = Graded(network.readout.weight.dtype)
            state = arithmetic.enter(network.entry(x))
            layout = Layout.contiguous(x.shape[1])
            for block in blocks:
                state = apply_block(state, block, layout, network.variant, arithmetic)
            for length in range(len(right)):
                logits = network.readout(norm(state.terms["input", length]))
                right[length] += int((logits.argmax(-1) == labels).sum())
    return right / samples.labels.numel()
