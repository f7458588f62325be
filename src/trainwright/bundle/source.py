"""The statements of a script: made flat, its own modules put in, and cut down to what a line depends on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Modules that import each other are put in so deep.
_DEEPEST = 4
# Statements that set the seed are kept: they are short, and others see the same numbers.
_SEEDS = ("seed", "manual_seed", "set_seed", "seed_everything", "set_random_seed", "enable_full_determinism")


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement at the top level."""

    node: ast.stmt
    file: str
    binds: frozenset[str] = field(init=False)
    loads: frozenset[str] = field(init=False)
    changes: frozenset[str] = field(init=False)
    """Names whose objects it may change: `model.compile()`, `x[0] = 1`, `init(model)`."""

    def __post_init__(self) -> None:
        binds, loads = set(_bound(self.node)), set()
        for node in ast.walk(self.node):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                loads.add(node.id)
        if isinstance(self.node, ast.AugAssign) and isinstance(self.node.target, ast.Name):
            loads.add(self.node.target.id)
        object.__setattr__(self, "binds", frozenset(binds))
        object.__setattr__(self, "loads", frozenset(loads))
        object.__setattr__(self, "changes", frozenset(_changed(self.node)))

    @property
    def text(self) -> str:
        """Its source, without comments."""
        return ast.unparse(self.node)

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


def read_statements(text: str, file: Path, folders: Sequence[Path]) -> list[Statement]:
    """The script's statements in one row: `main()` opened, modules from the folders put in.

    Raises:
        SyntaxError: if the text is no Python.
    """
    body = _without_docstring(_opened(ast.parse(text).body))
    found = list(_put_in(_named_members(body, file, [file.parent, *folders]), file, [file.parent, *folders], set(), 0))
    futures = [s for s in found if isinstance(s.node, ast.ImportFrom) and s.node.module == "__future__"]
    return [*futures, *(s for s in found if s not in futures)]


def needed(statements: Sequence[Statement], wanted: Iterable[Statement]) -> list[Statement]:
    """The wanted statements and all that they depend on, in order."""
    place = {s: i for i, s in enumerate(statements)}
    kept = {place[s] for s in wanted}
    last = max(kept, default=-1) + 1
    kept |= {i for i, s in enumerate(statements[:last]) if s.sets_seed}
    todo, seen = sorted(kept), set[tuple[str, int]]()
    while todo:
        at = todo.pop()
        for name in statements[at].loads | (statements[at].changes - statements[at].binds):
            before = last if statements[at].is_definition else at
            if (name, before) not in seen:
                seen.add((name, before))
                new = set(_behind(statements, name, before)) - kept
                kept |= new
                todo += new
    return [statements[i] for i in sorted(kept)]


def _behind(statements: Sequence[Statement], name: str, before: int) -> Iterator[int]:
    """The statements before one that may have given a name its value."""
    for i in range(before - 1, -1, -1):
        one = statements[i]
        if name in one.binds:
            yield i
            if not isinstance(one.node, ast.For | ast.While | ast.If | ast.With | ast.Try | ast.AugAssign):
                return
        elif name in one.changes:
            yield i


def text_of(statements: Sequence[Statement]) -> str:
    """The statements as source."""
    parts: list[str] = []
    was_import = True
    for one in statements:
        gap = one.is_definition or (was_import and not one.is_import)
        parts.append(("\n" if gap and parts else "") + one.text)
        was_import = one.is_import
    return "\n".join(parts) + "\n"


def narrowed(statements: Sequence[Statement]) -> list[Statement]:
    """The statements, whose imports take only names that are used."""
    used = {name for s in statements if not s.is_import for name in s.loads}
    found = []
    for one in statements:
        node = one.node
        if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", "") != "__future__":
            names = [a for a in node.names if a.name == "*" or (a.asname or a.name.partition(".")[0]) in used]
            if not names:
                continue
            changed = ast.copy_location(ast.Import(names), node)
            if isinstance(node, ast.ImportFrom):
                changed = ast.copy_location(ast.ImportFrom(node.module, names, node.level), node)  # type: ignore[assignment]
            one = Statement(changed, one.file)
        found.append(one)
    unique: dict[str, Statement] = {}
    return [unique.setdefault(s.text, s) for s in found if not (s.is_import and s.text in unique)]


def smaller(statements: list[Statement], shows: Callable[[list[Statement]], bool]) -> list[Statement]:
    """As few of the statements as still show it: ever smaller runs of them are left out."""
    size = max(1, len(statements) // 2)
    while size >= 1:
        at = 0
        while at < len(statements):
            fewer = statements[:at] + statements[at + size :]
            if fewer and _is_whole(fewer) and shows(fewer):
                statements = fewer
            else:
                at += size
        size //= 2
    return statements


def _is_whole(statements: Sequence[Statement]) -> bool:
    """Whether no statement uses a name that only a statement left out could bind."""
    import builtins

    known = {name for s in statements for name in s.binds} | set(dir(builtins)) | {"__file__", "__name__"}
    local = {n for s in statements if s.is_definition for n in _inner(s.node)}
    return all(s.loads <= known | (local if s.is_definition else _inner(s.node)) for s in statements)


def _inner(node: ast.AST) -> set[str]:
    """Names that are bound anywhere inside a statement, as arguments or by assignments."""
    found = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    found |= {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    found |= {n.name for n in ast.walk(node) if isinstance(n, ast.ExceptHandler) and n.name}
    return (
        found
        | {
            (a.asname or a.name.partition(".")[0])
            for n in ast.walk(node)
            for a in getattr(n, "names", ())
            if isinstance(a, ast.alias)
        }
        | {"__class__"}
    )


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield node.name
        return
    todo: list[ast.AST] = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            yield one.id
        if isinstance(one, ast.alias):
            yield one.asname or one.name.partition(".")[0]
        if isinstance(one, ast.FunctionDef | ast.ClassDef):
            yield one.name
        elif not isinstance(one, ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp):
            todo += ast.iter_child_nodes(one)


def _changed(node: ast.stmt) -> Iterator[str]:
    """Names of objects that a statement may change."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.Import | ast.ImportFrom):
        return
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute | ast.Subscript) and not isinstance(one.ctx, ast.Load):
            yield from _root(one)
        elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            call = one.value
            if ast.unparse(call.func) in ("print", "logging.info"):
                continue
            yield from _root(call.func) if isinstance(call.func, ast.Attribute) else ()
            for argument in (*call.args, *(k.value for k in call.keywords)):
                yield from _root(argument)


def _root(node: ast.AST) -> Iterator[str]:
    """The name at the beginning of `a.b[0].c`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        yield node.id


def _opened(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body with `if __name__ == "__main__":` opened, and `main()` replaced by its statements."""
    functions = {s.name: s for s in body if isinstance(s, ast.FunctionDef)}
    found: list[ast.stmt] = []
    for one in body:
        if isinstance(one, ast.If) and "__name__" in ast.unparse(one.test):
            found += _opened_calls(one.body, functions)
        else:
            found += _opened_calls([one], functions)
    called = {n.id for s in found for n in ast.walk(s) if isinstance(n, ast.Name)}
    return [s for s in found if not (isinstance(s, ast.FunctionDef) and _can_open(s) and s.name not in called)]


def _opened_calls(body: list[ast.stmt], functions: dict[str, ast.FunctionDef]) -> Iterator[ast.stmt]:
    for one in body:
        call = one.value if isinstance(one, ast.Expr) else None
        name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        made = functions.get(name)
        if made is not None and isinstance(call, ast.Call) and not call.args + call.keywords and _can_open(made):
            yield from (s for s in _without_docstring(made.body) if not isinstance(s, ast.Return | ast.Global))
        else:
            yield one


def _can_open(made: ast.FunctionDef) -> bool:
    """Whether its statements mean the same outside of it: no arguments, and no return before its end."""
    arguments = made.args
    if arguments.args or arguments.kwonlyargs or arguments.posonlyargs or made.decorator_list:
        return False
    inner = [n for s in made.body for n in ast.walk(s) if isinstance(n, ast.FunctionDef | ast.Lambda | ast.ClassDef)]
    theirs = {id(n) for one in inner for n in ast.walk(one)}
    ways_out = [
        n
        for s in made.body
        for n in ast.walk(s)
        if isinstance(n, ast.Return | ast.Yield | ast.Await) and id(n) not in theirs
    ]
    return all(n is made.body[-1] for n in ways_out)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if is_text else body


def _named_members(body: list[ast.stmt], file: Path, folders: Sequence[Path]) -> Iterator[ast.stmt]:
    """The statements; of the user's own modules, imported whole, the members that are used are imported by name."""
    used: dict[str, set[str]] = {}
    for one in body:
        for node in ast.walk(one):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used.setdefault(node.value.id, set()).add(node.attr)
    for one in body:
        alias = one.names[0] if isinstance(one, ast.Import) and len(one.names) == 1 else None
        name = (alias.asname or alias.name) if alias else ""
        source = ast.ImportFrom(alias.name, [], 0) if alias else None
        members = sorted(used.get(name, ()))
        if source is None or not members or _module(source, file, folders) is None:
            yield one
            continue
        source.names = [ast.alias(m) for m in members]
        yield ast.copy_location(source, one)
        given = ", ".join(f"{m}={m}" for m in members)
        for text in ("from types import SimpleNamespace", f"{name} = SimpleNamespace({given})"):
            yield ast.copy_location(ast.parse(text).body[0], one)


def _put_in(
    body: Iterable[ast.stmt], file: Path, folders: Sequence[Path], done: set[Path], depth: int
) -> Iterator[Statement]:
    for node in body:
        source = _module(node, file, folders) if isinstance(node, ast.ImportFrom) and depth < _DEEPEST else None
        if source is None or not isinstance(node, ast.ImportFrom):
            yield Statement(node, str(file.resolve()))
            continue
        if source not in done:
            done.add(source)
            inside = [
                s
                for s in _without_docstring(ast.parse(source.read_text("utf-8")).body)
                if "__name__ ==" not in ast.unparse(s)[:40]
            ]
            yield from _put_in(inside, source, folders, done, depth + 1)
        for alias in node.names:
            if alias.asname and alias.asname != alias.name:
                renamed = ast.parse(f"{alias.asname} = {alias.name}").body[0]
                yield Statement(renamed, "")


def _module(node: ast.ImportFrom, file: Path, folders: Sequence[Path]) -> Path | None:
    """The user's own file that `from … import` reads."""
    base = [file.parents[node.level - 1]] if node.level else folders
    for folder in base:
        path = folder.joinpath(*(node.module or "").split("."))
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if node.module and candidate.is_file() and "site-packages" not in str(candidate):
                return candidate.resolve()
    return None
