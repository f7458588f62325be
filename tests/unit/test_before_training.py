"""What is known of failures before training: misspelled methods, sizes that do not fit, arguments that exclude others."""

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, IterableDataset

from trainwright.core import Place, RenameFunction
from trainwright.fixes.rewriting import apply
from trainwright.rules.optimizer.parameters import empty_parameter_list
from trainwright.seams.source.special_methods import misspelled_methods
from trainwright.stages import EmptyParameters, MisspelledMethod, SetupFacts

LINE = Place("train.py", 7)


def defined(source: str, tmp_path: Path) -> dict[str, Any]:
    """The names of a script of the user's."""
    file = tmp_path / "script.py"
    file.write_text(source)
    linecache.checkcache(str(file))
    scope: dict[str, Any] = {"__file__": str(file), "__name__": "script", "nn": nn, "Dataset": Dataset,
                             "IterableDataset": IterableDataset, "torch": torch}  # fmt: skip
    exec(compile(source, str(file), "exec"), scope)
    return scope


def raised(work: Callable[[], Any]) -> Exception:
    with pytest.raises(Exception) as caught:
        work()
    return caught.value


@pytest.mark.parametrize(
    ("base", "written", "meant"),
    [
        ("nn.Module", "__int__", "__init__"),
        ("nn.Module", "_init_", "__init__"),
        ("nn.Module", "__init", "__init__"),
        ("nn.Module", "__init___", "__init__"),
        ("nn.Module", "foward", "forward"),
        ("nn.Module", "forwrad", "forward"),
        ("nn.Module", "Forward", "forward"),
        ("Dataset", "__getitem", "__getitem__"),
        ("Dataset", "__len", "__len__"),
        ("Dataset", "__getitm__", "__getitem__"),
        ("IterableDataset", "__iter", "__iter__"),
    ],
)
def test_a_method_that_is_nearly_the_frameworks_is_misspelled(base, written, meant, tmp_path) -> None:
    scope = defined(f"class Own({base}):\n    def {written}(self, x=0):\n        return x\n", tmp_path)
    (found,) = misspelled_methods([scope])
    assert (found.written, found.meant, found.owner, found.where.line) == (written, meant, "Own", 2)


@pytest.mark.parametrize(
    "source",
    [
        "class Own(nn.Module):\n    def forward(self, x):\n        return x\n    def _forward(self, x):\n        return x\n",
        "class Own(nn.Module):\n    def _init_weights(self):\n        pass\n    def reset(self):\n        pass\n",
        "class Own(nn.Module):\n    def __call__(self, x):\n        return x\n",
        (
            "class Base(nn.Module):\n    def forward(self, x):\n        return x\nclass Own(Base):\n    def _forward(self, x):\n"
            "        return x\n"
        ),
        (
            "class Own(nn.Module):\n    def _forward(self, x):\n        return x\n    def __getattr__(self, name):\n"
            "        return self._forward\n"
        ),
        "class Own(nn.Module):\n    def forwards(self, x):\n        return x\nprint(Own().forwards(1))\n",
        "class Own(nn.Module):\n    pass\n",
        "class Own:\n    def foward(self, x):\n        return x\n    def __int__(self):\n        return 1\n",
        "import abc\nclass Own(nn.Module, abc.ABC):\n    @abc.abstractmethod\n    def _forward(self, x):\n        pass\n",
        (
            "class Own(Dataset):\n    def __len__(self):\n        return 1\n    def __getitem__(self, i):\n        return i\n"
            "    def get_item(self, i):\n        return i\n"
        ),
    ],
)
def test_a_method_that_is_meant_as_it_is_written_is_not(source, tmp_path) -> None:
    assert misspelled_methods([defined(source, tmp_path)]) == ()


def test_the_line_is_that_of_the_definition_below_its_decorators(tmp_path) -> None:
    source = (
        "def kept(f):\n    return f\nclass Own(nn.Module):\n    @kept\n    def foward(self, x):\n        return x\n"
    )
    (found,) = misspelled_methods([defined(source, tmp_path)])
    assert found.where.line == 5


def test_a_method_is_renamed_where_it_is_defined_and_nowhere_else() -> None:
    source = "class A:\n    def foward(self):\n        pass\n\n\nclass B:\n    def foward(self):\n        pass\n"
    after = apply(source, [RenameFunction("x.py", 2, "foward", "forward")])
    assert after == source.replace("foward", "forward", 1)
    assert apply(source, [RenameFunction("x.py", 3, "foward", "forward")]) is None


def empty(parameters: int, trainable: int, **more: Any) -> SetupFacts:
    given = EmptyParameters(expression="chosen", is_iterator=more.pop("is_iterator", False), lists=(), where=LINE)
    return SetupFacts(empty=given, model_class="Net", parameters=parameters, trainable_parameters=trainable, **more)


def test_an_empty_parameter_list_has_one_cause() -> None:
    assert [f.message for f in empty_parameter_list.function(empty(10, 10))] == [
        "chosen yields none of the 10 parameters of Net"
    ]
    assert "already read" in next(empty_parameter_list.function(empty(10, 10, is_iterator=True))).message
    assert "has no parameters" in next(empty_parameter_list.function(empty(0, 0))).message
    assert list(empty_parameter_list.function(empty(10, 0))) == []  # frozen-model
    typo = MisspelledMethod(
        owner="Net", base="nn.Module", written="__int__", meant="__init__", inherited=True, where=LINE
    )
    assert list(empty_parameter_list.function(empty(0, 0, misspelled=(typo,)))) == []


@pytest.mark.parametrize(("folder", "named"), [("here", 0), ("here/package", 0), ("elsewhere", 1)])
def test_only_the_script_and_what_is_beside_it_can_call_its_methods(folder: str, named: int, tmp_path: Path) -> None:
    """Another program that is loaded in the same process may use the same wrong name."""
    for place in ("here", folder):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
    script = defined("class Net(nn.Module):\n    def foward(self, x):\n        return x\n", tmp_path / "here")
    other = tmp_path / folder / "other.py"
    other.write_text("def run(net, x):\n    return net.foward(x)\n")
    scopes = [{**script, "__name__": "__main__"}, {"__name__": "other", "__file__": str(other)}]
    assert len(misspelled_methods(scopes)) == named
