"""Notebooks as a single Python text that runs like a script: one cell after another, each below a comment naming it.

With a single text, everything found for scripts (loops, places, where things are written) is found for notebooks too. A
cell keeps its number of lines: `%magics` and `!commands` become calls of a stand-in for the notebook's shell
(seams/scripts/running.py), made by IPython's own transformer, which only such files need.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import json
import linecache
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trainwright.core import cells
from trainwright.errors import UsageError
from trainwright.seams.scripts.edited_files import opening
from trainwright.seams.source.renaming import parse_text

HEADER = "# trainwright: the cells of a notebook"
# Cell magics that time, watch or capture the cell, and run it.
RUNNING = frozenset({"time", "timeit", "capture", "prun", "memit", "mprun", "lprun", "wandb", "check"})
_MAGIC_CALL = re.compile(
    r"get_ipython\(\)\.run_line_magic\(['\"](?:time|timeit|prun|memit)['\"], (?P<statement>.*)\)(?P<rest>\s*)$"
)
_SHELL_LINE = re.compile(r"^\s*(?:[\w, ]+=\s*)?[%!]", re.MULTILINE)
_NAMES_SHELL = re.compile(r"\bget_ipython\b")
# Words that IPython treats as a magic without `%` if they are a cell's only line.
_AUTOMATIC = re.compile(r"(pip3?|conda|mamba|cd|ls|pwd|env|matplotlib|time)\b(?!\s*[=.(\[])")
_OPTIONS = re.compile(r"(?:-[a-z]+(?:\s*\d+)?\s+)*")


def text_of(file: Path) -> str | None:
    """The text to run in place of a notebook, or of a script exported from one that is not valid Python.

    None for a script that Python can run.

    Raises:
        UsageError: if a notebook cannot be read, or IPython, which is needed for that, is not installed.
    """
    with io.open_code(str(file.absolute())) as source:
        data = source.read()
    if file.suffix == ".ipynb":
        return data.decode() if data.startswith(HEADER.encode()) else _of_notebook(data, file)
    try:
        text = data.decode()
        ast.parse(text)
    except SyntaxError as error:
        return _of_export(text, file) if _SHELL_LINE.match(error.text or "") else None
    except ValueError:
        return None
    return None


def asks_for_shell(file: Path) -> bool:
    """Whether a script is a notebook export that calls its shell by name."""
    try:
        return _NAMES_SHELL.search(file.read_text("utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False


@contextlib.contextmanager
def standing_for(file: Path, text: str) -> Iterator[None]:
    """While the context lasts, a file runs as this text; its lines are known by that text from then on."""
    names = {str(file), str(file.absolute()), str(file.resolve())}
    with contextlib.suppress(ValueError):
        names.add(str(file.resolve().relative_to(Path.cwd())))
    for name in names:
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        cells.remember(name, text)
    with opening(lambda path: text if path in names else None):
        yield


def _of_export(text: str, file: Path) -> str | None:
    try:
        lines = _transformed(text, file).splitlines()
        ast.parse("\n".join(lines))
    except SyntaxError:  # not an export: Python itself reports the error
        return None
    return "\n".join(lines) + "\n"


def _of_notebook(data: bytes, file: Path) -> str:
    try:
        notebook = json.loads(data)
        written = notebook["cells"]
        sources = ["".join(c["source"]) for c in written if c["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} must be a notebook of format 4: it cannot be read ({error!r}).") from error
    language = notebook.get("metadata", {}).get("language_info", {}).get("name", "python")
    if language not in ("python", "ipython"):
        raise UsageError(f"{file} must be a notebook in Python; it is in {language}.")
    futures: set[str] = set()
    lines: list[str] = []
    for number, source in enumerate((s for s in sources if s.strip()), 1):
        lines.append(cells.mark(number))
        lines += _without_futures(_cell(source, number, file), futures)
    first = f"from __future__ import {', '.join(sorted(futures))}" if futures else ""
    return "\n".join([HEADER, first, *lines]) + "\n"


def _without_futures(lines: list[str], futures: set[str]) -> list[str]:
    """A cell's lines without its imports from __future__, which are moved to the beginning of the text."""
    if not any("__future__" in line for line in lines):
        return lines
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            futures |= {alias.name for alias in node.names}
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines[number - 1] = ""
    return lines


def _cell(source: str, number: int, file: Path) -> list[str]:
    """A cell as the same number of lines of Python."""
    lines = source.splitlines()
    at = 0
    while at < len(lines) and (not lines[at].strip() or lines[at].startswith("%%")):
        if lines[at].startswith("%%"):
            name, _, rest = lines[at][2:].partition(" ")
            if name not in RUNNING:
                call = f"get_ipython().run_cell_magic({name!r}, {rest.strip()!r}, {chr(10).join(lines[at + 1 :])!r})"
                return [*lines[:at], call, *[""] * (len(lines) - at - 1)]
            variable = rest.split()[-1:] if name == "capture" else []
            kept = variable and variable[0].isidentifier()
            lines[at] = f"{variable[0]} = get_ipython().captured()" if kept else ""
        at += 1
    if len(lines) == 1 and _AUTOMATIC.match(lines[0].strip()) and parse_text(lines[0]) is None:
        lines = [f"%{lines[0].strip()}"]
    text = "\n".join(lines)
    with contextlib.suppress(SyntaxError):  # not even tokenizable: reported when it is reached
        text = _transformed(text, file)
    return _refused(text, number, file) or text.splitlines()


def _refused(text: str, number: int, file: Path) -> list[str]:
    """For a cell that cannot run in a script, a call that raises when it is reached; otherwise empty."""
    try:
        code = compile(text, f"{file}, cell {number}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        if not code.co_flags & inspect.CO_COROUTINE:
            return []
        lines = [n.lineno for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Await, ast.AsyncFor, ast.AsyncWith))]
        call = f"get_ipython().refuse_await({number}, {min(lines, default=1)})"
    except SyntaxError as error:
        given = (error.msg, error.lineno, error.offset, error.text, error.end_lineno, error.end_offset)
        call = f"get_ipython().refuse({number}, {given!r})"
    return [call, *[""] * (len(text.splitlines()) - 1)]


def _transformed(source: str, file: Path) -> str:
    """Source with its magics and shell commands as calls, with the same line numbers.

    Raises:
        UsageError: if IPython is not installed.
    """
    if not any(sign in source for sign in "%!?") and not source[:1].isspace():
        return source
    try:
        ipython: Any = importlib.import_module("IPython.core.inputtransformer2")
    except ImportError as error:
        raise UsageError(f"{file} is read by IPython, which must be installed: pip install ipython.") from error
    manager = ipython.TransformerManager()
    lines = f"{source}\n".splitlines(keepends=True)
    for clean in (ipython.leading_indent, ipython.ipython_prompt):
        lines = clean(lines)
    for _ in range(10 * len(lines)):
        changed, after = manager.do_one_token_transform(lines)
        if not changed:
            break
        lines = _as_long(lines, after)
    return "".join(_plain(line) for line in lines).rstrip("\n")


def _as_long(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The lines after a change, padded with empty ones if several became one."""
    at = next((i for i, (a, b) in enumerate(zip(before, after)) if a != b), len(after) - 1)
    return [*after[: at + 1], *["\n"] * (len(before) - len(after)), *after[at + 1 :]]


def _plain(line: str) -> str:
    """`%time statement` as the statement itself, so that it is checked as well."""
    found = _MAGIC_CALL.search(line)
    if not found:
        return line
    statement = ast.literal_eval(found["statement"])
    return f"{line[: found.start()]}{statement[_OPTIONS.match(statement).end() :] or 'pass'}{found['rest']}"  # type: ignore[union-attr]
