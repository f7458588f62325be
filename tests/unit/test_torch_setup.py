"""What is known of a torch training before its first step: which lines were to freeze weights, and did not."""

import weakref

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from trainwright.adapters.torch.setup import ineffective_freezes  # noqa: E402
from trainwright.core import Place  # noqa: E402
from trainwright.seams.listening.seen import BuiltObjects  # noqa: E402

LINE = Place("train.py", 7)


@pytest.fixture
def model():
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))


def _set_attribute(owner, name="requires_grad"):
    """What is seen of a script that sets a layer's attribute."""
    setattr(owner, name, False)
    seen = BuiltObjects()
    seen.misspelt.append((weakref.ref(owner), name, LINE))
    return seen


def test_an_attribute_of_a_layer_freezes_nothing(model) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (found,) = ineffective_freezes(model, [optimizer], _set_attribute(model[0]))
    assert found.on_modules and found.objects == 1 and found.where == LINE
    assert found.parameters == ("0.weight", "0.bias")


def test_a_misspelt_attribute_of_a_weight_freezes_nothing(model) -> None:
    (found,) = ineffective_freezes(model, [], _set_attribute(model[1].bias, "require_grad"))
    assert not found.on_modules and found.parameters == ("1.bias",)


def test_an_attribute_is_right_where_no_optimizer_holds_the_weights(model) -> None:
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
    assert ineffective_freezes(model, [optimizer], _set_attribute(model[0])) == ()


def test_an_attribute_that_is_true_again_says_nothing(model) -> None:
    seen = _set_attribute(model[0])
    model[0].requires_grad = True
    assert ineffective_freezes(model, [], seen) == ()


def test_weights_that_were_frozen_once_and_are_trained_now_are_meant_to_be(model) -> None:
    seen = _set_attribute(model[0])
    seen.frozen |= {id(p): (weakref.ref(p), LINE) for p in model[0].parameters()}
    assert ineffective_freezes(model, [], seen) == ()
