"""Runs the script under its watchers, ends its trainings when their time is over, and writes the record."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import pickle
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from traceback import walk_tb
from types import FrameType
from typing import Any, BinaryIO, NoReturn, TextIO, cast

from trainwright.core import Failure
from trainwright.errors import ScriptLeft, TrainwrightError
from trainwright.look.asking import Wanted
from trainwright.rehearsal import watch
from trainwright.rehearsal.imported import list_imported
from trainwright.rehearsal.limits import Limits
from trainwright.rehearsal.listener import LISTENING
from trainwright.rehearsal.loops import LoopEnding
from trainwright.rehearsal.ranks import RankListening, RankNotes
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_parts import Ended
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.request import PYTHON, Progress, Request, Work
from trainwright.rehearsal.sandbox import Sandbox, cut_network
from trainwright.rehearsal.seeds import move_seeds
from trainwright.rehearsal.streams import NeedsTyping, without_leaving, without_terminal
from trainwright.rehearsal.watch.numbers import Tee
from trainwright.seams.devices.cpu_for_gpu import Devices
from trainwright.seams.failures.blame import chain_of, describe_error, is_own
from trainwright.seams.failures.watchdog import NoMoreBatches, OutOfTime
from trainwright.seams.intercept import install
from trainwright.seams.isolation.harmless_run import aside
from trainwright.seams.isolation.offline import offline
from trainwright.seams.isolation.refused import is_refusal
from trainwright.seams.isolation.tally import KeptAway
from trainwright.seams.listening.hearing import Hearing, heard_by
from trainwright.seams.listening.seen import told
from trainwright.seams.loops.found_loops import loops_at
from trainwright.seams.processes import Exchange
from trainwright.seams.requirements import versions
from trainwright.seams.scripts.edited_files import standing_in
from trainwright.seams.scripts.running import SKIPPED, starting
from trainwright.seams.source.places import is_ours

# The check sends this signal when the whole time is over; hardly a script handles it.
TIME_OVER = getattr(signal, "SIGXCPU", signal.SIGTERM)
# A script is run at most this often: for its launcher's variables, for a stand-in GPU.
MOST_ATTEMPTS = 4
# With which argparse, click and most other readers of command lines end a program.
WRONG_USAGE = 2
TOLD_EVERY_SECONDS = 0.5
BY_CTRL_C = "Ctrl-C ended it"
# How a script stops that counts on all rounds of a training: files and names that are not made, lists that are shorter.
_LEFT_SHORT = (IndexError, ZeroDivisionError, AssertionError, FileNotFoundError, UnboundLocalError)
_SAYS_SHORT = (
    (ValueError, re.compile(r"\b(lengths?|dimensions?|shapes?|sizes?|numbers of samples|empty|divided)\b", re.I)),
    ((TypeError, AttributeError), re.compile(r"\bNoneType\b")),
)
_BEHIND_CUT = "behind a training that was cut short, which may be its cause, the script stopped with"
_RUN_FOLDER = re.compile(r"wandb[/\\\\](offline-)?run-")


def run_script(
    request: Request, sandbox: Sandbox | None, record: BinaryIO, progress: int, work: Work | None = None
) -> None:
    """Run the script of a request.

    Args:
        sandbox: what the kernel isolates; None: what is written is redirected in Python instead.
        record: where the record is written.
        progress: the descriptor of the file in which the run tells how far it is.
        work: is run in the script's place.
    """
    tally, recorder, limits = KeptAway(), Recorder(), Limits(request.seconds)
    recorder.record.isolation = request.isolation
    telling = _Telling(recorder, limits, progress)
    _limit_updates(recorder, limits, telling, work.most_updates if work is not None else None)
    if sandbox is not None:
        recorder.on_begin.append(functools.cache(_cut_network))

    @functools.cache
    def begin_unseen() -> None:
        for one in (*recorder.on_begin, telling.tell):
            one()

    recorder.begin_unseen = begin_unseen
    signal.signal(TIME_OVER, _raise_out_of_time)
    move_seeds(request.seed)
    if not request.samples:
        recorder.sampler = None
    _put_repairs_in_force(request)
    rank = RankListening(request.starter) if request.starter else None
    if request.watched:
        install()
        watch.watch(recorder) if rank is None else None
    kept = [Exchange(request.starter).folder] if request.starter else []
    away = contextlib.nullcontext() if sandbox is not None else aside(tally, request.scratch, kept)
    began, hearing = time.process_time(), Hearing(lambda: bool(recorder.record.trainings))
    environment = dict(os.environ)
    with away as guard:
        if guard is not None:
            recorder.on_begin.append(guard.cut_network)
        listened = told(rank or LISTENING) if request.watched else contextlib.nullcontext()
        with _around_script(recorder, tally, is_begun=work is not None), heard_by(hearing), listened:
            left = _run_attempts(request, recorder, tally, work)
        seen = recorder.record
        seen.processor_seconds, seen.versions, seen.warnings = time.process_time() - began, versions(), [*hearing.kept]
        seen.imported = list_imported(environment) if work is None else None
        if rank is not None:
            rank.note_failure(left[1])
        compared = RankNotes(looks=rank.looks, remarks=rank.remarks) if rank is not None else LISTENING.compared
        _note_compared(seen, compared)
        telling.tell()
        if sandbox is not None:
            tally.files |= {str(path) for path in sandbox.list_written()}
        seen.kept_away, seen.remarks = tally.said(), (*seen.remarks, *tally.remark(), *dict.fromkeys(SKIPPED))
        _finish(recorder, record)
        del left


@contextlib.contextmanager
def _around_script(recorder: Recorder, tally: KeptAway, *, is_begun: bool) -> Iterator[None]:
    """What a script meets: nobody who types, no network.

    Args:
        is_begun: what is run trains from its beginning.
    """
    started = time.monotonic()
    with without_terminal(), without_leaving(), offline(tally, is_begun=is_begun):
        recorder.on_begin.append(functools.cache(lambda: _note_start(recorder.record, started)))
        yield


def _limit_updates(recorder: Recorder, limits: Limits, telling: _Telling, most: int | None) -> None:
    """End the run's trainings when their time is over, or behind so many updates; tell with each update how far it is."""
    recorder.is_over = lambda: limits.is_training_over or (most is not None and recorder.record.updates >= most)
    recorder.on_begin.append(limits.begin_training)
    recorder.on_update += [telling, *([LoopEnding(recorder)] if most is None else [])]


def _put_repairs_in_force(request: Request) -> None:
    """Hand the repairs of a further run to what passes its doors."""
    if request.repairs.exists():
        wanted: list[Wanted] = pickle.loads(request.repairs.read_bytes())  # written by the check
        LISTENING.repairs = [repair for one in wanted if (repair := one.find()) is not None]
        LISTENING.repaired_training = wanted[0].looked.training


def _note_compared(seen: Record, compared: RankNotes) -> None:
    """Note what the processes of a training begin with, as far as they differ."""
    seen.looks, seen.remarks = [*seen.looks, *compared.looks], (*seen.remarks, *compared.remarks)
    seen.ended.failure = seen.ended.failure or compared.failure


def _finish(recorder: Recorder, record: BinaryIO) -> None:
    """Write what was seen, then what the models show once more."""
    _write(recorder.finish(), record)  # what follows runs the model once more, and may not end
    _write(watch.finish(recorder), record)
    _write(watch.finish_behind(recorder), record)
    recorder.busy = True  # what watches on in a process that goes on sees nothing


def _note_start(record: Record, started: float) -> None:
    record.start_seconds = time.monotonic() - started


def _starting(request: Request, recorder: Recorder, work: Work | None) -> contextlib.AbstractContextManager[Any]:
    """What is run, as a context."""
    if work is None:
        return starting(request.script, request.arguments, module=request.module)

    def start() -> Any:
        left = work.run(recorder.is_over)
        for training in recorder.record.trainings:
            training.is_cut = training.is_cut or work.most_updates is not None
        return left

    return contextlib.nullcontext(start)


def _run_attempts(request: Request, recorder: Recorder, tally: KeptAway, work: Work | None) -> Any:
    """Run the script, and again if it ended before training because of the devices it found; returns what it left."""
    devices = Devices(forced=request.device == "cpu")
    with standing_in(request.copies), _starting(request, recorder, work) as start, devices.told():
        for attempt in range(MOST_ATTEMPTS):
            left, error = _run_once(start, recorder)
            ended = error if isinstance(error, (Exception, SystemExit)) else None
            if recorder.record.updates or attempt == MOST_ATTEMPTS - 1 or not devices.starts_anew(ended):
                _note_end(error, recorder, tally)
                recorder.record.redirected, recorder.record.remarks = devices.seen, tuple(devices.remarks)
                raised = _raised(error) if recorder.record.ended.failure is not None else None
                for called in recorder.on_end:
                    called(raised)
                # The script's names, or what ended it: its models live in them, until they are probed.
                return left, error
    return None


def _run_once(start: Callable[[], Any], recorder: Recorder) -> tuple[Any, BaseException | None]:
    """Run the script; returns what it left, and what ended it."""
    before, sys.stdout = sys.stdout, cast("TextIO", Tee(recorder, sys.stdout))
    signal.signal(TIME_OVER, _raise_out_of_time)
    try:
        return start(), None
    except BaseException as error:  # the script's: noted in the record
        return None, error
    finally:
        signal.signal(TIME_OVER, signal.SIG_IGN)  # it may come again
        sys.stdout = before


def _note_end(error: BaseException | None, recorder: Recorder, tally: KeptAway) -> None:
    ended = recorder.record.ended
    ended.update = recorder.record.updates
    if isinstance(error, ScriptLeft):  # of a training with several processes all is said
        ended.misuse = LISTENING.misuse
        return
    if misuse := _misuse(error):
        ended.misuse = misuse
    elif isinstance(error, (OutOfTime, NoMoreBatches)) or OutOfTime.__name__ in str(error):  # native code wraps it
        ended.is_cut = True
        if recorder.training is not None:
            recorder.training.is_cut = True
    elif isinstance(error, KeyboardInterrupt):
        ended.is_cut, ended.hindrance = True, BY_CTRL_C
    elif isinstance(error, NeedsTyping):
        ended.hindrance = "it asks for typed input"
    elif isinstance(error, SystemExit):
        if error.code not in (None, 0):
            _note_exit(error, recorder)
    elif error is not None and (withheld := _withheld(error, recorder.record, tally)):
        ended.hindrance = withheld
    elif error is not None and is_own(error):
        ended.own_error = f"{type(error).__name__}: {error}"
    elif error is not None and _may_come_of_cut(error, recorder.record):
        ended.hindrance = f"{_BEHIND_CUT} {describe_error(error)}"
    elif error is not None:
        ended.failure = describe_error(error)


def _note_exit(error: SystemExit, recorder: Recorder) -> None:
    """Note the script's own exit with another status than 0."""
    ended, record, caught = recorder.record.ended, recorder.record, _raised(error)
    is_answer = caught is not None and caught is not error
    if not record.updates and (error.code == WRONG_USAGE or not is_answer):
        refused = "it refuses its arguments"
        how = f"with status {error.code}" if isinstance(error.code, int) else f"saying {error.code!r}"
        ended.hindrance = refused if error.code == WRONG_USAGE else f"it ends itself, {how}"
    elif is_answer or not _is_behind_training(error, recorder):
        exit_ = Failure(type="SystemExit", message=str(error.code), where=None)
        ended.failure = describe_error(caught) if caught is not None and is_answer else exit_
    elif record.is_cut:
        ended.hindrance = f"{_BEHIND_CUT} {describe_error(error)}"
    else:
        ended.exit = describe_error(error)


def _is_behind_training(error: SystemExit, recorder: Recorder) -> bool:
    """Whether the trainings had ended where a script ends itself: no call that trains, and no loop, was under way."""
    training = recorder.training
    lines = [(f, line) for f, line in walk_tb(error.__traceback__) if not is_ours(f.f_code.co_filename)]
    is_between = training is None or training.kind == "loop"
    return bool(recorder.record.trainings) and is_between and not any(loops_at(frame, line) for frame, line in lines)


def _withheld(error: BaseException, record: Record, tally: KeptAway) -> str:
    """What an exception wants that a check keeps from the script; empty: nothing."""
    if record.trainings and _wants_network(error):
        return "it wants another machine, which a rehearsal does not reach once training has begun"
    named = (name for name in sorted(tally.uploads) if any(name in str(one) for one in chain_of(error)))
    if (upload := next(named, None)) is not None:
        return f"it reads {upload} back, which it had uploaded: a rehearsal uploads nothing"
    if _RUN_FOLDER.search(str(error)):
        return "it writes into the folder of a W&B run, which a check does not begin"
    if record.isolation == PYTHON and is_refusal(error, tally):
        return f"it does what is refused where the kernel isolates no process ({describe_error(error)})"
    return ""


def _misuse(error: BaseException | None) -> str:
    """What is wrong with the command or the environment; empty: nothing."""
    if isinstance(error, ImportError) and describe_error(error).function.startswith("runpy."):
        return f"-m needs the name of a module that can be run: {error}"
    return str(error) if isinstance(error, TrainwrightError) else ""


def _raised(error: BaseException | None) -> BaseException | None:
    """What ended the script: of an exit that answers an exception, that one."""
    is_answer = isinstance(error, SystemExit) and not error.__suppress_context__
    return (error.__context__ if error is not None and is_answer else None) or error


def _may_come_of_cut(error: BaseException, record: Record) -> bool:
    """Whether an exception tells of something that a training which is cut short leaves shorter, empty or unmade."""
    if not record.is_cut:
        return False
    says_so = any(isinstance(error, kinds) and words.search(str(error)) for kinds, words in _SAYS_SHORT)
    return isinstance(error, _LEFT_SHORT) or says_so


def _wants_network(error: BaseException | None) -> bool:
    """Whether an exception, or one that it came from, says that a machine cannot be reached."""
    return any(
        isinstance(one, socket.gaierror) or getattr(one, "errno", None) == errno.ENETUNREACH for one in chain_of(error)
    )


def note_own_error(error: Exception, file: BinaryIO) -> None:
    """Write a record of an error of ours alone."""
    _write(Record(ended=Ended(own_error=f"{type(error).__name__}: {error}")), file)


def _write(record: Record, file: BinaryIO) -> None:
    file.seek(0)
    pickle.dump(record, file)
    file.truncate()
    file.flush()


def _cut_network() -> None:
    """Cut the network off, unless NCCL's processes speak through it: their threads stay where they were."""
    groups = sys.modules.get("torch.distributed")
    if groups is not None and groups.is_available() and groups.is_initialized() and "nccl" in groups.get_backend():
        return
    cut_network()


class _Telling:
    """Tells how far the run is."""

    def __init__(self, recorder: Recorder, limits: Limits, file: int) -> None:
        self._recorder, self._limits, self._file = recorder, limits, file
        self._next = 0.0

    def __call__(self) -> None:
        if (now := time.monotonic()) >= self._next:
            self._next = now + TOLD_EVERY_SECONDS
            self.tell()

    def tell(self) -> None:
        """Tell it now."""
        losses, record = self._recorder.record.losses, self._recorder.record
        loss = losses[-1][1] if losses else None
        limits = self._limits
        Progress(updates=record.updates, loss=loss, elapsed=limits.elapsed, began=limits.began).write(self._file)


def _raise_out_of_time(number: int, frame: FrameType | None) -> None:
    """End the script where it is; in a `__del__`, where Python would drop the exception, at the next line behind it."""
    behind = None
    while frame is not None:
        behind = frame.f_back if frame.f_code.co_name == "__del__" else behind
        frame = frame.f_back
    if behind is None:
        raise OutOfTime
    behind.f_trace = _raise_at_line
    sys.settrace(lambda *event: None)


def _raise_at_line(frame: FrameType, event: str, argument: Any) -> NoReturn:
    raise OutOfTime
