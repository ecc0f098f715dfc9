"""What the networks of Figures 3 and 4 are trained on, and what can be known without one."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from rankcollapse.errors import InputError, RankCollapseError
from rankcollapse.experiments.figure_3.circle import (
    arcs,
    error_growth,
    next_step,
    next_step_carried,
    roll_out,
)
from rankcollapse.experiments.figure_4 import baselines
from rankcollapse.experiments.figure_4.convex_hull import convex_hull, on_hull
from rankcollapse.experiments.figure_4.memorization import (
    VOCABULARY,
    memorization,
    sentences_of,
    vocabulary,
    words,
)
from rankcollapse.experiments.figure_4.sorting import sorting
from rankcollapse.experiments.figure_4.task import Samples, Task
from rankcollapse.experiments.learning.networks import Network, network


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def hull() -> Task:
    return convex_hull(generator())


def test_a_letter_is_labelled_with_its_place_in_the_order() -> None:
    task = sorting(generator())
    assert task.train.inputs.shape == (1000, 8) and task.test.inputs.shape == (200, 8)
    assert (task.classes, task.vocabulary, task.positions) == (8, 10, True)
    assert task.train.inputs.unique().tolist() == list(range(10))
    for letters, labels in zip(task.test.inputs.tolist(), task.test.labels.tolist(), strict=True):
        ordered = sorted(range(8), key=lambda place: (letters[place], place))
        assert [ordered.index(place) for place in range(8)] == labels


def test_published_labels_are_the_sorted_letters() -> None:
    task = sorting(generator(), as_published=True)
    assert task.classes == 10
    assert torch.equal(task.train.inputs, sorting(generator()).train.inputs)
    assert torch.equal(task.train.labels, task.train.inputs.sort(dim=1).values)
    assert baselines.position_majority(task) == pytest.approx(0.34, abs=0.02)


def test_points_on_the_hull() -> None:
    square = [[0.0, 0.0], [1.0, 0.0], [0.4, 0.5], [1.0, 1.0], [0.0, 1.0], [0.6, 0.5]]
    assert on_hull(torch.tensor([square])).tolist() == [[1, 1, 0, 1, 1, 0]]


def test_the_hull_of_ten_points(hull: Task) -> None:
    """Of ten points in a square 5.96 are corners on average: 0.596 of all."""
    assert hull.train.inputs.shape == (10_000, 10, 2)
    assert float(hull.train.labels.double().mean()) == pytest.approx(0.596, abs=0.004)
    assert baselines.position_majority(hull) == pytest.approx(0.596, abs=0.02)
    assert math.isnan(baselines.token_majority(hull)) and baselines.attainable(hull) == 1
    middle = hull.train.inputs.mean(1)
    within = hull.train.inputs - middle[:, None]
    assert float(within.var()) == pytest.approx(1 / 12 * 0.9, rel=0.03)
    assert float(middle.std()) == pytest.approx(math.sqrt(1 + 1 / 120), rel=0.03)


def test_the_published_hull_has_another_scale(hull: Task) -> None:
    published = convex_hull(generator(), as_published=True)
    assert torch.equal(published.train.labels, hull.train.labels)
    middle = published.train.inputs.mean(1)
    assert float((published.train.inputs - middle[:, None]).var()) == pytest.approx(7.5, rel=0.03)
    assert float(middle.std()) == pytest.approx(math.sqrt(3.3**2 + 100 / 120), rel=0.03)


def test_sentences_are_learnt_by_heart() -> None:
    task = memorization(generator(), sentences=6, lexicon=2000)
    assert task.train is task.test and task.classes == 2 and not task.positions
    assert task.train.inputs.shape == (6, 128)
    assert task.train.inputs.unique().tolist() == list(range(task.vocabulary or 0))
    assert 0.4 < float(task.train.labels.double().mean()) < 0.6
    other = memorization(generator(1), sentences=6, lexicon=2000)
    assert torch.equal(task.train.inputs, other.train.inputs)
    assert not torch.equal(task.train.labels, other.train.labels)


def test_the_text_is_zipf_over_the_bundled_words() -> None:
    lexicon = words(3000)
    assert len(set(lexicon)) == 3000
    assert set(lexicon[:12]) >= {"the", "and", "of", "in", ",", "."}
    assert all(2 < len(word) <= 14 for word in lexicon[-500:])
    drawn = " ".join(sentences_of(lexicon, 60)).split()
    assert len(drawn) == 60 * 128
    harmonic = float(np.sum(1 / (np.arange(3000) + 2)))
    for rank in (1, 2, 5):
        share = drawn.count(lexicon[rank - 1]) / len(drawn)
        assert share == pytest.approx(1 / (rank + 1) / harmonic, rel=0.25)


def test_a_text_file_is_cut_into_sequences(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("\n".join(sentences_of(words(2000), 4)))
    task = memorization(generator(), str(file), sentences=3)
    assert task.train.inputs.shape == (3, 128)
    with pytest.raises(InputError, match=r"memorization needs 500 × 128 = 64000"):
        memorization(generator(), str(file))
    ids = tmp_path / "ids.jsonl"
    ids.write_text('{"input_ids": [1, 2, 3]}\n')
    with pytest.raises(InputError, match="holds token ids"):
        memorization(generator(), str(ids))


def test_a_vocabulary_repeats_and_has_the_papers_size_at_most() -> None:
    lines = words(2000)
    ids = vocabulary(lines)([" ".join(lines)])[0]
    assert vocabulary(lines)([" ".join(lines)])[0] == ids
    assert len(set(ids)) > 300 and max(ids) < VOCABULARY
    assert len(ids) < 5 * len(lines)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RankCollapseError, match=r"install rankcollapse\[reproduce\]"):
        vocabulary(["some words"])


def samples(inputs: list[list[int]], labels: list[list[int]]) -> Samples:
    return Samples(torch.tensor(inputs), torch.tensor(labels))


def test_baselines_by_hand() -> None:
    train = samples([[0, 1, 1], [0, 0, 2], [1, 0, 2]], [[0, 1, 2], [0, 1, 2], [1, 0, 2]])
    test = samples([[0, 1, 1], [3, 3, 0]], [[0, 1, 2], [1, 1, 0]])
    for positions, by_token in ((False, 3 / 6), (True, 4 / 6)):
        task = Task("made up", train, test, 3, 4, positions)
        assert baselines.guess(task) == pytest.approx(1 / 3)
        assert baselines.position_majority(task) == pytest.approx(4 / 6)
        assert baselines.token_majority(task) == pytest.approx(by_token)


def test_equal_tokens_of_a_sequence_share_their_answer() -> None:
    both = samples([[0, 0, 0, 1], [0, 1, 1, 2]], [[1, 1, 0, 0], [0, 1, 0, 1]])
    assert baselines.attainable(Task("", both, both, 2, 3, False)) == pytest.approx(6 / 8)
    assert baselines.attainable(Task("", both, both, 2, 3, True)) == 1


def test_arcs_run_counter_clockwise_from_both_ends() -> None:
    course = arcs(1000)
    assert course.shape == (1000, 2, 2)
    torch.testing.assert_close(course[0], torch.tensor([[0.3, 0.0], [-0.3, 0.0]]))
    torch.testing.assert_close(course[500], torch.tensor([[0.0, 0.3], [0.0, -0.3]]))
    torch.testing.assert_close(course.norm(dim=2), torch.full((1000, 2), 0.3))
    assert (course[1:, 0, 1] > 0).all() and (course[1:, 1, 1] < 0).all()
    steps = course.diff(dim=0).norm(dim=2)
    assert float(steps.max()) == pytest.approx(0.3 * math.pi / 1000, rel=1e-3)


def test_lessons() -> None:
    course = arcs(50)
    lesson = next_step(course)
    assert torch.equal(lesson.inputs, course[:-1]) and torch.equal(lesson.targets, course[1:])
    carried = next_step_carried(course, lag=7)
    assert torch.equal(carried.targets, course[1:])
    assert torch.equal(carried.inputs[:7], course[:7])
    torch.testing.assert_close(carried.inputs[30], course[30] + course[23])


def single() -> Network:
    return network(generator(), layers=1, heads=2, width=8, outputs=2, variant="san")


def test_predictions_are_fed_back() -> None:
    net, start = single(), arcs(10)[0]

    def step(state: Tensor) -> Tensor:
        with torch.no_grad():
            return net(state[None])[0]

    path = roll_out(net, start, 3)
    assert path.shape == (4, 2, 2) and torch.equal(path[0], start)
    torch.testing.assert_close(path[3], step(step(step(start))))
    carried = roll_out(net, start, 2, carried=True)
    torch.testing.assert_close(carried[2], step(start + step(start)))


class Map:
    """A linear map of both points, in place of a network."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    def __call__(self, x: Tensor) -> Tensor:
        return (x.flatten(1) @ self.matrix.T).reshape(x.shape)


def test_errors_grow_as_the_largest_eigenvalue_in_the_long_run() -> None:
    # Far from normal: a single step stretches some errors eightfold.
    matrix = torch.diag(torch.tensor([1.1, 0.9, 0.2, -0.5])) + 4 * torch.ones(4, 4).triu(1)
    assert float(torch.linalg.matrix_norm(matrix, 2)) > 8
    grown = error_growth(Map(matrix), arcs(2000))  # type: ignore[arg-type]
    assert grown == pytest.approx(1.1, rel=0.01)
