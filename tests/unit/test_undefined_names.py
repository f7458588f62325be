"""Which names count as set nowhere."""

import builtins

import pytest

from trainwright.seams.source.undefined_names import _GIVEN, undefined_in


def found(text: str) -> list[tuple[str, str, int]]:
    there = {*dir(builtins), *_GIVEN, "__file__"}
    return [(one.name, one.meant, one.where.line) for one in undefined_in(text, "train.py", there)]


def test_a_name_in_a_branch_and_in_a_function() -> None:
    text = "eval_steps = 5\nif eval_step:\n    print(rows)\ndef f(a):\n    return a + rows\n"
    assert found(text) == [("eval_step", "eval_steps", 2), ("rows", "", 3)]


@pytest.mark.parametrize(
    "text",
    [
        "from torch import *\nprint(tensor(1))\n",
        "for key, value in settings():\n    exec(f'{key} = {value}')\nprint(rate)\ndef settings(): return []\n",
        "try:\n    fast\nexcept NameError:\n    fast = False\n",
        "def f():\n    global count\n    count = 1\nf()\nprint(count)\n",
        "from __future__ import annotations\ndef f(a: Tensor) -> Model: ...\n",
        "if __name__ == '__main__':\n    display(get_ipython(), __file__)\n",
        "text = unicode\n",
        "def f():\n    x = 1\n    def g(): return x\n    g()\n    del x\n",
        "import builtins\nbuiltins.log = print\nlog(1)\n",
        "%matplotlib inline\nprint(rows)\n",
    ],
)
def test_names_that_may_be_set_are_left_alone(text: str) -> None:
    assert found(text) == []
