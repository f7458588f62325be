"""Write what the variables of a program hold when it runs: kind, shape, type, distinct values.

    python exam/variables.py OUT SCRIPT [ARGUMENTS...]

An operator plants its fault where a variable is what the fault needs (`exam/roles.py`).
"""

import ast
import contextlib
import json
import math
import os
import sys
import types
from pathlib import Path
from typing import Any

_SMALL = 2_000_000  # values of an array that are counted for distinct ones


class _Noting(ast.NodeTransformer):
    """Each function of the script notes its variables when it first returns; lines stay as they are."""

    def __init__(self) -> None:
        self._scope: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._scope.append(node.name)
        self.generic_visit(node)
        self._scope.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._scope += [node.name, "<locals>"]
        self.generic_visit(node)
        name = ".".join(self._scope[:-1])
        del self._scope[-2:]
        documented = ast.get_docstring(node, clean=False) is not None
        head, body = node.body[:documented], node.body[documented:]
        note = ast.parse(f"__noted__ is not None and __noted__({name!r}, locals())").body[0]
        if body:
            node.body = [*head, ast.Try(body=body, handlers=[], orelse=[], finalbody=[note])]
        return node


def run_noting(script: str, names: dict[str, Any]) -> None:
    """Run the script as __main__, with the variables of its functions and of the module in `names`."""
    seen: set[str] = set()

    def noted(scope: str, values: dict[str, Any]) -> None:
        if scope not in seen:
            seen.add(scope)
            names.update({f"{scope}::{k}": s for k, v in values.items() if (s := _seen(v))})

    tree = ast.fix_missing_locations(_Noting().visit(ast.parse(Path(script).read_text(encoding="utf-8"))))
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=script, __noted__=noted)
    sys.modules["__main__"] = module
    exec(compile(tree, script, "exec"), module.__dict__)
    names.update({f"::{k}": s for k, v in list(vars(module).items()) if (s := _seen(v))})


def _seen(value: Any) -> dict[str, Any] | None:
    """Kind, shape and type of a value that a fault could be planted in, or None."""
    with contextlib.suppress(Exception):
        kind = _kind(value)
        if kind in ("tensor", "array", "series"):
            array = value.detach().cpu().numpy() if kind == "tensor" else value
            flat = getattr(array, "values", array)
            counted = flat.size <= _SMALL and flat.dtype.kind in "iufb"
            import numpy

            distinct = len(numpy.unique(flat)) if counted else None
            finite = counted and flat.size and flat.dtype.kind in "iuf"
            low, high = (float(flat.min()), float(flat.max())) if finite else (None, None)
            bounds = (
                (low, high) if low is not None and math.isfinite(low) and high and math.isfinite(high) else (None, None)
            )
            return {
                "kind": kind,
                "shape": list(flat.shape),
                "type": str(flat.dtype),
                "distinct": distinct,
                "range": bounds,
            }
        if kind in ("frame", "rows"):
            columns = list(getattr(value, "columns", None) if kind == "frame" else value.column_names)
            return {"kind": kind, "shape": [len(value), len(columns)], "columns": [str(c) for c in columns]}
        if kind == "sets":
            return {"kind": kind, "columns": next(iter(value.values())).column_names, "sets": list(value)}
        if kind:
            length = len(value) if hasattr(value, "__len__") and kind != "model" else None
            return {"kind": kind, "shape": [length], "class": type(value).__name__}
    return None


def _kind(value: Any) -> str | None:
    bases = {f"{c.__module__.split('.')[0]}.{c.__name__}" for c in type(value).__mro__}
    table = {
        "torch.Tensor": "tensor",
        "numpy.ndarray": "array",
        "pandas.Series": "series",
        "pandas.DataFrame": "frame",
        "datasets.Dataset": "rows",
        "datasets.DatasetDict": "sets",
        "torch.DataLoader": "loader",
        "torch.Dataset": "dataset",
        "torch.Module": "model",
        "keras.Model": "model",
        "torch.Optimizer": "optimizer",
        "builtins.list": "list",
    }
    return next((kind for name, kind in table.items() if name in bases), None)


def main(out: str, script: str, arguments: list[str]) -> None:
    """Run `script` as `python script` would, and write its variables, whatever ends it."""
    names: dict[str, Any] = {}
    sys.argv[:] = [script, *arguments]
    sys.path[0] = str(Path(script).parent)
    try:
        run_noting(script, names)
    finally:
        Path(out).write_text(json.dumps(names), encoding="utf-8")
        os._exit(0)  # threads and workers of the program do not matter any more


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
