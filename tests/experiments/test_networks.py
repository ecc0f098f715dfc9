"""The networks that are trained, against PyTorch's own layers with the same tensors."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rankcollapse.errors import RankCollapseError
from rankcollapse.experiments.learning.networks import EPS, Network, network
from rankcollapse.paths.subnetwork import subnetwork_path

WIDTH, HEADS = 12, 3


def made(seed: int = 0, **changes: object) -> Network:
    sizes = {"layers": 2, "heads": HEADS, "width": WIDTH, "outputs": 4}
    return network(
        torch.Generator().manual_seed(seed),
        dtype=torch.float64,
        **{**sizes, **changes},  # type: ignore[arg-type]
    )


def reference(net: Network, x: Tensor, skip: bool, mlp: bool) -> Tensor:
    """The same pass with `nn.MultiheadAttention`."""
    for block in net.transformer.blocks:
        a = block.attention
        layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=torch.float64)
        with torch.no_grad():
            layer.in_proj_weight.copy_(torch.cat([a.query.weight, a.key.weight, a.value.weight]))
            layer.in_proj_bias.copy_(
                torch.cat([b for b in (a.query.bias, a.key.bias, a.value.bias) if b is not None])
            )
            layer.out_proj.weight.copy_(a.output.weight)
            assert a.output.bias is not None
            layer.out_proj.bias.copy_(a.output.bias)
        y = layer(x, x, x, need_weights=False)[0]
        x = F.layer_norm(x + y if skip else y, (WIDTH,), eps=EPS)
        if mlp:
            assert block.mlp is not None
            y = block.mlp.down(F.gelu(block.mlp.up(x)))
            x = F.layer_norm(x + y if skip else y, (WIDTH,), eps=EPS)
    return net.readout(x)


@pytest.mark.parametrize(
    ("variant", "mlp", "skip"),
    [
        ("san", None, False),
        ("san+skip", None, True),
        ("san+mlp", 7, False),
        ("transformer", 7, True),
    ],
)
def test_points_pass_as_through_pytorch(variant: str, mlp: int | None, skip: bool) -> None:
    net = made(variant=variant, mlp=mlp)
    points = torch.randn(3, 5, 2, dtype=torch.float64)
    entered = F.layer_norm(net.entry.linear(points), (WIDTH,), eps=EPS)  # type: ignore[union-attr]
    expected = reference(net, entered, skip, mlp is not None)
    torch.testing.assert_close(net(points), expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("positions", [None, 5])
def test_words_know_their_position_only_where_they_are_given_one(positions: int | None) -> None:
    net = made(vocabulary=6, positions=positions)
    ids = torch.tensor([[0, 3, 3, 1]])
    outputs = net(ids)
    assert outputs.shape == (1, 4, 4)
    assert torch.allclose(outputs[0, 1], outputs[0, 2]) == (positions is None)


def test_tensors_start_as_pytorch_starts_them() -> None:
    net = made(vocabulary=4000, width=48, mlp=96, init="pytorch")
    block = net.transformer.blocks[0]
    assert block.mlp is not None
    for linear, inputs in ((block.attention.query, 48), (block.mlp.down, 96), (net.readout, 48)):
        assert linear.bias is not None
        uniform(linear.weight, inputs)
        assert 0.3 < float(linear.bias.detach().abs().max()) * math.sqrt(inputs) <= 1
    table = net.entry.embedding.tokens.detach()  # type: ignore[union-attr]
    assert float(table.std()) == pytest.approx(1, rel=0.02)
    assert abs(float(table.mean())) < 0.02


def test_tensors_start_as_in_the_published_code() -> None:
    net = made(vocabulary=4000, width=48, mlp=96, outputs=50)
    block = net.transformer.blocks[0]
    assert block.mlp is not None
    attention = block.attention
    for linear in (attention.value, attention.output):
        uniform(linear.weight, 48)
    small = [attention.query, attention.key, block.mlp.up, block.mlp.down, net.readout]
    tokens = net.entry.embedding.tokens  # type: ignore[union-attr]
    for weight in (*(linear.weight for linear in small), tokens):
        assert float(weight.detach().std()) == pytest.approx(0.02, rel=0.06)
    for linear in (*small, attention.value, attention.output):
        assert linear.bias is not None and not linear.bias.any()


def uniform(weight: Tensor, inputs: int) -> None:
    size, bound = weight.detach().abs(), 1 / math.sqrt(inputs)
    assert 0.95 * bound < float(size.max()) <= bound
    assert float(size.mean()) == pytest.approx(bound / 2, rel=0.1)


def test_every_tensor_takes_a_gradient() -> None:
    net = made(vocabulary=6, positions=5, mlp=7)
    net(torch.tensor([[0, 1, 2, 3, 4], [5, 5, 1, 0, 2]])).square().sum().backward()
    # Two blocks of 4 + 2 linear maps and 2 norms, tokens, positions, a norm and the read-out.
    assert len(net.parameters()) == 2 * (6 * 2 + 2 * 2) + 2 + 2 + 2
    for tensor in net.parameters():
        assert tensor.grad is not None and tensor.requires_grad


def test_the_seed_decides() -> None:
    first, again, other = made(1), made(1), made(2)
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.readout.weight, other.readout.weight)


def test_analyses_of_ids_see_the_points_that_entered() -> None:
    net = made()
    points = torch.randn(3, 5, 2, dtype=torch.float64)
    model, ids = net.on(points)
    found = torch.stack(subnetwork_path(model, ids, [0, 0]))
    torch.testing.assert_close(found, net.entry(points))
    longest = torch.stack(subnetwork_path(model, ids, [2, 3]))
    assert longest.shape == (3, 5, WIDTH)
    assert not torch.allclose(longest, found)


def test_there_is_no_tokenizer() -> None:
    with pytest.raises(RankCollapseError, match="give ids"):
        made().transformer.read_tokenizer()
