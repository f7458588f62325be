"""Large tensors: what is measured of a part is what is measured of the whole, and nothing unchanged is copied twice."""

import sys

import numpy as np
import pytest
import torch

from trainwright.adapters.torch import gradients
from trainwright.probes.gradients import share_added
from trainwright.seams.torch import gates
from trainwright.seams.torch.state import ModelState
from trainwright.seams.torch.trace import FirstNonFinite


def test_a_sample_of_a_large_gradient_has_the_products_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(300, 200, bias=False)
    alone, part = torch.randn(200, 300), torch.randn(200, 300)

    def copied(grad: torch.Tensor) -> gradients.Gradient:
        model.weight.grad = grad
        return gradients.gradients_now(model)

    whole = [copied(g) for g in (alone, alone + part, part)]
    monkeypatch.setattr(gradients, "MOST_COPIED", 5_000)
    sample = [copied(g) for g in (alone, alone + part, part)]
    assert sample[0]["weight"].size <= 5_000
    assert share_added(*sample) == pytest.approx(share_added(*whole), abs=0.05) == pytest.approx(1.0, abs=0.05)
    assert float(np.square(sample[2]["weight"]).sum()) == pytest.approx(float(part.square().sum()), rel=0.1)


@pytest.mark.parametrize("most", [10, 1_000_000])
def test_gradients_are_parallel_by_a_part_as_by_the_whole(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(gates, "MOST_COMPARED", most)
    torch.manual_seed(0)
    gradient = torch.randn(40, 50)
    assert gates._parallel([(gradient, gradient.clone())])
    assert gates._parallel([(0.25 * gradient, gradient)])
    assert not gates._parallel([(-gradient, gradient)])
    assert not gates._parallel([(gradient + torch.randn(40, 50), gradient)])
    assert not gates._parallel([(None, gradient)])
    assert not gates._parallel([(torch.zeros(3), torch.zeros(3))])


def test_a_second_snapshot_shares_what_has_not_changed() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    first = ModelState(model)
    with torch.no_grad():
        model[1].weight += 1
    second = ModelState(model, known=[first])
    shared = [a[1] is b[1] for a, b in zip(first.host_values(), second.host_values())]
    assert shared == [True, True, False, True]
    changed = model[1].weight.detach().clone()
    first.put_back()
    second.put_back()
    assert torch.equal(model[1].weight, changed)


@pytest.mark.parametrize("values", [[1.0, float("nan")], [float("inf"), float("-inf")], [float("inf"), 1.0]])
def test_a_result_that_is_not_finite_is_seen(values: list[float]) -> None:
    watch = FirstNonFinite()
    watch.see(torch.log, (torch.ones(2),), torch.tensor(values), sys._getframe(), "")
    assert watch.origin is not None


def test_a_sum_that_overflows_is_no_infinity() -> None:
    watch = FirstNonFinite()
    watch.see(torch.mul, (torch.ones(2),), torch.full((1_000,), 3e38), sys._getframe(), "")
    assert watch.origin is None
