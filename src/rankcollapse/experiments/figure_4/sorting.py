"""Sorting: sequences of letters, and for each letter its position in the sorted sequence."""

import torch

from rankcollapse.experiments.figure_4.task import Samples, Task

LETTERS, LENGTH, TRAIN, TEST = 10, 8, 1000, 200


def sorting(generator: torch.Generator, as_published: bool = False) -> Task:
    """Letters drawn uniformly with replacement, 1000 sequences of 8 to train on and 200 to test.

    A letter's label is its position in the sorted sequence, equal letters in their order of
    appearance. As published, the label at place i is the letter that comes at place i when the
    sequence is sorted: what stands at place i of the input has nothing to do with it.
    """
    letters = torch.randint(LETTERS, (TRAIN + TEST, LENGTH), generator=generator)
    order = letters.argsort(dim=1, stable=True)
    labels = letters.gather(1, order) if as_published else order.argsort(dim=1)
    return Task(
        name="sorting",
        train=Samples(letters[:TRAIN], labels[:TRAIN]),
        test=Samples(letters[TRAIN:], labels[TRAIN:]),
        classes=LETTERS if as_published else LENGTH,
        vocabulary=LETTERS,
        positions=True,
    )
