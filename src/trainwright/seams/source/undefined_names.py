"""Names that a script uses and that nothing sets: in a branch that has not run yet, nobody has seen the NameError."""

from __future__ import annotations

import ast
import builtins
import difflib
import linecache
import sys
from collections.abc import Iterator

from trainwright.core import Place
from trainwright.core.misspelt import is_slip
from trainwright.seams.source.places import is_users, show
from trainwright.seams.source.renaming import names_of_file, parse_text, set_names
from trainwright.stages import UndefinedName

# What a notebook gives its cells, and what Python 2 had: code for it stands in branches that are not to run.
_GIVEN = frozenset(
    {"display", "get_ipython", "In", "Out", "unicode", "xrange", "raw_input", "basestring", "long", "unichr", "reduce"}
)
# With these, text that is no code here may set a name.
_SETTING = frozenset({"exec", "globals", "setattr", "locals", "vars"})
# difflib's ratio above which two names count as similar.
_KIN = 0.75


def undefined_names() -> tuple[UndefinedName, ...]:
    """The names that the running script uses and that it does not set, each once."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if not isinstance(file, str) or not is_users(file):
        return ()
    there = {*_GIVEN, *dir(builtins), *vars(main)}
    return tuple(undefined_in("".join(linecache.getlines(file)), show(file), there))


def undefined_in(text: str, file: str, there: set[str]) -> Iterator[UndefinedName]:
    """The names that a text uses and does not set, each once.

    Args:
        file: as a report shows it.
        there: names that are set elsewhere.
    """
    from pyflakes import checker, messages  # it takes a moment: only where a training is checked

    tree = parse_text(text)
    if tree is None or any(_may_set(node) for node in ast.walk(tree)):
        return
    # A name that is set anywhere is not looked at: whether it is there at its use, the order of the calls decides.
    there, annotated, known = there | set_names(tree), _annotations(tree), names_of_file(tree)
    found = checker.Checker(tree, filename=file, builtins=there)
    for one in sorted(found.messages, key=lambda m: (m.lineno, m.col)):
        if not isinstance(one, messages.UndefinedName) or (one.lineno, one.col) in annotated:
            continue
        name = str(one.message_args[0])
        if name in there:
            continue
        there = there | {name}
        near = difflib.get_close_matches(name, sorted(known), 1, _KIN)
        meant = near[0] if near and is_slip(name, near[0]) else ""
        yield UndefinedName(name=name, meant=meant, where=Place(file, one.lineno))


def _may_set(node: ast.AST) -> bool:
    """Whether code may set a name that does not stand in it."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _SETTING
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return isinstance(node.value, ast.Name) and node.value.id == "builtins"
    return False


def _annotations(tree: ast.AST) -> set[tuple[int, int]]:
    """Where the names of annotations stand, which may never be evaluated."""
    roots: list[ast.AST] = []
    for node in ast.walk(tree):
        roots += [part for name in ("annotation", "returns") if isinstance(part := getattr(node, name, None), ast.AST)]
    nodes = [n for root in roots for n in ast.walk(root) if isinstance(n, ast.expr)]
    return {(n.lineno, n.col_offset) for n in nodes}
