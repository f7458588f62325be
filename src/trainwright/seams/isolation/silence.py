"""Keeps the user's code from printing, writing, logging or sending while the walk runs it."""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import functools
import gc
import io
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import wrapt

from trainwright.seams.failures.blame import passed_on
from trainwright.seams.isolation import arrow
from trainwright.seams.isolation.commands import not_run
from trainwright.seams.isolation.inert import Nothing
from trainwright.seams.isolation.network import Change, sending, unsent, unsent_by_library
from trainwright.seams.isolation.open_files import held
from trainwright.seams.isolation.tally import Tally
from trainwright.seams.isolation.trackers import untracked
from trainwright.seams.isolation.written_files import MOST_BYTES, Desk

# Calls that save data nobody reads back, or that draw: module, owner in it ("" for the module itself), names.
_SILENT: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("accelerate.accelerator", "Accelerator", ("save_state", "save_model", "log", "log_images", "init_trackers",
                                               "end_training")),
    ("transformers.modeling_utils", "PreTrainedModel", ("save_pretrained", "push_to_hub")),
    ("transformers.configuration_utils", "PreTrainedConfig", ("save_pretrained",)),
    ("transformers.configuration_utils", "PretrainedConfig", ("save_pretrained",)),
    ("transformers.tokenization_utils_base", "PreTrainedTokenizerBase", ("save_pretrained", "push_to_hub")),
    ("transformers.trainer", "Trainer", ("save_model", "save_state", "_save_checkpoint", "push_to_hub", "log")),
    ("lightning.pytorch.trainer.trainer", "Trainer", ("save_checkpoint",)),
    ("pytorch_lightning.trainer.trainer", "Trainer", ("save_checkpoint",)),
    ("keras.src.models.model", "Model", ("save", "save_weights", "export")),
    ("tf_keras.src.engine.training", "Model", ("save", "save_weights", "export")),
    ("tensorflow", "train.Checkpoint", ("save", "write")),
    ("tensorflow", "train.CheckpointManager", ("save",)),
    ("matplotlib.figure", "Figure", ("savefig",)),
    ("matplotlib.pyplot", "", ("savefig", "show", "pause")),
    ("tensorboard.summary.writer.event_file_writer", "EventFileWriter", ("add_event",)),
    ("h5py._hl.dataset", "Dataset", ("__setitem__", "resize", "write_direct")),
    ("h5py._hl.group", "Group", ("create_dataset", "create_group", "require_dataset", "require_group", "__setitem__",
                                 "__delitem__")),
    ("h5py._hl.attrs", "AttributeManager", ("__setitem__", "create", "modify")),
    ("h5py._hl.files", "File", ("flush",)),
)  # fmt: skip
# Those among them by which a script saves what it may load again, or on whose records it goes on.
_SAVING = frozenset(["save_state", "save_model", "save_pretrained", "_save_checkpoint", "log", "save_checkpoint", "save",
                     "save_weights", "export", "write"])  # fmt: skip
# Functions that take the path of a file to write or read and do not use the built-in `open`: module, owner, name, the
# argument's position and name; the next argument may be the mode.
_NATIVE: tuple[tuple[str, str, str, int, str], ...] = (
    ("sqlite3", "", "connect", 0, "database"),
    ("sqlite3.dbapi2", "", "connect", 0, "database"),
    ("h5py._hl.files", "", "make_fid", 0, "name"),
    ("cv2", "", "imwrite", 0, "filename"),
    ("numpy.lib._datasource", "", "open", 0, "path"),
)
_READING: tuple[tuple[str, str, str, int, str], ...] = (("cv2", "", "imread", 0, "filename"),)
# Writers whose own state includes what was written: existing ones are left as they are.
_STATEFUL: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("gzip", "GzipFile", ("write", "flush")),
    ("bz2", "BZ2File", ("write", "writelines")),
    ("lzma", "LZMAFile", ("write",)),
    ("zipfile", "ZipFile", ("write", "writestr", "mkdir")),
    ("tarfile", "TarFile", ("add", "addfile")),
    ("pyarrow.parquet.core", "ParquetWriter", ("write", "write_table", "write_batch")),
)

_away: contextlib.ExitStack | None = None
_late: Callable[[str], None] | None = None
_in_step = False
_saves = False


def is_away() -> bool:
    """Whether everything is being kept away now."""
    return _away is not None


@contextlib.contextmanager
def away(tally: Tally, *, saves: bool = False) -> Iterator[None]:
    """Discard everything that the code inside prints, writes, logs, tracks or sends; count what was discarded.

    This includes files, writers, handlers and connections that were open before. All are restored at the end.

    Args:
        saves: frameworks' own calls that save or keep records are made, so that the code can load what it saved; what
            they write is redirected.
    """
    global _away, _late, _saves
    if _away is not None:
        with _without_saving() if _saves and not saves else contextlib.nullcontext():
            yield
        return
    desk = Desk()
    _saves = saves
    try:
        with contextlib.ExitStack() as stack:
            _away = stack
            before, flush = stack.enter_context(held(desk, _stateful_kinds(), tally))
            stack.enter_context(_silenced())
            passes = sending(tally, lambda: _in_step)
            for change in (*_changes(desk, tally), *unsent(passes)):
                stack.enter_context(replaced(*change))
            stack.enter_context(untracked(tally))
            libraries = _Libraries(desk, tally, before, {**unsent_by_library(passes), **arrow.redirected(desk)})
            for module in libraries.modules:
                if module in sys.modules:
                    libraries.put_in(module, stack)
            _late = lambda module: libraries.put_in(module, stack)  # noqa: E731
            _watch_imports(tuple(libraries.modules))
            stack.callback(flush)  # before anything is restored
            yield
    finally:
        _away = _late = None
        _saves = False
        _forget_folders(desk)
        tally.files |= desk.touched
        desk.clear()


@contextlib.contextmanager
def _without_saving() -> Iterator[None]:
    """Inside `away` with `saves`, also leave out the calls that save."""
    global _saves
    _saves = False
    try:
        with contextlib.ExitStack() as stack:
            for module in {row[0] for row in _SILENT} & sys.modules.keys():
                for owner, name, value in _silent_calls(module):
                    if name in _SAVING and owner is not None and hasattr(owner, name):
                        stack.enter_context(replaced(owner, name, value))
            yield
    finally:
        _saves = True


def _silent_calls(module: str) -> Iterator[Change]:
    """The replacements of a module's calls that save or draw."""
    for path, names in (row[1:] for row in _SILENT if row[0] == module):
        value = Nothing() if module.startswith("h5py") else None
        owner = _named(module, path)
        yield from ((owner, n, _standing_for(getattr(owner, n, None), _giving(value))) for n in names)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """One run of the user's step without side effects: like `away`, inside which it runs during a walk."""
    global _in_step
    was, _in_step = _in_step, True
    try:
        with away(Tally()):
            yield
    finally:
        _in_step = was


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Print nothing, and leave no bytecode of imported modules in the script's folder."""
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        with (
            open(os.devnull, "w", encoding="utf-8", errors="replace") as nowhere,  # noqa: PTH123
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            yield
    finally:
        sys.dont_write_bytecode = written


def _changes(desk: Desk, tally: Tally) -> Iterator[Change]:
    """The replacements in the standard library."""
    yield from (
        (builtins, "open", desk.opening(builtins.open)),
        (io, "open", desk.opening(io.open)),
        (os, "open", desk.opening_low(os.open)),
        *((os, n, desk.finding(getattr(os, n))) for n in ("stat", "lstat", "access")),
        (os, "listdir", desk.listing(os.listdir)),
        (os, "scandir", desk.scanning(os.scandir)),
        (os, "mkdir", desk.make),
        *((os, n, desk.move) for n in ("rename", "replace")),
        *((os, n, desk.remove) for n in ("remove", "unlink", "rmdir")),
        *((os, n, _giving(None)) for n in ("chmod", "chown", "utime", "symlink", "link", "truncate")),
        (shutil, "rmtree", desk.remove),
        (shutil, "move", desk.move),
        *((shutil, n, desk.copy) for n in ("copy", "copy2", "copyfile")),
        *((shutil, n, _giving(None)) for n in ("copytree", "make_archive")),
        (tempfile, "tempdir", desk.temporary),
        (os, "write", _printing_nothing(os.write)),
        (os, "system", _counted(tally, "commands", 0)),
        (subprocess, "Popen", not_run(tally, subprocess.Popen)),
        (logging.Logger, "callHandlers", _counting_records(tally)),
        (logging.Handler, "handle", _counted(tally, "records", False)),
    )


class _Libraries:
    """The replacements in other libraries, by module."""

    def __init__(
        self, desk: Desk, tally: Tally, before: set[int], others: dict[str, Callable[[Any], Iterator[Change]]]
    ) -> None:
        self._desk, self._tally, self._before, self._others = desk, tally, before, others
        self._done: set[str] = set()
        tables = (*_SILENT, *_NATIVE, *_READING, *_STATEFUL)
        self.modules = dict.fromkeys(
            [*(row[0] for row in tables), *others, "torch", "safetensors.torch", "loguru._handler"]
        )

    def put_in(self, module: str, stack: contextlib.ExitStack) -> None:
        """Apply a module's replacements once."""
        if module in self._done:
            return
        self._done.add(module)
        for owner, name, value in self._changes(module, sys.modules[module]):
            if owner is not None and hasattr(owner, name):
                stack.enter_context(replaced(owner, name, value))

    def _changes(self, module: str, loaded: Any) -> Iterator[Change]:
        desk = self._desk
        if module == "torch":
            yield from ((loaded, "save", desk.saving(loaded.save)), (loaded, "load", desk.loading(loaded.load)))
        if module == "safetensors.torch":
            yield loaded, "serialize_file", _small(desk, loaded.serialize_file)
            yield loaded, "safe_open", desk.finding(loaded.safe_open)
        if module == "loguru._handler":
            yield loaded.Handler, "emit", _counted(self._tally, "records", None)
        yield from self._others[module](loaded) if module in self._others else ()
        yield from (change for change in _silent_calls(module) if not (_saves and change[1] in _SAVING))
        for table, write in ((_NATIVE, True), (_READING, False)):
            for _, path, name, position, keyword in (row for row in table if row[0] == module):
                if (owner := _named(module, path)) is not None and hasattr(owner, name):
                    yield owner, name, _on_desk(desk, getattr(owner, name), position, keyword, write=write)
        for path, names in (row[1:] for row in _STATEFUL if row[0] == module):
            owner = _named(module, path)
            yield from ((owner, n, _left_alone(getattr(owner, n), self._before)) for n in names if hasattr(owner, n))


@functools.cache
def _watch_imports(modules: tuple[str, ...]) -> None:
    """Also patch modules that a step imports later."""
    for module in modules:
        if module not in sys.modules:
            wrapt.register_post_import_hook(lambda loaded: _late and _late(loaded.__name__), module)


def _stateful_kinds() -> tuple[type, ...]:
    found = (_named(module, kind) for module, kind, _ in _STATEFUL)
    return tuple(k for k in found if isinstance(k, type))


def _named(module: str, path: str) -> Any:
    """An object in a loaded module, or None."""
    found: Any = sys.modules.get(module)
    for name in path.split(".") if path else ():
        found = getattr(found, name, None)
    return found


def _standing_for(original: Any, silent: Any) -> Any:
    """A silent call with the name and module of the original, which `inspect.unwrap` still finds."""
    return functools.update_wrapper(silent, original) if original is not None else silent


def _giving(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def _counted(tally: Tally, what: str, value: Any) -> Callable[..., Any]:
    def kept(*args: Any, **kwargs: Any) -> Any:
        setattr(tally, what, getattr(tally, what) + 1)
        return value

    return kept


def _counting_records(tally: Tally) -> Callable[..., None]:
    def call_handlers(self: logging.Logger, record: logging.LogRecord) -> None:
        tally.records += self.hasHandlers()

    return call_handlers


def _printing_nothing(original: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
    """`os.write`, except to standard output and error."""
    return lambda number, data: len(data) if number in (1, 2) else passed_on(original, number, data)


def _left_alone(original: Callable[..., Any], before: set[int]) -> Callable[..., Any]:
    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) not in before:
            return original(self, *args, **kwargs)
        return len(args[0]) if args and hasattr(args[0], "__len__") else None

    return write


def _on_desk(
    desk: Desk, original: Callable[..., Any], position: int, keyword: str, *, write: bool
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        path = given[position] if len(given) > position else kwargs.get(keyword)
        mode = kwargs.get("mode", given[position + 1] if len(given) > position + 1 else None)
        if isinstance(path, (str, bytes, os.PathLike)) and not os.fsdecode(path).startswith((":memory:", "file:")):
            writes = write and not (isinstance(mode, str) and mode.startswith("r") and "+" not in mode)
            ours = desk.place_for(path) if writes else desk.seen_as(path)
            if len(given) > position:
                given[position] = os.fsencode(ours) if isinstance(path, bytes) else ours
            else:
                kwargs[keyword] = ours
        return original(*given, **kwargs)

    return call


def _small(desk: Desk, original: Callable[..., Any]) -> Callable[..., Any]:
    """safetensors' writer, if writing is quick."""

    def write(tensors: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        ours = desk.place_for(path, fresh=True)
        size = sum(len(t.get("data", b"")) if isinstance(t, dict) else 0 for t in tensors.values())
        if size <= MOST_BYTES:
            return original(tensors, ours, *args, **kwargs)
        return None

    return write


def _forget_folders(desk: Desk) -> None:
    """Forget temporary folders: multiprocessing stores one for the whole process, compilers in a variable."""
    for name in [n for n, v in os.environ.items() if v.startswith(desk.temporary)]:
        del os.environ[name]
    settings = getattr(getattr(sys.modules.get("multiprocessing.process"), "_current_process", None), "_config", {})
    if str(settings.get("tempdir") or "").startswith(desk.temporary):
        del settings["tempdir"]


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute while the context lasts."""
    inherited = isinstance(owner, type) and name not in vars(owner)
    original = vars(owner)[name] if isinstance(owner, type) and not inherited else getattr(owner, name)
    _set(owner, name, value)
    try:
        yield
    finally:
        if inherited:
            delattr(owner, name)
        else:
            _set(owner, name, original)


def _set(owner: Any, name: str, value: Any) -> None:
    """`setattr`, also for a class that is written in C and refuses it."""
    try:
        setattr(owner, name, value)
    except TypeError:
        gc.get_referents(vars(owner))[0][name] = value
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
