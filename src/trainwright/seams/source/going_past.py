"""A copy of a script's text that goes past the line that stopped it; the other lines stay as they are, with their numbers.

Four kinds of lines can be passed without changing what is trained: a misspelt name, as Python itself corrects it; a name
that a library no longer has, if it only sends, stores, tracks or draws; a statement whose value nobody uses, if it only says or measures something; and a concatenation of
numbers that have no dimension, which is what stacking them means.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainwright.core import Failure, Place
from trainwright.core.misspelt import misspelt
from trainwright.seams.source.renaming import parse_text, rename_in_text
from trainwright.seams.source.written import last_name

Read = Callable[[str], str | None]
"""A file's text; None where it has none."""

# What stands in for a name that is gone: it accepts every call and does nothing.
_STAND_IN_MODULE, _STAND_IN = "trainwright.seams.isolation.inert", "Nothing"
_NOT_IMPORTED = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_NO_ATTRIBUTE = re.compile(r"module '?([\w.]+)'? has no attribute '?(\w+)'?")
# Packages that only track or draw, and names of the Hub's that only send: no part of a training.
_BESIDE_TRAINING = frozenset(
    {"wandb", "mlflow", "neptune", "comet_ml", "clearml", "aim", "trackio", "matplotlib", "seaborn", "plotly"}
)
_HUB, _SENDING = (
    "huggingface_hub",
    re.compile(r"Repository|push|upload|commit|log(in|out)|Folder|create_|delete_", re.I),
)
# What a framework calls back decides about training.
_CALLED_BACK = re.compile(r"callback|logger", re.I)
_NO_DIMENSION = re.compile(r"zero-dimensional (tensor|array)s?.* cannot be concatenated")
_CONCATENATING = ("cat", "concat", "concatenate")
_SAYING = frozenset({"print", "pprint", "display", "log", "info", "debug", "warning", "write", "show", "savefig", "push_to_hub",
                     "add_scalar", "add_scalars", "add_text", "add_image", "set_postfix", "set_description", "log_metric",
                     "log_metrics"})  # fmt: skip
_MEASURING = frozenset({"eval", "no_grad", "inference_mode"})
_TRAINING = frozenset(
    {"backward", "step", "fit", "train_step", "training_step", "train_on_batch", "apply_gradients", "minimize"}
)
_FRAME = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+) in ")


@dataclass(frozen=True)
class PassedLine:
    """A line that a copy of the script goes past."""

    where: Place
    does: str
    """What the copy does instead, in a few words."""
    text: str
    """The file's text in the copy."""

    @property
    def said(self) -> str:
        """The line and what the copy does there."""
        return f"line {self.where.line}: {self.does}"


def go_past(failure: Failure, read: Read) -> PassedLine | None:
    """The copy of one file with which a script goes past an exception; None if that would change what is trained."""
    for depth, place in enumerate(reversed(_places(failure))):
        text = read(place.file)
        tree = parse_text(text)
        if text is None or tree is None:
            continue
        corrected = _corrected(failure, text, place) if not depth else None
        if corrected is not None:
            return corrected
        found = _without_name(failure, tree, place.line) if not depth else None
        found = found or (_stacked(failure, tree, place) if not depth else None) or _left_out(tree, place.line)
        if found is not None:
            changed = _replaced(text, found.node, found.new)
            return PassedLine(place, found.does, changed) if parse_text(changed) else None
    return None


def _corrected(failure: Failure, text: str, place: Place) -> PassedLine | None:
    """The copy with the name that Python suggests for a misspelt one."""
    slip = misspelt(failure)
    if slip is None:
        return None
    changed = rename_in_text(text, place.line, slip.written, slip.meant, of_object=slip.is_attribute)
    does = f"{slip.meant} for {slip.written}"
    return PassedLine(place, does, changed) if changed is not None and parse_text(changed) else None


@dataclass(frozen=True)
class _Change:
    node: ast.AST
    new: str
    does: str


def _places(failure: Failure) -> list[Place]:
    """The user's lines on the way to an exception, the outermost first."""
    found = [match for frame in failure.trace if (match := _FRAME.match(frame))]
    places = [Place(match["file"], int(match["line"])) for match in found]
    return places or ([failure.where] if failure.where is not None and failure.where.cell is None else [])


def _replaced(text: str, node: ast.AST, new: str) -> str:
    """The text with new source for a node, on as many lines."""
    lines = text.encode().splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    assert isinstance(node, (ast.stmt, ast.expr)) and node.end_lineno is not None and node.end_col_offset is not None
    first, last = begins[node.lineno - 1] + node.col_offset, begins[node.end_lineno - 1] + node.end_col_offset
    whole = text.encode()
    return (whole[:first] + new.encode() + b"\n" * (node.end_lineno - node.lineno) + whole[last:]).decode()


def _spanning(tree: ast.AST, line: int) -> Iterator[ast.AST]:
    """The statements and expressions on a line, the innermost first."""
    nodes = [
        n for n in ast.walk(tree) if isinstance(n, (ast.stmt, ast.expr)) and n.lineno <= line <= (n.end_lineno or 0)
    ]
    yield from sorted(nodes, key=lambda n: ((n.end_lineno or 0) - n.lineno, -n.lineno))


# A name that is gone


def _without_name(failure: Failure, tree: ast.AST, line: int) -> _Change | None:
    """The import of a name, or its use as a module's attribute, with a stand-in."""
    imported, attribute = _NOT_IMPORTED.search(failure.message), _NO_ATTRIBUTE.search(failure.message)
    owner, name = (imported[2], imported[1]) if imported else (attribute[1], attribute[2]) if attribute else ("", "")
    if not _is_beside_training(owner, name):
        return None
    does = f"{name} is a stand-in that does nothing"
    for node in _spanning(tree, line):
        if isinstance(node, ast.ImportFrom) and any(one.name == name for one in node.names):
            return _Change(node, _import_without(node, name), does)
        if isinstance(node, ast.Attribute) and node.attr == name and not imported:
            return _Change(node, f"__import__({_STAND_IN_MODULE!r}, fromlist=['*']).{_STAND_IN}", does)
    return None


def _is_beside_training(owner: str, name: str) -> bool:
    package = owner.partition(".")[0]
    sends = package == _HUB and _SENDING.search(name) is not None
    return (package in _BESIDE_TRAINING or sends) and _CALLED_BACK.search(name) is None


def _import_without(node: ast.ImportFrom, name: str) -> str:
    left = [one for one in node.names if one.name != name]
    gone = next(one for one in node.names if one.name == name)
    kept = ast.unparse(ast.ImportFrom(module=node.module, names=left, level=node.level)) + "; " if left else ""
    return f"{kept}from {_STAND_IN_MODULE} import {_STAND_IN} as {gone.asname or name}"


# Numbers that have no dimension


def _stacked(failure: Failure, tree: ast.AST, place: Place) -> _Change | None:
    """A concatenation of numbers as a stack of them."""
    if not _NO_DIMENSION.search(failure.message):
        return None
    calls = [n for n in _spanning(tree, place.line) if isinstance(n, ast.Call) and last_name(n.func) in _CONCATENATING]
    if len(calls) != 1 or not isinstance(calls[0].func, ast.Attribute):
        return None
    function = calls[0].func
    new = f"{ast.unparse(function.value)}.stack"
    does = f"{new} for {ast.unparse(function)}"
    return _Change(function, new, does)


# A statement that only says or measures something


def _left_out(tree: ast.Module, line: int) -> _Change | None:
    for node in _spanning(tree, line):
        if isinstance(node, ast.stmt):
            call = node.value if isinstance(node, ast.Expr) else None
            if not isinstance(call, ast.Call):
                return None
            does = f"{ast.unparse(call.func)}(…) is left out"
            return _Change(node, "pass", does) if _says(call) or _measures(call, tree) else None
    return None


def _says(call: ast.Call) -> bool:
    owner = last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    binds = any(isinstance(n, ast.NamedExpr) for n in ast.walk(call))
    return last_name(call.func) in _SAYING and owner != "self" and not binds


def _measures(call: ast.Call, tree: ast.Module) -> bool:
    """Whether a call is of a function of the same file that evaluates, and neither trains nor sets outer names."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    made = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    if len(made) != 1:
        return False
    inner = list(ast.walk(made[0]))
    named = {last_name(n) for n in inner if isinstance(n, (ast.Name, ast.Attribute))}
    sets = any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in inner)
    return bool(named & _MEASURING) and not named & _TRAINING and not sets
