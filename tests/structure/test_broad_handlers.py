"""What catches every exception says whose it is: it lets it out, asks whose it is, or a comment beside it tells."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainwright
import trainwright_lm

ROOTS = [Path(package.__file__).parents[1] for package in (trainwright, trainwright_lm)]
FILES = {str(path.relative_to(root)): path for root in ROOTS for path in sorted(root.glob("trainwright*/**/*.py"))}
BROAD = {"Exception", "BaseException"}
# These let an error of our own out, or keep it for the report.
ASKING = {"failure_of", "note_own", "is_own", "told", "own_failure", "internal_error", "print_exc"}


def names(node: ast.AST | None) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} if node is not None else set()


def broad(tree: ast.AST) -> Iterator[tuple[int, int, list[ast.stmt]]]:
    """First and last line of the head, and the body that answers, of all that catches everything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and names(node.type) & BROAD:
            yield node.lineno, node.body[0].lineno, node.body
        elif isinstance(node, ast.With):
            for item in node.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and "suppress" in ast.unparse(call.func):
                    if {n for a in call.args for n in names(a)} & BROAD:
                        yield node.lineno - 1, node.body[0].lineno, []


def answers(body: list[ast.stmt]) -> bool:
    nodes = [n for statement in body for n in ast.walk(statement)]
    called = {
        n.func.id if isinstance(n.func, ast.Name) else getattr(n.func, "attr", "")
        for n in nodes
        if isinstance(n, ast.Call)
    }
    return bool(called & ASKING) or any(isinstance(n, ast.Raise) for n in nodes)


@pytest.mark.parametrize("path", FILES.values(), ids=FILES)
def test_whoever_catches_everything_says_whose_it_is(path: Path) -> None:
    text = path.read_text("utf-8")
    lines = text.split("\n")
    silent = [
        first
        for first, last, body in broad(ast.parse(text))
        if not answers(body) and not any("#" in line for line in lines[first - 1 : last])
    ]
    assert silent == []
