"""What can be known without attention: accuracies that a trained network is to be held against."""

import torch
from jaxtyping import Int
from torch import Tensor

from rankcollapse.experiments.figure_4.task import Samples, Task

Keys = Int[Tensor, "sample token"]


def guess(task: Task) -> float:
    """A label drawn uniformly: 1 / number of labels."""
    return 1 / task.classes


def position_majority(task: Task) -> float:
    """For every position the label that it has most often in training."""
    return _majority(_places(task.train), _places(task.test), task)


def token_majority(task: Task) -> float:
    """For every token the label that it has most often in training, at its position if known.

    NaN for points of the plane, which never come twice.
    """
    if task.vocabulary is None:
        return float("nan")
    return _majority(_tokens(task, task.train), _tokens(task, task.test), task)


def attainable(task: Task) -> float:
    """The most that any network can reach: 1, or less where tokens do not know their position.

    Equal tokens of one sequence then have equal states, so they share a label, at best the more
    frequent one of theirs.
    """
    if task.positions or task.vocabulary is None:
        return 1.0
    rows = torch.arange(len(task.test.inputs))[:, None] * task.vocabulary
    keys = task.test.inputs + rows
    _, kinds = keys.unique(return_inverse=True)
    counts = _counts(kinds, task.test.labels, task.classes)
    return float(counts.amax(1).sum() / counts.sum())


def _majority(train: Keys, test: Keys, task: Task) -> float:
    """The accuracy of the most frequent label by key; of all labels for keys never met."""
    size = int(max(train.max(), test.max())) + 1
    counts = _counts(train, task.train.labels, task.classes, size)
    labels = counts.argmax(1)
    labels[counts.sum(1) == 0] = counts.sum(0).argmax()
    return float((labels[test] == task.test.labels).double().mean())


def _counts(keys: Keys, labels: Keys, classes: int, size: int | None = None) -> Tensor:
    """How often each key has each label."""
    size = int(keys.max()) + 1 if size is None else size
    flat = torch.bincount((keys * classes + labels).flatten(), minlength=size * classes)
    return flat.reshape(size, classes)


def _places(samples: Samples) -> Keys:
    return torch.arange(samples.labels.shape[1]).expand_as(samples.labels)


def _tokens(task: Task, samples: Samples) -> Keys:
    if not task.positions:
        return samples.inputs
    return samples.inputs * samples.labels.shape[1] + _places(samples)
