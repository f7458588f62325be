"""The evaluation in a handwritten training loop: runs a pass of the loop around it, with shortened loaders.

It makes two passes, each over the first batches of every loader, then runs the code after the loop. Nothing is
updated, printed or written, and everything is restored. An exception counts only if it recurs with full loaders.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from trainwright.adapters.loop.batches import mended_collator
from trainwright.adapters.loop.best_values import BestValues
from trainwright.adapters.loop.body_run import eager
from trainwright.adapters.loop.counters import Added, as_facts, find_counters
from trainwright.adapters.loop.quotients import measure_quotients
from trainwright.adapters.loop.retained_graphs import retained_graphs
from trainwright.adapters.loop.training import LoopTraining
from trainwright.core import Failure, Place, Seam
from trainwright.seams.failures.blame import failure_of, note_own, of_pipeline
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.seams.isolation.harmless_run import NotForALook, aside
from trainwright.seams.listening.seen import quiet
from trainwright.seams.listening.torch_patches import loader_of, watching_loaders
from trainwright.seams.loops.found_loops import Loop
from trainwright.seams.loops.lifted_pass import RETURNED, LiftedPass, lift_pass
from trainwright.seams.source.places import place_of, user_frame
from trainwright.seams.source.written import syntax_tree
from trainwright.seams.state.snapshot import seed_everything
from trainwright.seams.torch.evaluation import EvaluationWatch, TookTooLong, evaluation_call, tensors_in
from trainwright.seams.torch.gates import Gates
from trainwright.seams.torch.marks import ModelCall, refused_call
from trainwright.seams.torch.watch import Observer
from trainwright.stages.evaluation import Comparison, EvaluationFacts

PASSES = 2
TRAINING_TURNS = 2
# A training loop that takes its batches with `next` must find one for each of its turns.
FEW_BATCHES = TRAINING_TURNS
# Two passes over a few batches take about as long as ten training steps; slower evaluations are not examined.
SECONDS = 10.0
# With full loaders, an exception must recur within this time, or it is ignored.
WHOLE_SECONDS = 15.0
STOPPED_SHARE = 1.2
# Errors that arise from lifting or sandboxing: a name that the loop would have bound, a missing file.
_NOT_THE_EVALUATIONS = (NameError, ImportError, OSError, EOFError, NotForALook)
# Repairs of the inputs of model and loss are in force in the evaluation too.
_OF_CALLS = (Seam.FORWARD, Seam.LOSS, Seam.PAIRING, Seam.ACTIVATION)
_DRAWING = (ast.For, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_METRICS = ("sklearn.metrics", "torchmetrics.", "torcheval.", "evaluate.")


@dataclass(kw_only=True)
class Seen:
    """The result of two passes and the code after the loop."""

    watch: EvaluationWatch
    counters: list[Added] = field(default_factory=list)
    best: BestValues | None = None
    error: BaseException | None = None
    kept: list[tuple[ModelCall, int]] = field(default_factory=list)
    """The calls whose graphs were alive at the end of the first pass, with their bytes."""
    loaders: list[Any] = field(default_factory=list)
    drawn_at: tuple[Place, str] | None = None
    """The user's line that drew the last batch from a loader that does not train, and its file."""
    late: bool = False
    """It took too long and was abandoned."""
    stopped: bool = False
    """It had to be interrupted."""
    finished: bool = False
    """Both passes completed."""


def measure(training: LoopTraining, batches: int) -> EvaluationFacts:
    """Run the loop's own evaluation over a few batches; the facts say so if it has none."""
    loop, evaluate = getattr(training.body, "loop", None), getattr(training.body, "evaluate", None)
    if evaluate is not None:
        return _of_framework(training, lambda: evaluate(batches))
    if not isinstance(loop, Loop):
        return EvaluationFacts(present=False, in_loop=True)
    lifted = lifted_pass_of(training, loop)
    try:
        seen = run_passes(training, lifted, batches, frozenset())
        if any(r.seam == Seam.EVALUATION for r in training.active.all):
            known = frozenset(c.where for c in seen.watch.evaluations() if c.where is not None)
            seen = run_passes(training, lifted, batches, known)
        failure = _raised(training, seen)
        if failure is not None:
            seen = run_passes(training, lifted, None, frozenset())
            failure = _raised(training, seen) if not seen.late else None
        if seen.stopped:
            raise OutOfTime
        facts = _facts(seen, lifted, failure)
        longer = functools.partial(run_passes, training, lifted, 2 * batches, frozenset())
        return replace(facts, **retained_graphs(training, seen, longer)) if failure is None else facts
    finally:
        lifted.start_over()
        training.reset()


def _of_framework(training: LoopTraining, evaluate: Callable[[], Any]) -> EvaluationFacts:
    """Run an evaluation that a framework calls batch by batch, such as Lightning's validation_step."""
    training.reset()
    seen = Seen(watch=EvaluationWatch(training.active.all, SECONDS, frozenset()))
    gates = Gates(training.optimizers, training.schedules, live=False)
    try:
        with quiet(), gates.closed(), aside(), eager(), _mended(training), seen.watch.watching():
            evaluate()
    except TookTooLong:
        seen.late = True
    except Exception as error:  # the user's evaluation raised, which is a finding
        seen.error = error
    finally:
        training.reset()
    facts = _facts(seen, None, _raised(training, seen))
    watched = getattr(training.body, "watched", None)
    return replace(facts, **watched()) if watched is not None and seen.error is None and not seen.late else facts


def lifted_pass_of(training: LoopTraining, loop: Loop) -> LiftedPass:
    training.reset()
    lasting = [*training.modules, *training.parts.optimizers]
    return lift_pass(loop, getattr(training.body, "_callers", []), lasting)


def run_passes(training: LoopTraining, lifted: LiftedPass, batches: int | None, known: frozenset[Place]) -> Seen:
    """Run two passes and the code after the loop.

    Args:
        batches: how many from each loader; None: all.
        known: the lines that evaluate the model, for repairs of its mode.
    """
    training.reset()
    lifted.start_over()
    seconds = SECONDS if batches is not None else WHOLE_SECONDS
    watch = EvaluationWatch(training.active.all, seconds, known)
    seen = Seen(watch=watch)
    turns = _Turns()
    gates = Gates(training.optimizers, training.schedules, live=False)
    with (
        quiet(),
        gates.closed(),
        aside(),
        eager(),
        _short_loaders(training, batches, seen),
        lifted.cut(turns.over),
        _mended(training),
        watch.watching(),
    ):
        try:
            # Time is checked when tensor operations run; code that runs none is interrupted.
            with stopped_after(STOPPED_SHARE * seconds):
                _passes(training, lifted, seen, turns)
        except TookTooLong:
            seen.late = True
        except OutOfTime:
            seen.late = seen.stopped = True
    return seen


def _passes(training: LoopTraining, lifted: LiftedPass, seen: Seen, turns: _Turns) -> None:
    seen.counters = find_counters(lifted)
    seen.best = BestValues(lifted, training.parts.optimizers)
    start = [(c, c.value) for c in seen.counters]
    for one in seen.counters:
        one.look()
    mended = evaluation_call(training.active.all)
    modes = [(m, m.training) for top in training.modules for m in top.modules()]
    for number in range(PASSES):
        for counter, value in start:
            if counter.name in mended["cleared"]:
                counter.write(value)
        for module, mode in modes if mended["restored"] else ():
            module.training = mode
        seen.watch.turn, turns.left = number, TRAINING_TURNS if lifted.whole else 1
        seed_everything(7)
        try:
            lifted.code.run()
        except Exception as error:  # the user's evaluation raised, which is a finding
            seen.error = error
            return
        seen.kept = seen.kept or seen.watch.kept_graphs()
        for one in seen.counters:
            one.look()
    seen.finished = True
    seen.best.look()
    seen.watch.turn = PASSES
    returned = None
    for code in lifted.rest:
        before = len(seen.watch.calls)
        turns.left = 0
        code.namespace[RETURNED] = returned
        try:
            code.run()
        except Exception as error:  # after the last pass, or in code that plots and stores its results
            if len(seen.watch.calls) > before or failure_of(error).function.startswith(_METRICS):
                seen.error = error
                return
        returned = code.namespace.pop(RETURNED, None)


@dataclass
class _Turns:
    """How many more rounds the training loop may make in this pass."""

    left: int = TRAINING_TURNS

    def over(self) -> bool:
        self.left -= 1
        return self.left < 0


@contextlib.contextmanager
def _short_loaders(training: LoopTraining, batches: int | None, seen: Seen) -> Iterator[None]:
    """Limit every loader to this many batches, without workers; apply training's collate repairs to them."""
    faulty = {id(loader.collate_fn) for loader in training.loaders}
    handed: dict[int, tuple[Any, int]] = {}
    kept: list[tuple[Any, dict[str, Any]]] = []

    def begun(loader: Any) -> None:
        if not any(known is loader for known, _ in kept):
            names = ("num_workers", "multiprocessing_context", "timeout", "pin_memory", "collate_fn")
            seen.loaders.append(loader)
            kept.append((loader, {n: getattr(loader, n) for n in names}))
            loader.num_workers, loader.timeout, loader.pin_memory = 0, 0, False
            if id(loader.collate_fn) in faulty:
                loader.collate_fn = mended_collator(training, loader.collate_fn)

    def batch(iterator: Any, draw: Callable[[], Any]) -> Any:
        count = handed.get(id(iterator), (iterator, 0))[1]
        if batches is not None and count >= batches:
            raise of_pipeline(StopIteration())
        handed[id(iterator)] = (iterator, count + 1)
        frame = user_frame(sys._getframe(1))
        trains = any(known is loader_of(iterator) for known in training.loaders)
        seen.drawn_at = (place_of(frame), frame.f_code.co_filename) if frame is not None and not trains else None
        return draw()

    try:
        with watching_loaders(begun, batch):
            yield
    finally:
        for loader, attributes in kept:
            for name, value in attributes.items():
                if name != "multiprocessing_context" or attributes["num_workers"] > 0:
                    setattr(loader, name, value)


def _mended(training: LoopTraining) -> Any:
    repairs = [r for r in training.active.all if r.seam in _OF_CALLS]
    return Observer(training.model, repairs, roots=training.parts.roots) if repairs else contextlib.nullcontext()


def _raised(training: LoopTraining, seen: Seen) -> Failure | None:
    """The exception that the evaluation raised, if it belongs to the evaluation."""
    error = seen.error
    if error is None or isinstance(error, _NOT_THE_EVALUATIONS) or _mended_elsewhere(training):
        return None
    last = seen.watch.calls[-1] if seen.watch.calls else None
    failure = failure_of(error)
    if (last is None or last.trained) and not (_with_a_batch(seen, failure) or _comparing(seen, failure)):
        return None
    # An evaluation does not call backward: that was another training step, which the gradients stage reports.
    of_training = failure.function.startswith("torch.autograd")
    return failure if failure.where is not None and not of_training else None


def _comparing(seen: Seen, failure: Failure) -> bool:
    """Whether it was raised by a comparison with labels, such as the accuracy of a training batch."""
    raised = ((c.failure, c.where) for _, c in seen.watch.comparisons if c.operation != "-")
    return any(f is not None and (f.message, where) == (failure.message, failure.where) for f, where in raised)


def _with_a_batch(seen: Seen, failure: Failure) -> bool:
    """Whether it was raised inside the loop that had drawn a batch for evaluation, before the model was called."""
    if seen.drawn_at is None or failure.where is None:
        return False
    (place, file), at = seen.drawn_at, failure.where
    tree = syntax_tree(file)
    drawing = [n for n in ast.walk(tree) if isinstance(n, _DRAWING) and _begins_at(n, place.line)] if tree else []
    return at.file == place.file and any(n.lineno <= at.line <= (n.end_lineno or n.lineno) for n in drawing)


def _begins_at(node: ast.For | ast.expr, line: int) -> bool:
    """Whether a loop or a comprehension draws at this line: in its header, or anywhere in it."""
    return node.lineno == line if isinstance(node, ast.For) else node.lineno <= line <= (node.end_lineno or node.lineno)


def _mended_elsewhere(training: LoopTraining) -> bool:
    """Whether training steps have repairs that the evaluation, run unchanged, does not."""
    own = (Seam.TRAINER, Seam.STACK, Seam.OPTIMIZER, Seam.METRICS, Seam.EVALUATION, *_OF_CALLS)
    return any(r.seam not in own for r in training.active.all)


def _facts(seen: Seen, lifted: LiftedPass | None, failure: Failure | None) -> EvaluationFacts:
    watch, whole = seen.watch, lifted is None or lifted.whole
    evaluations = watch.evaluations() or watch.evaluations(sure=False)
    refused = _refused(seen) if failure is not None else None
    comparisons = (*_comparisons(watch, failed=failure is not None), *([refused] if refused is not None else []))
    noisy = [c for c in watch.evaluations() if c.noise and not watch.asked_again(c)]
    measured = {line for m in watch.meetings for line in m.lines}
    # A framework's validation step is an evaluation, even if its scores meet the labels outside of torch.
    called = watch.calls if lifted is None else []
    first = [c for c in evaluations if c.turn == min(e.turn for e in evaluations)] or called
    counters = as_facts(seen.counters, measured) if seen.finished else ()
    return EvaluationFacts(
        present=bool(evaluations or comparisons or failure or called),
        in_loop=True,
        metrics_failure=failure,
        evaluated_at=tuple(dict.fromkeys(c.where for c in (*noisy, *(evaluations or called)) if c.where is not None)),
        batches=len(first),
        comparisons=comparisons,
        counters=tuple(c if whole or not c.training else replace(c, share="") for c in counters),
        training_mode=any(c.training for c in noisy),
        active_noise=tuple({k: n for c in noisy for k, n in c.noise.items()}.values()),
        repeatable=_repeatable(noisy[0]) if noisy else None,
        **_of_pass(seen, lifted),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None,
    )


def _comparisons(watch: EvaluationWatch, *, failed: bool) -> tuple[Comparison, ...]:
    """The comparisons, one per line; differences that training computes too are its loss."""
    of_training = {m.where for m in watch.meetings if m.kind == "-" and any(c.trained for c in m.calls)}
    found: dict[tuple[str, Place | None], Comparison] = {}
    for call, comparison in watch.comparisons:
        if comparison.failure is not None and not failed:
            continue  # with full loaders it is not known to raise
        if comparison.operation == "-" and (call.trained or comparison.where in of_training):
            continue
        found.setdefault((comparison.operation, comparison.where), comparison)
    return tuple(found.values())


def _of_pass(seen: Seen, lifted: LiftedPass | None) -> dict[str, Any]:
    """Facts about what the loop makes of its evaluations."""
    if seen.best is None or lifted is None or not seen.finished:
        return {}
    compared = [c for call, c in seen.watch.comparisons if call.turn == PASSES - 1 and not call.trained]
    return {
        "quotients": measure_quotients(lifted, seen.watch.comparisons, seen.watch.meetings),
        "best_values": seen.best.facts(compared, seen.loaders),
        "kept_weights": seen.best.kept,
    }


def _refused(seen: Seen) -> Comparison | None:
    """The arguments of a library's metric function that raised."""
    link = seen.error.__traceback__ if seen.error is not None else None
    while link is not None:
        frame = link.tb_frame
        if str(frame.f_globals.get("__name__", "")).startswith(_METRICS):
            given = frame.f_locals
            truth, answer = given.get("y_true"), given.get("y_pred", given.get("y_score"))
            if truth is not None and answer is not None and seen.error is not None:
                return refused_call(frame.f_code.co_name, answer, truth, failure_of(seen.error))
        link = link.tb_next
    return None


@torch.no_grad()
def _repeatable(call: ModelCall) -> bool | None:
    """Whether a model's output is the same twice, in the mode in which it was evaluated."""
    if call.inputs is None:
        return None
    modes = [(m, m.training) for m in call.module.modules()]
    args, kwargs = call.inputs
    try:
        with quiet(), aside():
            for module in call.module.modules():
                module.training = call.modes.get(id(module), call.training)
            answers = [call.module(*args, **kwargs) for _ in range(2)]
    except Exception as error:  # a model that keeps state, or modifies its inputs
        note_own(error)
        return None
    finally:
        for module, mode in modes:
            module.training = mode
    left, right = (tensors_in(a) for a in answers)
    return all(torch.equal(x, y) for x, y in zip(left, right))
