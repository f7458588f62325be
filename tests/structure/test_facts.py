"""No fact is measured for nobody: each is read by a rule, the report, the check, or what measures another one."""

import ast
import dataclasses
import importlib
import pkgutil
from pathlib import Path

import pytest

import trainwright
from trainwright import stages

ROOT = Path(trainwright.__file__).parent
CLASSES = sorted(
    {
        kind
        for info in pkgutil.iter_modules(stages.__path__)
        for kind in vars(importlib.import_module(f"{stages.__name__}.{info.name}")).values()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__.startswith(stages.__name__)
    },
    key=lambda kind: kind.__qualname__,
)
READ = {
    node.attr
    for path in ROOT.rglob("*.py")
    for node in ast.walk(ast.parse(path.read_text("utf-8")))
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__qualname__)
def test_every_fact_is_read(kind: type) -> None:
    assert [f.name for f in dataclasses.fields(kind) if f.name not in READ] == []
