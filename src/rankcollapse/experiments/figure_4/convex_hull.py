"""Convex hull: points of the plane, and for each whether it is a corner of their hull."""

import torch
from scipy.spatial import ConvexHull
from torch import Tensor

from rankcollapse.experiments.figure_4.task import Samples, Task

POINTS, TRAIN, TEST = 10, 10_000, 1000
# The published generator's square and the deviation of its shift.
PUBLISHED_SIDE, PUBLISHED_SHIFT = 10.0, 3.3


def convex_hull(
    generator: torch.Generator, as_published: bool = False, train: int = TRAIN, test: int = TEST
) -> Task:
    """Ten points uniform in the unit square, shifted together by a bivariate standard normal.

    As published, the square has side 10 and the shift deviation 3.3: a third of the side where the
    text has all of it.
    """
    count = train + test
    points = torch.rand(count, POINTS, 2, generator=generator)
    shift = torch.randn(count, 1, 2, generator=generator)
    points = PUBLISHED_SIDE * points + PUBLISHED_SHIFT * shift if as_published else points + shift
    labels = on_hull(points)
    return Task(
        name="convex hull",
        train=Samples(points[:train], labels[:train]),
        test=Samples(points[train:], labels[train:]),
        classes=2,
        vocabulary=None,
        positions=False,
    )


def on_hull(points: Tensor) -> Tensor:
    """1 at each sequence's corners of its convex hull, 0 at its other points."""
    labels = torch.zeros(points.shape[:2], dtype=torch.int64)
    for row, sequence in enumerate(points.double().numpy()):
        labels[row, ConvexHull(sequence).vertices] = 1
    return labels
