"""The training loop against PyTorch's Adam, and what stops it."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from rankcollapse.experiments.learning.dropout import Dropout
from rankcollapse.experiments.learning.networks import Network, network
from rankcollapse.experiments.learning.training import Recipe, train
from rankcollapse.streams import Dense
from rankcollapse.transformer import Layout

COUNT = 24


def small(seed: int = 0) -> Network:
    return network(torch.Generator().manual_seed(seed), layers=1, heads=1, width=6, outputs=2)


def data() -> tuple[Tensor, Tensor]:
    x = torch.randn(COUNT, 3, 2, generator=torch.Generator().manual_seed(9))
    return x, x.flip(1)


def trained(recipe: Recipe, seed: int = 0, **more: object) -> tuple[Network, int]:
    net, (x, y) = small(), data()
    generator = torch.Generator().manual_seed(seed)
    steps = train(net, x, y, F.mse_loss, recipe, generator, **more)  # type: ignore[arg-type]
    return net, steps


def test_the_rate_rises_and_falls_as_a_cosine() -> None:
    recipe = Recipe(steps=100, batch=None, rate=1.0, warmup=0.1)
    assert [recipe.factor(step) for step in (0, 4, 9)] == pytest.approx([0.1, 0.5, 1.0])
    assert recipe.factor(10) == pytest.approx(1)
    assert recipe.factor(55) == pytest.approx(0.5)
    assert recipe.factor(99) == pytest.approx(0.5 * (1 + math.cos(math.pi * 89 / 90)))


def test_whole_batches_are_plain_adam_steps() -> None:
    recipe = Recipe(steps=7, batch=None, rate=1e-2, clip=None)
    ours, _ = trained(recipe)
    theirs, (x, y) = small(), data()
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-2)
    for step in range(7):
        adam.param_groups[0]["lr"] = 1e-2 * recipe.factor(step)
        adam.zero_grad()
        F.mse_loss(theirs(x), y).backward()
        adam.step()
    # The bias of the keys has no gradient but rounding, which Adam makes as large as any other.
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-6)
    assert not torch.allclose(ours(x), small()(x), rtol=1e-2)


def test_batches_hold_every_sample_once_an_epoch() -> None:
    net, (x, y) = small(), data()
    seen: list[Tensor] = []

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        seen.append(targets)
        return F.mse_loss(outputs, targets)

    train(net, x, y, loss, Recipe(steps=6, batch=8, rate=1e-3), torch.Generator().manual_seed(1))
    epochs = [torch.cat(seen[:3]), torch.cat(seen[3:])]
    for epoch in epochs:
        assert {tuple(row) for row in epoch.flatten(1).tolist()} == {
            tuple(row) for row in y.flatten(1).tolist()
        }
    assert not torch.equal(*epochs)


def test_it_learns_and_repeats() -> None:
    recipe = Recipe(steps=150, batch=8, rate=1e-2, dropout=0.1)
    (first, _), (again, _), (other, _) = trained(recipe), trained(recipe), trained(recipe, seed=1)
    x, y = data()
    assert F.mse_loss(first(x), y) < 0.7 * F.mse_loss(small()(x), y)
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.readout.weight, other.readout.weight)


def test_it_stops_at_the_target() -> None:
    asked = []
    told = []
    recipe = Recipe(steps=100, batch=8, rate=1e-3, every=10)
    _, steps = trained(
        recipe,
        done=lambda: asked.append(1) or len(asked) == 3,
        progress=lambda done, total: told.append((done, total)),
    )
    assert steps == 30
    assert told == [(10, 100), (20, 100), (30, 100)]
    assert trained(Recipe(steps=25, batch=8, rate=1e-3, every=10))[1] == 25


def test_gradients_are_clipped() -> None:
    """With a tiny limit Adam's ε weighs more than the gradient, and hardly anything moves."""
    free, _ = trained(Recipe(steps=1, batch=None, rate=1e-2, clip=None))
    held, _ = trained(Recipe(steps=1, batch=None, rate=1e-2, clip=1e-12))
    start = small().readout.weight
    moved = [(net.readout.weight - start).detach().abs().max() for net in (free, held)]
    assert moved[0] > 1e-4
    assert moved[1] < 1e-5


def test_dropout_keeps_the_mean() -> None:
    x = torch.ones(50, 40, 20)
    dropped = Dropout(x.dtype, 0.25, torch.Generator().manual_seed(0)).enter(x)
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert float((dropped == 0).float().mean()) == pytest.approx(0.25, abs=0.01)


def test_dropout_falls_on_attention_before_the_skip() -> None:
    attention = small().transformer.blocks[0].attention
    x = torch.randn(4, 3, 6)
    layout = Layout.contiguous(3)
    half = Dropout(x.dtype, 0.5, torch.Generator().manual_seed(3))
    whole = Dense(x.dtype).attend(x, attention, layout)
    dropped = half.attend(x, attention, layout)
    kept = dropped != 0
    assert 0.2 < float(kept.float().mean()) < 0.8
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])
