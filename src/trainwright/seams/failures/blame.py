"""Whose an exception is: the user's pipeline's, in words and places, or our own, which is kept apart."""

from __future__ import annotations

import contextlib
import dis
import linecache
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, TypeVar

from trainwright.core.finding import Failure, Place
from trainwright.seams.failures.messages import copied_lines, telling
from trainwright.seams.source.places import is_ours, is_users, show

E = TypeVar("E", bound=BaseException)

# Our frames between a user's call and the framework's function: what they pass on is the user's call.
_WATCHING = tuple(
    str(Path(__file__).resolve().parents[1] / name)
    for name in ("torch/", "keras/", "listening/", "devices/", "intercept.py", "failures/blame.py")
)
# What raises below one of our calls, with no line of the user's between, is the user's pipeline in these, else ours.
_PIPELINES = ("transformers.", "accelerate.", "datasets.")
# `f(*args, **kwargs)`: the form in which our wrappers, and `passed_on`, hand on a call that is not theirs.
_HANDING_ON = frozenset({"CALL_FUNCTION_EX"})
# What computes with values: if these refuse what a line of ours gives them, that line is wrong.
_ARITHMETIC = ("numpy", "torch._tensor", "torch.functional", "torch.nn.functional", "keras.src.ops")
_IMPORTING = frozenset({"IMPORT_NAME", "IMPORT_FROM"})
# A device tells of an earlier fault wherever the next value is read.
_OF_THE_DEVICE = re.compile(r"CUDA (error|out of memory)|HIP error|device-side assert|can't allocate memory")
# What a process of a loader's, or a generator that TensorFlow runs, raised: its frames are in the message.
_ELSEWHERE = re.compile(r'^\s*File "(.+?)", line (\d+), in \S+$', re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last)"

_kept: list[BaseException] = []


def failure_of(error: BaseException) -> Failure:
    """What the user's pipeline raised, in words and places; its frames are cut to the user's.

    Raises:
        BaseException: the error itself, if it is our own: no report may call it the user's.
    """
    if is_own(error):
        raise error
    return told(error)


def told(error: BaseException) -> Failure:
    """An exception in words and places, whoever's it is."""
    trace: list[str] = []
    where: Place | None = None
    function = ""
    link: TracebackType | None = error.__traceback__
    while link is not None:
        code = link.tb_frame.f_code
        if is_users(code.co_filename):
            where = Place(show(code.co_filename), link.tb_lineno)
            source = linecache.getline(code.co_filename, link.tb_lineno).strip()
            trace.append(f"{where} in {code.co_name}: {source}")
        elif is_ours(code.co_filename) and not _watches(code.co_filename):
            where, trace = None, []  # what led to our own call is not on the way to the fault
        function = f"{link.tb_frame.f_globals.get('__name__', '')}.{code.co_qualname}"
        link = link.tb_next
    for file, line, name in copied_lines(str(error)):
        if is_users(file):  # TensorFlow runs a copy of the code, and names the original in its message
            where = Place(show(file), line)
            trace.append(f"{where} in {name}: {linecache.getline(file, line).strip()}")
    if isinstance(error, SyntaxError) and error.filename and is_users(error.filename):
        where = Place(show(error.filename), error.lineno or 1)
        shown = "".join(traceback.format_exception_only(error)).splitlines()
        # As Python shows it: the line, and the sign below what is wrong; the place stands in our words before it.
        trace += [str(where), *(line.rstrip() for line in shown if line.startswith("    "))]
        error = SyntaxError(error.msg)
    said = telling(str(error))
    return Failure(type=type(error).__name__, message=said, where=where, function=function, trace=tuple(trace))


def _watches(file: str) -> bool:
    return str(Path(file).resolve()).startswith(_WATCHING)


def is_own(error: BaseException, *, measuring: bool = False) -> bool:
    """Whether an exception is a failure of Trainwright itself: the innermost frame decides, arithmetic aside.

    A line of ours that hands a call on as it was given (`f(*args, **kwargs)`, `passed_on`) is not the innermost, nor is
    one that says what a framework would say (`of_pipeline`); a device's error belongs to whoever used the device.

    Args:
        measuring: it was raised while we measured, not while the user's pipeline was called: what a library refuses
            right below a line of ours is ours, too.
    """
    frames, modules = list(_frames(error)), _modules(error)
    if not frames or getattr(error, "_of_pipeline", False):
        return False
    own = [i for i, f in enumerate(frames) if is_ours(f[0].co_filename) and not _hands_on(*f)]
    if own and _instruction(*frames[own[-1]][:2]) in _IMPORTING:
        return not any(is_users(code.co_filename) for code, _, _ in frames[own[-1] :])
    if isinstance(error, RecursionError):  # whoever stood last when the stack was full
        return not any(is_users(code.co_filename) for code, _, _ in frames)
    if _raised_elsewhere_by_us(error):
        return True
    if own and all(name.startswith(_ARITHMETIC) for name in modules[own[-1] + 1 :]):
        return not _of_the_device(error)
    if not measuring:
        return False
    failure = told(error)
    return failure.where is None and not failure.function.startswith(_PIPELINES)


def passed_on(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call what is the user's: what it raises, were it written in C, is not ours."""
    return function(*args, **kwargs)


def of_pipeline(error: E) -> E:
    """Mark an exception that says of the user's pipeline what its framework would say."""
    error._of_pipeline = True  # type: ignore[attr-defined]
    return error


@contextlib.contextmanager
def tolerated() -> Iterator[None]:
    """A probe that the user's pipeline may refuse; an error of our own ends it as well, and is kept."""
    try:
        yield
    except Exception as error:
        note_own(error)


def note_own(error: BaseException) -> None:
    """Keep what a probe met, if it is an error of our own."""
    if is_own(error):
        _kept.append(error)


def own_errors() -> list[BaseException]:
    """The errors of our own that were kept since this was last asked."""
    found = list(_kept)
    _kept.clear()
    return found


def own_lines(error: BaseException, most: int = 6) -> list[str]:
    """Our lines of an exception's traceback, the innermost last: `walk/drive.py:34 in _answer`."""
    found, link = [], error.__traceback__
    while link is not None:
        code = link.tb_frame.f_code
        if is_ours(code.co_filename):
            file = code.co_filename.rpartition("trainwright/")[2]
            found.append(f"{file}:{link.tb_lineno} in {code.co_name}")
        link = link.tb_next
    return found[-most:]


def _frames(error: BaseException) -> Iterator[tuple[CodeType, int, int]]:
    """Code, instruction and line of each frame, the innermost last."""
    link = error.__traceback__
    while link is not None:
        yield link.tb_frame.f_code, link.tb_lasti, link.tb_lineno
        link = link.tb_next


def _modules(error: BaseException) -> list[str]:
    found, link = [], error.__traceback__
    while link is not None:
        found.append(str(link.tb_frame.f_globals.get("__name__", "")))
        link = link.tb_next
    return found


def _instruction(code: CodeType, at: int) -> str:
    while at > 0 and dis.opname[code.co_code[at]] == "CACHE":  # what belongs to the instruction before it
        at -= 2
    return dis.opname[code.co_code[at]] if at >= 0 else ""


def _hands_on(code: CodeType, at: int, line: int) -> bool:
    found = _instruction(code, at)
    if found != "RERAISE":  # what passed the end of a `with` on its way: the line is still that of the call
        return found in _HANDING_ON
    return any(
        i.opname in _HANDING_ON and i.positions is not None and i.positions.lineno == line
        for i in dis.get_instructions(code)
    )


def _of_the_device(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or type(error).__module__.startswith(("torch", "jax", "tensorflow")):
        return True  # only C raises such at a line of ours
    return isinstance(error, RuntimeError) and bool(_OF_THE_DEVICE.search(str(error)))


def _raised_elsewhere_by_us(error: BaseException) -> bool:
    """Whether a message that holds the traceback of another process, or thread, ends at a line of ours."""
    text = str(error)
    places = list(_ELSEWHERE.finditer(text)) if _TRACEBACK in text else []
    if not places or not is_ours(places[-1].group(1)):
        return False
    line = linecache.getline(places[-1].group(1), int(places[-1].group(2)))
    return "(*" not in line
