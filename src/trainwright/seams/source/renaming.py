"""Another name in place of a misspelt one in a source text; nothing else of the text changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def is_set(text: str, name: str) -> bool:
    """Whether a text gives a value to a name anywhere: then it is used too early, not misspelt."""
    tree = parse_text(text)
    return tree is not None and name in set_names(tree)


def parse_text(text: str | None) -> ast.Module | None:
    """A text's syntax tree; None if it is not valid Python."""
    try:
        return ast.parse(text) if text is not None else None
    except (SyntaxError, ValueError):
        return None


def rename_in_text(text: str, line: int, written: str, meant: str, *, of_object: bool = False) -> str | None:
    """The text with another name; None if the line has none to replace, or if the text sets it.

    A name that is set nowhere is replaced everywhere if the other one is a name of the whole file, else on the line;
    an object's attribute on the line.
    """
    tree = parse_text(text)
    if tree is None:
        return None
    if of_object:
        found = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == written]
        ends = [(n.end_lineno or 0, n.end_col_offset or 0) for n in found]
        return _replaced(text, [end for end in ends if end[0] == line], written, meant)
    if written in set_names(tree):
        return None
    uses = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == written]
    ends = [(n.end_lineno or 0, n.end_col_offset or 0) for n in uses]
    here = [end for end in ends if end[0] == line]
    return _replaced(text, ends if here and meant in names_of_file(tree) else here, written, meant)


def set_names(tree: ast.AST) -> set[str]:
    """The names that get a value somewhere: `x += 1` needs one that is there."""
    added = {id(n.target) for n in ast.walk(tree) if isinstance(n, ast.AugAssign)}
    return {name for node in ast.walk(tree) if id(node) not in added for name in _set_by(node)}


def names_of_file(tree: ast.Module) -> set[str]:
    """The names that the statements of a file set outside of its functions and classes."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        found.update(_set_by(node))
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _set_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name


def _replaced(text: str, ends: list[tuple[int, int]], written: str, meant: str) -> str | None:
    """The text with a name replaced where it ends at these lines and columns (in bytes)."""
    lines = text.encode().splitlines(keepends=True)
    for line, column in sorted(ends, reverse=True):
        whole, first = lines[line - 1], column - len(written.encode())
        if whole[first:column] != written.encode():
            return None
        lines[line - 1] = whole[:first] + meant.encode() + whole[column:]
    return b"".join(lines).decode() if ends else None
