"""Which lines a copy of a script goes past, and which it does not."""

import pytest

from trainwright.core import Failure, Place
from trainwright.seams.source.going_past import go_past

GONE = "cannot import name 'Repository' from 'huggingface_hub' (…)"
FLAT = "zero-dimensional tensor (at position 0) cannot be concatenated"


def stop(text: str, message: str, *lines: int, kind: str = "RuntimeError") -> str | None:
    """The text of the copy, where the user's frames stand at these lines, the outermost first."""
    trace = tuple(f"train.py:{line} in f: …" for line in lines)
    failure = Failure(type=kind, message=message, where=Place("train.py", lines[-1]), trace=trace)
    passed = go_past(failure, lambda file: text)
    if passed is not None:
        assert passed.text.count("\n") == text.count("\n")
    return passed.text if passed is not None else None


def test_a_name_that_only_sends_has_a_stand_in() -> None:
    text = "from huggingface_hub import (\n    Repository as R,\n    login,\n)\nR('x')\n"
    copy = stop(text, GONE, 1, kind="ImportError")
    assert copy is not None
    assert copy.startswith(
        "from huggingface_hub import login; from trainwright.seams.isolation.inert import Nothing as R\n"
    )
    assert copy.splitlines()[4] == "R('x')"
    names: dict[str, object] = {}
    exec(compile(copy, "train.py", "exec"), names)
    assert not list(names["R"]().anything())  # type: ignore[operator]


def test_an_attribute_of_a_module_has_one_too() -> None:
    text = "import huggingface_hub as hub\nrepo = hub.Repository('x', clone_from='y')\n"
    copy = stop(text, "module 'huggingface_hub' has no attribute 'Repository'", 2, kind="AttributeError")
    assert copy is not None and "clone_from='y'" in copy
    exec(compile(copy, "train.py", "exec"), {})


@pytest.mark.parametrize(
    "message",
    [
        "cannot import name 'AdamW' from 'transformers' (…)",
        "cannot import name 'cached_download' from 'huggingface_hub' (…)",
        "cannot import name 'PyTorchModelHubMixin' from 'huggingface_hub' (…)",
        "cannot import name 'WandbCallback' from 'wandb.keras' (…)",
    ],
)
def test_a_part_of_training_has_none(message: str) -> None:
    name = message.split("'")[1]
    assert stop(f"from {message.split(chr(39))[3]} import {name}\n", message, 1, kind="ImportError") is None


def test_numbers_without_a_dimension_are_stacked() -> None:
    copy = stop("loss = torch.mean(torch.cat(losses))\n", FLAT, 1)
    assert copy == "loss = torch.mean(torch.stack(losses))\n"


EVALUATES = """
def evaluate():
    model.eval()
    return table[3]

def main():
    evaluate()
    {last}
main()
"""


def test_an_evaluation_whose_value_nobody_uses_is_left_out() -> None:
    copy = stop(EVALUATES.format(last="score = 1"), "3", 9, 7, 4, kind="KeyError")
    assert copy is not None and copy.splitlines()[6] == "    pass" and copy.splitlines()[8] == "main()"


@pytest.mark.parametrize("inner", ["loss.backward()", "global best", "trainer.fit(model)", "optimizer.step()"])
def test_one_that_trains_or_sets_names_is_kept(inner: str) -> None:
    text = EVALUATES.replace("    model.eval()\n", f"    {inner}; model.eval()\n").format(last="pass")
    assert stop(text, "3", 9, 7, 4, kind="KeyError") is None


def test_what_is_only_said_is_left_out_whole() -> None:
    text = "for step in range(3):\n    accelerator.print({\n        'n': step * unknown,\n    })\n    train()\n"
    copy = stop(text, "name 'unknown' is not defined", 3, kind="NameError")
    assert copy is not None and copy.splitlines() == ["for step in range(3):", "    pass", "", "", "    train()"]


@pytest.mark.parametrize(
    "line",
    [
        "model.load_state_dict(state)",
        "loss = compute(batch)",
        "main()",
        "self.log('loss', value)",
        "print(n := table[3])",
        "trainer.train()",
        "rows.append(table[3])",
    ],
)
def test_other_lines_are_kept(line: str) -> None:
    assert stop(f"{line}\n", "3", 1, kind="KeyError") is None
