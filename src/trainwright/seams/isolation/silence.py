"""Keeps the user's code from printing, writing, logging or sending while the check runs it."""

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
# Functions that take the path of a file to write or read and do not use the built-in `open`: module, name, the
# first argument's name, and whether it may write; the next argument may be the mode.
_NATIVE: tuple[tuple[str, str, str, bool], ...] = (
    ("sqlite3", "connect", "database", True),
    ("sqlite3.dbapi2", "connect", "database", True),
    ("h5py._hl.files", "make_fid", "name", True),
    ("cv2", "imwrite", "filename", True),
    ("cv2", "imread", "filename", False),
    ("numpy.lib._datasource", "open", "path", True),
)

_desk: Desk | None = None
_is_away = False
_in_step = False
_saves = False


def is_away() -> bool:
    """Whether everything is being kept away now."""
    return _is_away


@contextlib.contextmanager
def redirected(tally: Tally) -> Iterator[None]:
    """Redirect the files that the code inside opens, makes or removes with Python's calls; count them.

    What libraries in C write, and files that were open before, are not redirected: the kernel sees to them where it isolates.
    """
    global _desk
    if _desk is not None:
        yield
        return
    _desk = desk = Desk()
    try:
        with contextlib.ExitStack() as stack:
            for change in _of_files(desk):
                stack.enter_context(replaced(*change))
            _Libraries(stack, _files_of_libraries(desk))
            yield
    finally:
        _desk = None
        _forget_folders(desk)
        tally.files |= desk.touched
        desk.clear()


@contextlib.contextmanager
def away(tally: Tally, *, saves: bool = False) -> Iterator[None]:
    """Discard everything that the code inside prints, writes, logs, tracks or sends; count what was discarded.

    Args:
        saves: frameworks' own calls that save or keep records are made, redirected: the code can load what it saved.
    """
    global _is_away, _saves
    if _is_away:
        with _without_saving() if _saves and not saves else contextlib.nullcontext():
            yield
        return
    _is_away, _saves = True, saves
    try:
        with redirected(tally), _silenced(), contextlib.ExitStack() as stack:
            passes = sending(tally, lambda: _in_step)
            for change in (*_silent(tally), *unsent(passes)):
                stack.enter_context(replaced(*change))
            stack.enter_context(untracked(tally))
            _Libraries(stack, {**_silent_libraries(tally), **unsent_by_library(passes)})
            if (desk := _desk) is not None:
                stack.callback(lambda: tally.files.update(desk.touched))
            yield
    finally:
        _is_away = _saves = False


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
    """One run of the user's step without side effects: like `away`, inside which it runs during a check."""
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
            _descriptors_to(nowhere.fileno()),
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            yield
    finally:
        sys.dont_write_bytecode = written


@contextlib.contextmanager
def _descriptors_to(nowhere: int) -> Iterator[None]:
    """Exchange the descriptors of standard output and error: a progress bar or a script's own stream may hold them."""
    _flush()
    kept = []
    for number in (1, 2):
        with contextlib.suppress(OSError):  # it is closed
            kept.append((number, os.dup(number)))
            os.dup2(nowhere, number)
    try:
        yield
    finally:
        _flush()
        for number, before in kept:
            os.dup2(before, number)
            os.close(before)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or there is none
            stream.flush()  # type: ignore[union-attr]


def _of_files(desk: Desk) -> Iterator[Change]:
    """The replacements in the standard library that redirect files."""
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
    )


def _silent(tally: Tally) -> Iterator[Change]:
    """The replacements in the standard library that print, log or start something."""
    yield from (
        (os, "write", _printing_nothing(os.write)),
        (os, "system", _counted(tally, "commands", 0)),
        (subprocess, "Popen", not_run(tally, subprocess.Popen)),
        (logging.Logger, "callHandlers", _counting_records(tally)),
        (logging.Handler, "handle", _counted(tally, "records", False)),
    )


Changes = Callable[[Any], Iterator[Change]]
_active: list[_Libraries] = []


class _Libraries:
    """Replacements in libraries, by module, also of modules that are imported later; in force until a stack is closed."""

    def __init__(self, stack: contextlib.ExitStack, changes: dict[str, Changes]) -> None:
        self._stack, self._changes = stack, changes
        self._done: set[str] = set()
        for module in changes:
            if module in sys.modules:
                self.put_in(module)
        _active.append(self)
        stack.callback(_active.remove, self)
        _watch_imports(tuple(changes))

    def put_in(self, module: str) -> None:
        """Apply a module's replacements once."""
        if module in self._done or module not in self._changes:
            return
        self._done.add(module)
        for owner, name, value in self._changes[module](sys.modules[module]):
            if owner is not None and hasattr(owner, name):
                self._stack.enter_context(replaced(owner, name, value))


@functools.cache
def _watch_imports(modules: tuple[str, ...]) -> None:
    for module in modules:
        if module not in sys.modules:
            wrapt.register_post_import_hook(_imported, module)


def _imported(loaded: Any) -> None:
    for one in _active:
        one.put_in(loaded.__name__)


def _silent_libraries(tally: Tally) -> dict[str, Changes]:
    def changes(module: Any) -> Iterator[Change]:
        if module.__name__ == "loguru._handler":
            yield module.Handler, "emit", _counted(tally, "records", None)
        yield from (one for one in _silent_calls(module.__name__) if not (_saves and one[1] in _SAVING))

    return dict.fromkeys([*(row[0] for row in _SILENT), "loguru._handler"], changes)


def _files_of_libraries(desk: Desk) -> dict[str, Changes]:
    of_arrow = arrow.redirected(desk)

    def changes(module: Any) -> Iterator[Change]:
        if module.__name__ == "torch":
            yield from ((module, "save", desk.saving(module.save)), (module, "load", desk.loading(module.load)))
        if module.__name__ == "safetensors.torch":
            yield module, "serialize_file", _small(desk, module.serialize_file)
            yield module, "safe_open", desk.finding(module.safe_open)
        if module.__name__ in of_arrow:
            yield from of_arrow[module.__name__](module)
        for name, keyword, writes in (row[1:] for row in _NATIVE if row[0] == module.__name__):
            if hasattr(module, name):
                yield module, name, _on_desk(desk, getattr(module, name), keyword, writes=writes)

    return dict.fromkeys([*(row[0] for row in _NATIVE), *of_arrow, "torch", "safetensors.torch"], changes)


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


def _on_desk(desk: Desk, original: Callable[..., Any], keyword: str, *, writes: bool) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        path = given[0] if given else kwargs.get(keyword)
        mode = kwargs.get("mode", given[1] if len(given) > 1 else None)
        if isinstance(path, (str, bytes, os.PathLike)) and not os.fsdecode(path).startswith((":memory:", "file:")):
            only_reads = not writes or (isinstance(mode, str) and mode.startswith("r") and "+" not in mode)
            ours = desk.seen_as(path) if only_reads else desk.place_for(path)
            if given:
                given[0] = os.fsencode(ours) if isinstance(path, bytes) else ours
            else:
                kwargs[keyword] = ours
        return original(*given, **kwargs)

    return call


def _small(desk: Desk, original: Callable[..., Any]) -> Callable[..., Any]:
    """safetensors' writer, if writing is quick."""

    def write(tensors: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        ours = desk.place_for(path, fresh=True)
        size = sum(len(t.get("data", b"")) if isinstance(t, dict) else 0 for t in tensors.values())
        return original(tensors, ours, *args, **kwargs) if size <= MOST_BYTES else None

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
