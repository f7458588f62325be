"""Attributes an exception to the user's pipeline, in words and places, or to Trainwright itself, and finds
what its message says, which frameworks may bury in pages of text."""

from __future__ import annotations

import builtins
import contextlib
import difflib
import dis
import linecache
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, TypeVar

from trainwright.core import Failure, Place
from trainwright.core.quotations import plain
from trainwright.seams.source.places import is_ours, is_users, show
from trainwright.seams.source.renaming import is_set

E = TypeVar("E", bound=BaseException)

# Our frames between a user's call and the framework's function, which only pass on the user's call.
_WATCHING = (
    *(
        str(Path(__file__).resolve().parents[1] / name)
        for name in ("torch/", "keras/", "listening/", "loops/", "devices/", "intercept.py", "failures/blame.py")
    ),
    *(
        str(Path(__file__).resolve().parents[2] / name)
        for name in ("rehearsal/watch", "rehearsal/listener.py", "look/", "rehearsal/streams.py")
    ),
)
# Raised below one of our calls without a user line in between, these are the user's pipeline's; otherwise ours.
_PIPELINES = ("transformers.", "accelerate.", "datasets.")
# `f(*args, **kwargs)`: how our wrappers and `passed_on` forward a call that is not theirs.
_HANDING_ON = frozenset({"CALL_FUNCTION_EX"})
# Numeric libraries: if they reject what one of our lines passes, that line is wrong.
_ARITHMETIC = ("numpy", "torch._tensor", "torch.functional", "torch.nn.functional", "keras.src.ops")
_IMPORTING = frozenset({"IMPORT_NAME", "IMPORT_FROM"})
# A device reports an earlier fault at the next read of a value.
_OF_THE_DEVICE = re.compile(r"CUDA (error|out of memory)|HIP error|device-side assert|can't allocate memory")
# Exceptions from a loader's process, or a generator run by TensorFlow: their frames are in the message.
_ELSEWHERE = re.compile(r'^\s*File "(.+?)", line (\d+), in \S+$', re.MULTILINE)
# difflib's ratio above which two names count as similar.
_KIN = 0.75
_TRACEBACK = "Traceback (most recent call last)"

_kept: list[BaseException] = []
# Keras puts a layer's exception in bold type, among the layer's arguments. Others set single words in it.
_OF_A_LAYER = "Exception encountered when calling"
_BOLD = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)
# TensorFlow begins with the operation and the lines that led to it; the message comes last.
_IN_GRAPH = "Graph execution error:"
_NODE = re.compile(r"\s*\[\[\{\{node .*|\s*\[Op:.*", re.DOTALL)
# The kernel and device, before and after the message.
_KERNEL = re.compile(r"^\{\{function_node [^}]*\}\} | \[Op:\w+\]( name: .*)?$")
# The original code's lines, if TensorFlow ran a copy.
_COPIED = re.compile(r'File "(.+?)", line (\d+), in (\S+)')


def failure_of(error: BaseException) -> Failure:
    """An exception of the user's pipeline, in words and places; its traceback is cut to the user's frames.

    Raises:
        BaseException: the error itself, if it is our own: no report may blame the user for it.
    """
    if is_own(error):
        raise error
    return describe_error(error)


def describe_error(error: BaseException) -> Failure:
    """An exception in words and places, whoever caused it."""
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
        is_watching = is_ours(code.co_filename) and str(Path(code.co_filename).resolve()).startswith(_WATCHING)
        if is_ours(code.co_filename) and not is_watching:
            where, trace = None, []  # frames before our own call are irrelevant to the fault
        if not is_watching:
            function = f"{link.tb_frame.f_globals.get('__name__', '')}.{code.co_qualname}"
        link = link.tb_next
    for file, line, name in _copied_lines(str(error)):
        if is_users(file):  # TensorFlow runs a copy of the code and names the original in its message
            where = Place(show(file), line)
            trace.append(f"{where} in {name}: {linecache.getline(file, line).strip()}")
    if isinstance(error, SyntaxError) and error.filename and is_users(error.filename):
        where = Place(show(error.filename), error.lineno or 1)
        shown = "".join(traceback.format_exception_only(error)).splitlines()
        # As Python shows it: the line, and the marker below the error; our own text names the place before it.
        trace += [str(where), *(line.rstrip() for line in shown if line.startswith("    "))]
        error = SyntaxError(error.msg)
    # A KeyError shows its key by repr, in which the line ends and terminal codes of a longer message are spelled out.
    long = isinstance(error, KeyError) and "\n" in str(*error.args[:1])
    said = telling(str(error.args[0] if long else error)) + (_suggestion(error) if where is not None else "")
    causes = tuple(f"{type(c).__name__}: {telling(str(c))}" for c in _causes(error))
    name = type(error).__name__
    return Failure(type=name, message=said, where=where, function=function, trace=tuple(trace), causes=causes)


def _suggestion(error: BaseException) -> str:
    """The name that Python suggests for a misspelled one; it shows it only below a traceback that nobody catches."""
    if isinstance(error, NameError):
        frame = next(iter([*frames_of(error)][::-1]), None)
        if frame is None or is_set("".join(linecache.getlines(frame.f_code.co_filename)), error.name or ""):
            return ""  # it is used before it is set
        names = [*frame.f_locals, *frame.f_globals, *dir(builtins)]
    elif isinstance(error, AttributeError):
        names = _attributes(error.obj)
    else:
        return ""
    wanted = error.name or ""
    known = {n for n in names if n != wanted and not n.startswith("_")}
    near = difflib.get_close_matches(wanted, sorted(known), 2, _KIN)
    if not near or "Did you mean" in str(error):
        return ""
    first, *second = [(difflib.SequenceMatcher(None, name, wanted).ratio(), name) for name in near]
    either = f" or {second[0][1]!r}" if second and second[0][0] == first[0] else ""
    return f". Did you mean: {first[1]!r}{either}?"


def _attributes(owner: Any) -> list[str]:
    """The names that an object has; a module's are told by the rule on names that libraries removed."""
    if owner is None or isinstance(owner, ModuleType):
        return []
    try:
        return [name for name in dir(owner) if isinstance(name, str)]
    except Exception:  # the object's own `__dir__`
        return dir(type(owner))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exceptions that it was raised from, the nearest first."""
    seen = {id(error)}
    while error.__cause__ is not None and id(error.__cause__) not in seen:
        error = error.__cause__
        seen.add(id(error))
        yield error


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, and those that it came from, each once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def is_own(error: BaseException, *, measuring: bool = False) -> bool:
    """Whether an exception is a failure of Trainwright itself: the innermost frame decides, arithmetic aside.

    A line of ours that forwards a call unchanged (`f(*args, **kwargs)`, `passed_on`) does not count as innermost, nor
    does one that raises a framework's message (`of_pipeline`); a device's error belongs to the code that used the
    device.

    Args:
        measuring: it was raised during a measurement, not a call of the user's pipeline: then a library's rejection
            directly below one of our lines is our error too.
    """
    frames = list(_frames(error))
    modules = [str(frame.f_globals.get("__name__", "")) for frame in frames_of(error)]
    if not frames or getattr(error, "_of_pipeline", False):
        return False
    own = [i for i, f in enumerate(frames) if is_ours(f[0].co_filename) and not _hands_on(*f)]
    if own and _instruction(*frames[own[-1]][:2]) in _IMPORTING:
        return not any(is_users(code.co_filename) for code, _, _ in frames[own[-1] :])
    if isinstance(error, RecursionError):  # the last frame of a full stack is arbitrary
        return not any(is_users(code.co_filename) for code, _, _ in frames)
    if _raised_elsewhere_by_us(error):
        return True
    if own and all(n.startswith(_ARITHMETIC) or _is_mode(f[0]) for f, n in list(zip(frames, modules))[own[-1] + 1 :]):
        return not _of_the_device(error)
    if not measuring:
        return False
    failure = describe_error(error)
    return failure.where is None and not failure.function.startswith(_PIPELINES)


def _is_mode(code: CodeType) -> bool:
    """Whether a frame is of a torch function mode of ours, which our own calls of torch pass through as well."""
    return code.co_name == "__torch_function__" and is_ours(code.co_filename)


def is_own_call(frame: FrameType | None) -> bool:
    """Whether a line of ours, and no user's below it, made the call that runs in this frame, arithmetic aside."""
    modules: list[str] = []
    while frame is not None and not is_users(frame.f_code.co_filename):
        code = frame.f_code
        if is_ours(code.co_filename) and not _hands_on(code, frame.f_lasti, frame.f_lineno):
            return all(name.startswith(_ARITHMETIC) for name in modules)
        modules.append(str(frame.f_globals.get("__name__", "")))
        frame = frame.f_back
    return False


def passed_on(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call user code; an exception raised there from C is not ours."""
    return function(*args, **kwargs)


def of_pipeline(error: E) -> E:
    """Mark an exception that tells the user's pipeline what its framework would."""
    error._of_pipeline = True  # type: ignore[attr-defined]
    return error


@contextlib.contextmanager
def tolerated() -> Iterator[None]:
    """A probe that the user's pipeline may reject; an error of our own also ends it, and is recorded."""
    try:
        yield
    except Exception as error:
        note_own(error)


def note_own(error: BaseException) -> None:
    """Record an error that a probe raised, if it is our own."""
    if is_own(error):
        _kept.append(error)


def own_errors() -> list[BaseException]:
    """Our own errors recorded since the last call of this function."""
    found = list(_kept)
    _kept.clear()
    return found


def _frames(error: BaseException) -> Iterator[tuple[CodeType, int, int]]:
    """Code, instruction and line of each frame, the innermost last."""
    link = error.__traceback__
    while link is not None:
        yield link.tb_frame.f_code, link.tb_lasti, link.tb_lineno
        link = link.tb_next


def frames_of(error: BaseException) -> Iterator[FrameType]:
    """The frames of an exception's traceback, the innermost last."""
    yield from (frame for frame, _ in traceback.walk_tb(error.__traceback__))


def _instruction(code: CodeType, at: int) -> str:
    while at > 0 and dis.opname[code.co_code[at]] == "CACHE":  # belongs to the instruction before it
        at -= 2
    return dis.opname[code.co_code[at]] if at >= 0 else ""


def _hands_on(code: CodeType, at: int, line: int) -> bool:
    found = _instruction(code, at)
    if found != "RERAISE":  # after passing the end of a `with`, the line is still that of the call
        return found in _HANDING_ON or code.co_name.startswith("passed_on")  # a watcher's; what it notes is guarded
    return any(
        i.opname in _HANDING_ON and i.positions is not None and i.positions.lineno == line
        for i in dis.get_instructions(code)
    )


def _of_the_device(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or type(error).__module__.startswith(("torch", "jax", "tensorflow")):
        return True  # only C raises these at one of our lines
    return isinstance(error, RuntimeError) and bool(_OF_THE_DEVICE.search(str(error)))


def _raised_elsewhere_by_us(error: BaseException) -> bool:
    """Whether a message with a traceback from another process or thread ends at one of our lines."""
    text = str(error)
    places = list(_ELSEWHERE.finditer(text)) if _TRACEBACK in text else []
    if not places or not is_ours(places[-1].group(1)):
        return False
    line = linecache.getline(places[-1].group(1), int(places[-1].group(2)))
    return "(*" not in line


def telling(message: str) -> str:
    """The part of a message that says what is wrong; all of it if no such part is found."""
    if _OF_A_LAYER in message and (found := _BOLD.search(message)):
        return found.group(1).strip()
    message = plain(message)
    if message.startswith(_IN_GRAPH):
        said = _NODE.sub("", message).rstrip()
        return said.rpartition("\n")[2].strip()
    return _KERNEL.sub("", message)


def _copied_lines(message: str) -> list[tuple[str, int, str]]:
    """File, line and function of the code that TensorFlow ran a copy of, if a message names them."""
    if not message.startswith("in user code:"):
        return []
    return [(file, int(line), name) for file, line, name in _COPIED.findall(message)]
