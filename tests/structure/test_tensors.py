"""Each framework's module offers the operations that repairs may use (`core/tensors.py`), under the same names."""

import inspect
from collections.abc import Callable
from types import ModuleType

import pytest

from trainwright.core import PartMissing, Tensors
from trainwright.tensors.keras import objects as keras_tensors
from trainwright.tensors.torch import objects as torch_tensors

OPERATIONS = [(n, f) for n, f in vars(Tensors).items() if inspect.isfunction(f) and not n.startswith("_")]
# What a framework has no use for.
MISSING = {
    "torch": {"mask_padding", "rename_outputs", "give_no_loss"},
    "keras": {"set_padding", "detach_kept", "resize_input"},
}


@pytest.mark.parametrize(("name", "operation"), OPERATIONS)
@pytest.mark.parametrize("tensors", [torch_tensors, keras_tensors])
def test_an_operation_takes_the_same_arguments(
    tensors: ModuleType, name: str, operation: Callable[..., object]
) -> None:
    wanted = list(inspect.signature(operation).parameters.values())[1:]
    taken = list(inspect.signature(getattr(tensors, name)).parameters.values())
    assert [p.name for p in taken[: len(wanted)]] == [p.name for p in wanted]
    assert all(p.default is not p.empty for p in taken[len(wanted) :])


@pytest.mark.parametrize(("tensors", "names"), [(torch_tensors, MISSING["torch"]), (keras_tensors, MISSING["keras"])])
def test_what_a_framework_has_no_use_for_says_so(tensors: ModuleType, names: set[str]) -> None:
    found = set()
    for name, operation in OPERATIONS:
        body = inspect.getsource(getattr(tensors, name))
        if "raise PartMissing(" in body:
            found.add(name)
            given = [None] * (len(inspect.signature(operation).parameters) - 1)
            with pytest.raises(PartMissing, match=" "):
                getattr(tensors, name)(*given)
    assert found == names
