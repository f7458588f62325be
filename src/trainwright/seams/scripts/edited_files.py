"""Makes Python read source files as if they had been edited, leaving the files unchanged.

The copies run under the original file names, so neighboring files, `__file__`, `sys.path`, `sys.argv` and traceback
file names are those of the script.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import io
import linecache
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainwright.seams.failures.blame import passed_on
from trainwright.seams.listening.doors import replaced
from trainwright.seams.source.written import forget_texts


@contextmanager
def standing_in(copies: Mapping[str, str]) -> Iterator[None]:
    """While the context lasts, scripts and imported modules have these texts, by resolved path."""
    with contextlib.ExitStack() as stack:
        if copies:
            stack.enter_context(opening(functools.partial(_text, copies)))
            stack.enter_context(_modules(copies))
            stack.enter_context(_lines(copies))
        yield


@contextmanager
def opening(text_of: Callable[[str], str | None]) -> Iterator[None]:
    """While the context lasts, `runpy.run_path`, which opens a script with `io.open_code`, gets this text for a path, if any."""
    original = io.open_code

    def open_code(path: str) -> Any:
        text = text_of(path)
        return passed_on(original, path) if text is None else io.BytesIO(text.encode())

    with replaced([(io, "open_code", open_code)]):
        yield


def _text(copies: Mapping[str, str], file: str) -> str | None:
    if file.startswith("<") or file.endswith(".pyc") or "site-packages" in file:
        return None
    return copies.get(str(Path(file).resolve()))


@contextmanager
def _modules(copies: Mapping[str, str]) -> Iterator[None]:
    """Imports, and `runpy.run_module`, read through the source file loader."""
    loader: Any = importlib.machinery.SourceFileLoader
    read, measure = loader.get_data, loader.path_stats

    def get_data(self: Any, path: str) -> bytes:
        text = _text(copies, path)
        data: bytes = read(self, path) if text is None else text.encode()
        return data

    def path_stats(self: Any, path: str) -> Any:
        if _text(copies, path) is not None:  # without it, compiled code is neither looked up nor stored
            raise OSError(f"{path} is read from a copy")
        return measure(self, path)

    with replaced([(loader, "get_data", get_data), (loader, "path_stats", path_stats)]):
        yield


@contextmanager
def _lines(copies: Mapping[str, str]) -> Iterator[None]:
    """Tracebacks, `inspect` and our own places read lines through `linecache`."""
    original = linecache.updatecache

    def updatecache(filename: str, module_globals: Any = None) -> list[str]:
        text = _text(copies, filename)
        if text is None:
            found: list[str] = passed_on(original, filename, module_globals)
            return found
        lines = text.splitlines(keepends=True)
        linecache.cache[filename] = (len(text), None, lines, filename)  # no modification time: never out of date
        return lines

    linecache.clearcache()
    forget_texts()
    try:
        with replaced([(linecache, "updatecache", updatecache)]):
            yield
    finally:
        linecache.clearcache()
        forget_texts()
