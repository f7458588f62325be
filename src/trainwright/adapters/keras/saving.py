"""Files that a script will save its trained model to, but whose names Keras 3 rejects."""

from __future__ import annotations

import ast
import inspect
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from trainwright.core.finding import Failure, Place
from trainwright.seams.failures.blame import failure_of
from trainwright.seams.source.places import is_users, show
from trainwright.seams.source.reached_statements import after, own_nodes
from trainwright.seams.source.written import code_node, look_up, names_of, syntax_tree
from trainwright.stages.setup import RefusedFile
from trainwright.tensors.keras.which_keras import keras, version

# Saving methods, and the suffixes of which each accepts one.
_TAKEN = {"save": (".keras", ".h5", ".hdf5"), "save_weights": (".weights.h5",)}


def refused_files(model: Any, frame: FrameType | None) -> tuple[RefusedFile, ...]:
    """The files that Keras rejects, of those that the model is certain to be saved to after a frame's call returns.

    Only paths that are already known count, and only if the saving method is Keras's own.
    """
    found: list[RefusedFile] = []
    while frame is not None and version().package == "keras":
        if is_users(frame.f_code.co_filename):
            found += _refused_in(model, frame)
        frame = frame.f_back if frame.f_code.co_name != "<module>" else None
    return tuple(found)


def _refused_in(model: Any, frame: FrameType) -> Iterator[RefusedFile]:
    """The rejected files that a frame's own function saves to after its current line."""
    file, scope = frame.f_code.co_filename, {**frame.f_globals, **frame.f_locals}
    tree = syntax_tree(file)
    code = code_node(frame.f_code)
    if tree is None or code is None:
        return
    for call, method in saved_by(code, frame.f_lineno, names_of(model, frame)):
        given = call.args[0]
        path = given.value if isinstance(given, ast.Constant) else look_up(given, scope)
        if not isinstance(path, (str, os.PathLike)) or not _is_kerass(getattr(type(model), method)):
            continue
        written = os.fspath(path)
        if (failure := _refusal(method, written)) is not None:
            yield RefusedFile(
                method=method,
                path=written,
                failure=failure,
                where=Place(show(file), call.lineno),
                taken_as=f"{written.rstrip('/')}{_TAKEN[method][0]}",
                alone=isinstance(given, ast.Constant) and is_alone(given, written, tree),
            )


def saved_by(code: ast.AST, line: int, names: list[str]) -> Iterator[tuple[ast.Call, str]]:
    """The calls that certainly save an object of these names after a line, each with its method.

    Calls that depend on a name that is rebound in between are left out.
    """
    anew: set[str] = set()
    for statement, sure in after(code, line, "ValueError"):
        nodes = list(own_nodes(statement))
        for call in (n for n in nodes if sure and isinstance(n, ast.Call)):
            if (
                isinstance(call.func, ast.Attribute)
                and call.func.attr in _TAKEN
                and isinstance(call.func.value, ast.Name)
                and call.func.value.id in names
                and len(call.args) == 1
                and not call.keywords
                and not anew & {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
            ):
                yield call, call.func.attr
        anew |= {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}


def is_alone(written: ast.Constant, path: str, tree: ast.Module) -> bool:
    """Whether no other string in the script contains the file's name, apart from docstrings and the like."""
    name = re.compile(rf"(?<![\w.-]){re.escape(Path(path).name)}(?![\w.-])")
    passed_over = {id(written), *(id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr))}
    texts = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in passed_over)
    return not any(isinstance(n.value, str) and name.search(n.value) for n in texts)


def _is_kerass(method: Any) -> bool:
    return str(getattr(method, "__module__", "")).partition(".")[0] == version().package


def _refusal(method: str, path: str) -> Failure | None:
    """Keras's error for a path with this suffix, tried with a one-weight model and a temporary folder."""
    if path.endswith(_TAKEN[method]) or "://" in path:
        return None
    asked = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    with tempfile.TemporaryDirectory() as folder:
        try:
            # A walk stops the method itself from saving.
            inspect.unwrap(getattr(type(asked), method))(asked, Path(folder) / Path(path).name)
        except ValueError as error:
            return failure_of(error)
    return None
