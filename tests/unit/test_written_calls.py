"""Which of the calls on a line a frame stands in: Python's own positions tell, whatever is written beside it."""

import ast
import linecache
import sys

import pytest

from trainwright.adapters.script_end.refused_calls import refused_anywhere
from trainwright.core import Failure
from trainwright.seams.source.written import call_end, call_node, failed_lines, keyword_places

SAME_LINE = "one, two = told(a=1), told(a=2); three = [told(a=n) for n in (3,)]"
NESTED = "told(told(a=1), a=2)"
LINES = """\
first = (
    Chain()
    .told(a=1)
    .told(
        a=2,
    )
)
"""


class Chain:
    def __init__(self, ends=None):
        self.ends = [] if ends is None else ends

    def told(self, **given):
        frame = sys._getframe(1)
        self.ends.append((frame.f_code.co_filename, frame.f_lineno, call_end(frame), given))
        return self


def calls(source, tmp_path):
    """What each call of a script is found to be, with what it was really given."""
    file, chain = tmp_path / "script.py", Chain()
    file.write_text(source, encoding="utf-8")
    scope = {"told": lambda *args, **given: chain_told(chain, given), "Chain": lambda: chain}
    exec(compile(source, str(file), "exec"), scope)
    return [(call_node(name, line, "told", end=end), given) for name, line, end, given in chain.ends]


def chain_told(chain, given):
    frame = sys._getframe(2)
    chain.ends.append((frame.f_code.co_filename, frame.f_lineno, call_end(frame), given))


@pytest.mark.parametrize("source", [SAME_LINE, NESTED, LINES, "é = 'ä'; told(a=1); told(a=2)"])
def test_the_call_is_the_one_that_is_running(source, tmp_path):
    found = calls(source, tmp_path)
    assert len(found) >= 2
    for call, given in found:
        (keyword,) = call.keywords
        assert keyword.arg == "a"
        assert isinstance(keyword.value, ast.Name) or ast.literal_eval(keyword.value) == given["a"]


def test_without_columns_the_innermost_call_of_the_line_is_meant(tmp_path):
    file = tmp_path / "script.py"
    file.write_text("told(\n    told(a=1),\n    a=2,\n)\n", encoding="utf-8")
    assert ast.unparse(call_node(str(file), 2)) == "told(a=1)"
    assert keyword_places(str(file), 2, end=(4, 1))["a"][1].value == 2


def test_of_two_calls_on_a_line_the_refused_one_is_named(tmp_path):
    source = "def one(rate): pass\ndef two(pace): pass\none(rate=1); two(rate=1)\n"
    file = tmp_path / "script.py"
    file.write_text(source, encoding="utf-8")
    linecache.checkcache(str(file))
    with pytest.raises(TypeError) as raised:
        exec(compile(source, str(file), "exec"), {})
    refused = refused_anywhere(raised.value, Failure(type="TypeError", message=str(raised.value), where=None))
    assert refused is not None and (refused.function, refused.argument) == ("two", "rate")


def test_each_line_on_the_way_to_an_exception_is_known_with_its_call_and_the_names_that_it_could_use(tmp_path):
    file = tmp_path / "script.py"
    source = "def divide(by):\n    return max(1 / by, 2)\n\nwidth = 0\ndivide(by=width)\n"
    file.write_text(source, encoding="utf-8")
    with pytest.raises(ZeroDivisionError) as raised:
        exec(compile(source, str(file), "exec"), {})
    outer, inner = [one for one in failed_lines(raised.value) if one.frame.f_code.co_filename == str(file)]
    assert (outer.line, ast.unparse(outer.call()), outer.scope["width"]) == (5, "divide(by=width)", 0)
    assert (inner.line, ast.unparse(inner.call()), inner.scope["by"]) == (2, "max(1 / by, 2)", 0)
