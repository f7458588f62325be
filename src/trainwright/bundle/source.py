"""The statements of a script: put in one row with those of its own modules, and cut down to what a line depends on."""

from __future__ import annotations

import ast
import builtins
import contextlib
import symtable
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Modules that import each other are put in so deep.
_DEEPEST = 4
# Statements that set the seed are kept: they are short, and others see the same numbers.
_SEEDS = ("seed", "manual_seed", "set_seed", "seed_everything", "set_random_seed", "enable_full_determinism")
_KNOWN = {*dir(builtins), "__file__", "__name__"}


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement at the top level."""

    node: ast.stmt
    file: str = ""
    text: str = field(init=False)
    """Its source, without comments."""
    binds: set[str] = field(init=False, default_factory=set)
    loads: set[str] = field(init=False, default_factory=set)
    changes: set[str] = field(init=False, default_factory=set)
    """Names whose objects it may change: `model.compile()`, `x[0] = 1`, `init(model)`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", ast.unparse(self.node))
        top = symtable.symtable(self.text, "", "exec")
        scopes = [top]
        for scope in scopes:
            scopes += scope.get_children()
            names = [s for s in scope.get_symbols() if scope is top or s.is_global()]
            self.binds.update(s.get_name() for s in names if s.is_assigned() or s.is_imported())
            self.loads.update(s.get_name() for s in names if s.is_referenced())
        if isinstance(self.node, ast.AugAssign):
            self.loads.update(self.binds)
        if not self.is_definition:
            for node in ast.walk(self.node):
                is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
                if (is_call and ast.unparse(node)[:6] != "print(") or _puts_into(node):
                    self.changes.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))

    @property
    def is_definition(self) -> bool:
        """Whether its names are looked up when it is called."""
        return isinstance(self.node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)

    @property
    def is_import(self) -> bool:
        """Whether it imports."""
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    @property
    def sets_seed(self) -> bool:
        """Whether it sets a seed of random numbers."""
        call = self.node.value if isinstance(self.node, ast.Expr) else None
        return isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in _SEEDS

    def holds(self, file: str, line: int) -> bool:
        """Whether a line of a file is in it."""
        return self.file == file and self.node.lineno <= line <= (self.node.end_lineno or self.node.lineno)


def _puts_into(node: ast.AST) -> bool:
    """Whether an assignment is one to an attribute or a part of something."""
    targets = getattr(node, "targets", [getattr(node, "target", None)]) if isinstance(node, ast.stmt) else ()
    return any(isinstance(t, ast.Attribute | ast.Subscript) for t in targets)


def read_statements(text: str, file: Path, folders: Sequence[Path]) -> list[Statement]:
    """The script's statements in one row: `main()` opened, modules from the folders put in.

    Raises:
        SyntaxError: if the text is no Python.
    """
    found = list(_put_in(_opened(ast.parse(text).body), file, [file.parent, *folders], set(), 0))
    return sorted(found, key=lambda s: getattr(s.node, "module", "") != "__future__")


def list_needed(statements: Sequence[Statement], wanted: Iterable[Statement]) -> list[Statement]:
    """The wanted statements and all that they depend on, in order."""
    kept, names = set(wanted), set[str]()
    last = max((statements.index(s) for s in kept), default=-1)
    defined = {n: s for s in statements[: last + 1] if s.is_definition for n in s.binds}
    for one in reversed(statements[: last + 1]):
        if one in kept or one.sets_seed or (one.binds | one.changes) & names:
            kept.add(one)
            if not isinstance(one.node, ast.For | ast.While | ast.If | ast.With | ast.Try | ast.AugAssign):
                names -= one.binds
            todo = list(one.loads)
            for name in todo:  # what a function uses is looked up when it is called
                todo += (defined[name].loads - set(todo)) if name in defined else ()
            names.update(todo)
    return [s for s in statements if s in kept]


def text_of(statements: Sequence[Statement]) -> str:
    """The statements as source; imports take only names that are used."""
    used = {name for s in statements if not s.is_import for name in s.loads}
    parts, imported, was_import = list[str](), set[str](), True
    for one in statements:
        node, text = one.node, one.text
        if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", "") != "__future__":
            names = [a for a in node.names if a.name == "*" or (a.asname or a.name.partition(".")[0]) in used]
            text = ast.unparse(type(node)(**{**dict(ast.iter_fields(node)), "names": names})) if names else ""
            if text in imported or not text:
                continue
            imported.add(text)
        gap = one.is_definition or (was_import and not one.is_import)
        parts.append("\n" + text if gap and parts else text)
        was_import = one.is_import
    return "\n".join(parts) + "\n"


def smaller(statements: list[Statement], shows: Callable[[list[Statement]], bool]) -> list[Statement]:
    """As few of the statements as still show it: ever smaller runs of them are left out (Zeller, Why programs fail, 2005)."""
    size = max(1, len(statements) // 2)
    while size >= 1:
        at = 0
        while at < len(statements):
            fewer = statements[:at] + statements[at + size :]
            known = _KNOWN.union(*(s.binds for s in fewer))
            if fewer and all(s.loads <= known for s in fewer) and shows(fewer):
                statements = fewer
            else:
                at += size
        size //= 2
    return statements


def _opened(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body with `if __name__ == "__main__":` opened, and `main()` replaced by its statements."""
    guarded = [s for one in body for s in (_guarded(one) or [one])]
    opened = {f"{s.name}()": s for s in body if isinstance(s, ast.FunctionDef) and _can_open(s)}
    calls = [(one, opened.get(ast.unparse(one))) for one in guarded]
    found = [s for one, made in calls for s in (made.body if made else [one])]
    unused = {s.name for s in opened.values()} - {n.id for s in found for n in ast.walk(s) if isinstance(n, ast.Name)}
    return [
        s
        for s in found
        if not (isinstance(s, ast.FunctionDef) and s.name in unused)
        and not isinstance(s, ast.Return | ast.Global)
        and not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
    ]


def _guarded(one: ast.stmt) -> list[ast.stmt]:
    """The statements below `if __name__ == "__main__":`; none below others."""
    return one.body if isinstance(one, ast.If) and "__name__" in ast.unparse(one.test) else []


def _can_open(made: ast.FunctionDef) -> bool:
    """Whether its statements mean the same outside of it: no arguments, and no return before its end."""
    body = made.body[:-1] if isinstance(made.body[-1], ast.Return) else made.body
    with contextlib.suppress(SyntaxError):
        compile(ast.Module(body, []), "", "exec")
        return not made.decorator_list and not ast.unparse(made.args)
    return False


def _put_in(
    body: Sequence[ast.stmt], file: Path, folders: Sequence[Path], done: set[Path], depth: int
) -> Iterator[Statement]:
    """The statements; those of the user's own modules in place of the imports."""
    for node in body:
        source = _module(node, file, folders) if depth < _DEEPEST else None
        if source is None or not isinstance(node, ast.Import | ast.ImportFrom):
            yield Statement(node, str(file.resolve()))
            continue
        if source not in done:
            done.add(source)
            inside = [s for s in ast.parse(source.read_text("utf-8")).body if not _guarded(s)]
            yield from _put_in(inside, source, folders, done, depth + 1)
        for alias in node.names:
            name, said = alias.asname or alias.name, [f"{alias.asname} = {alias.name}"]
            if isinstance(node, ast.Import):
                parts = (n for one in body for n in ast.walk(one) if isinstance(n, ast.Attribute))
                members = sorted({n.attr for n in parts if ast.unparse(n.value) == name})
                given = ", ".join(f"{m}={m}" for m in members)
                said = ["from types import SimpleNamespace", f"{name} = SimpleNamespace({given})"]
            elif name == alias.name:
                continue
            yield from (Statement(ast.parse(text).body[0]) for text in said)


def _module(node: ast.stmt, file: Path, folders: Sequence[Path]) -> Path | None:
    """The user's own file that an import reads."""
    if isinstance(node, ast.ImportFrom):
        base, module = [file.parents[node.level - 1]] if node.level else folders, node.module or ""
    elif (
        isinstance(node, ast.Import)
        and len(node.names) == 1
        and ("." not in node.names[0].name or node.names[0].asname)
    ):
        base, module = folders, node.names[0].name
    else:
        return None
    paths = [folder.joinpath(*module.split(".")) for folder in base] if module else []
    files = (one for path in paths for one in (path.with_suffix(".py"), path / "__init__.py"))
    return next((one.resolve() for one in files if one.is_file() and "site-packages" not in str(one)), None)
