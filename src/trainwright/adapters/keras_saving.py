"""Files that a script will save its model to once it is trained, and that Keras 3 refuses for their names."""

from __future__ import annotations

import ast
import os
import tempfile
from pathlib import Path
from typing import Any

from trainwright.core.finding import Failure, Place
from trainwright.seams.place import failure_of, look_up, names_of, show, syntax_tree
from trainwright.stages.setup import RefusedFile
from trainwright.tensors.keras_own import keras, own

# The methods that save, and the endings of which one is surely taken.
_TAKEN = {"save": (".keras", ".h5", ".hdf5"), "save_weights": (".weights.h5",)}


def refused_files(model: Any, frame: Any) -> tuple[RefusedFile, ...]:
    """The files that calls below a frame's line save the model to, by a path known now, and that are refused."""
    if own().package != "keras":
        return ()
    file, names, scope = (
        frame.f_code.co_filename,
        names_of(model, frame),
        {**frame.f_globals, **frame.f_locals},
    )
    tree, found = syntax_tree(file), []
    for node in ast.walk(tree) if tree else ():
        if (
            not isinstance(node, ast.Call)
            or not isinstance(node.func, ast.Attribute)
            or node.lineno <= frame.f_lineno
        ):
            continue
        owner, method = node.func.value, node.func.attr
        if (
            method not in _TAKEN
            or not isinstance(owner, ast.Name)
            or owner.id not in names
            or len(node.args) != 1
            or node.keywords
        ):
            continue
        given = node.args[0]
        path = given.value if isinstance(given, ast.Constant) else look_up(given, scope)
        if (
            isinstance(path, (str, os.PathLike))
            and (failure := _refusal(method, os.fspath(path))) is not None
        ):
            place = Place(show(file), node.lineno)
            found.append(RefusedFile(method=method, path=os.fspath(path), failure=failure, where=place,
                                     taken_as=f"{os.fspath(path).rstrip('/')}{_TAKEN[method][0]}"))  # fmt: skip
    return tuple(found)


def _refusal(method: str, path: str) -> Failure | None:
    """What Keras says of a path with this ending, asked with a model of one weight and a folder that is then removed."""
    if path.endswith(_TAKEN[method]) or "://" in path:
        return None
    asked = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    with tempfile.TemporaryDirectory() as folder:
        try:
            getattr(asked, method)(Path(folder) / Path(path).name)
        except ValueError as error:
            return failure_of(error)
    return None
