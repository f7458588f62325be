"""One observed step of a training loop and further probes, as facts of three stages."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import nn

from trainwright.adapters.data.reading import length
from trainwright.adapters.loop.accelerate import scalers_of
from trainwright.adapters.loop.batches import step_on_rows
from trainwright.adapters.loop.gradients import changes_of_window, cuts_of_their_step
from trainwright.adapters.loop.training import LoopTraining
from trainwright.adapters.loop.turn import LONGEST_WINDOW, Turn
from trainwright.adapters.torch.batches import POOLED
from trainwright.adapters.torch.called_model import Probe, accepted_names
from trainwright.adapters.torch.gradients import further_steps, graph_facts
from trainwright.adapters.torch.loss import further_losses, loss_facts
from trainwright.adapters.torch.step_facts import forward_facts, gradient_facts, stay_identical, with_origins
from trainwright.adapters.torch.vocabulary import vocabulary_of
from trainwright.core.repair import Seam
from trainwright.seams.torch.gates import Passed, cleared_between
from trainwright.seams.torch.graph import GraphWatch
from trainwright.seams.torch.step_record import StepRecord
from trainwright.seams.torch.trace import tensors_in
from trainwright.stages import CutOff, ForwardFacts, GradientFacts, KeptTensor, LossFacts
from trainwright.tensors.torch import objects as tensors
from trainwright.timing import now

# For up to this many cuts, test whether gradients arrive without them; each test takes a step.
MOST_SUSPECTS = 6

# A dozen further steps of a slower one would leave no time for anything else, and lose what this one has shown.
SLOW_SECONDS = 6.0

StepFacts = tuple[ForwardFacts, LossFacts | None, GradientFacts | None]


def measure_step(training: LoopTraining) -> StepFacts:
    """Run one round without an update, then further probes; stages after one that raised are None."""
    turns = training.take(2, seed=0)
    training.reset()
    with training.ready(0):
        watch = GraphWatch(training.model, training.active.all, detail=True)
        started = now()
        record, passed = training.observe(turns[0], detail=True, watch=watch)
        slow = now() - started > SLOW_SECONDS
        gradients = _gradients(training, record, passed, watch)
        forward = _forward(training, record, turns)
        loss = loss_facts(record, training.view(turns[0]), training.label_of(turns[0]))
    training.reset()
    facts = forward, loss, gradients
    return facts if slow and record.failure is None else _further(training, record, facts, turns)


def _forward(training: LoopTraining, record: StepRecord, turns: Sequence[Turn]) -> ForwardFacts:
    model, seen = training.model, training.seen
    alone = len(training.parts.roots) == 1 and training.parts.roots[0] is model
    facts = forward_facts(record, model, _probe(training, turns) if alone else None, _fresh(training))
    parameters = with_origins(facts.parameters, model, seen.frozen_at, {})
    return replace(facts, parameters=parameters)


def _probe(training: LoopTraining, turns: Sequence[Turn]) -> Probe:
    views = [training.view(turn) for turn in turns]
    key = training.label_key(views[0])
    # Only the loss received it, even if the model would take labels, too.
    own = key == "labels" and (training.labels_of_loss or key not in _parameters_of(training.model))
    given = [{k: v for k, v in view.items() if not (own and k == key)} for view in views]
    return Probe(
        model=training.model,
        inputs=given[0],
        other=given[1] if len(given) > 1 else None,
        vocabulary=vocabulary_of(training.model),
        pad_id=getattr(training.tokenizer(), "pad_token_id", None),
        label_keys=tuple(dict.fromkeys([*([key] if key else []), "labels", "label", "label_ids"])),
        met_rows=_rows_to_come(training),
        repairs=training.active.all,
        batch_size=(training.loaders[0].batch_size or 0) if training.loaders else 0,
    )


def _rows_to_come(training: LoopTraining) -> dict[str, tuple[int, bool]]:
    """Other batch sizes that training and evaluation will have, and whether in training mode."""
    if training.arguments.dataloader_drop_last:
        return {}
    found = {}
    for name, loader in [
        ("training", training.loaders[0] if training.loaders else None),
        *training.evaluation_loaders(),
    ]:
        rows, size = length(getattr(loader, "dataset", None)), getattr(loader, "batch_size", None)
        if rows and size and not loader.drop_last:
            found[f"the last {name} batch"] = (rows % size, name == "training")
    return found


def _fresh(training: LoopTraining) -> frozenset[str] | None:
    """Names of the parameters that no checkpoint contained; None if none was loaded."""
    known = {n: training.seen.is_fresh(training.model, n, p) for n, p in training.model.named_parameters()}
    return None if None in known.values() else frozenset(n for n, is_fresh in known.items() if is_fresh)


def _parameters_of(module: nn.Module) -> Sequence[str]:
    return accepted_names(module)[0]


def _carried(training: LoopTraining, turn: Turn) -> Iterator[KeptTensor]:
    """Loop variables whose graph makes the second step fail: without the graph, the step succeeds."""
    training.reset()
    training.observe(turn)
    variables = training.body.variables()
    names = [n for n, v in variables.items() if any(t.grad_fn is not None for t in tensors_in([v]))]
    for name in names:
        training.reset()
        training.observe(turn)
        variables[name] = tensors.detached(variables[name])
        if training.observe(turn)[0].failure is None:
            yield KeptTensor(
                name=name,
                where=training.body.place_of_variable(name),
                several=not isinstance(variables[name], torch.Tensor),
            )


def _tried(training: LoopTraining, turn: Turn, facts: GradientFacts) -> Iterator[CutOff]:
    """The cuts; if several may block gradients, each with the result of a step without it."""
    lost = {g.name for g in facts.without}
    suspects = [c for c in facts.cuts if lost & set(c.upstream)]
    for cut in facts.cuts:
        repair = cut.left_out()
        if len(suspects) < 2 or repair is None or cut not in suspects[:MOST_SUSPECTS]:
            yield cut
            continue
        training.reset()
        training.active.tried = [repair]
        try:
            training.observe(turn)
        finally:
            training.active.tried = []
        reached = {n for n, p in training.model.named_parameters() if p.grad is not None}
        yield replace(cut, restores=bool(reached & lost))


def _frozen(training: LoopTraining, turn: Turn) -> tuple[str, ...]:
    """The parameters whose requires_grad a step turns off and does not restore."""
    training.reset()
    before = {n for n, p in training.model.named_parameters() if p.requires_grad}
    training.observe(turn)
    return tuple(n for n, p in training.model.named_parameters() if n in before and not p.requires_grad)


def _waiting(training: LoopTraining, passed: Passed) -> set[str]:
    """Parameters of optimizers that step less often than others, and not this time."""
    if not passed.optimizers:
        return set()
    others = [o for o in training.optimizers if not any(o is s for s in passed.optimizers)]
    held = {id(p) for o in others for g in o.param_groups for p in g["params"]}
    held -= {id(p) for o in passed.optimizers for g in o.param_groups for p in g["params"]}
    return {n for n, p in training.model.named_parameters() if id(p) in held}


def _gradients(training: LoopTraining, record: StepRecord, passed: Passed, watch: GraphWatch) -> GradientFacts | None:
    facts = gradient_facts(record, training.model, training.seen.modules.get, None, training.window)
    if facts is None:
        return None
    waiting = _waiting(training, passed)
    facts = replace(facts, gradients=tuple(g for g in facts.gradients if g.name not in waiting))
    owners = {n: v for n, v in training.scope.items() if hasattr(v, "__dict__") and not isinstance(v, nn.Module)}
    facts = graph_facts(facts, watch, training.model, owners, training.seen.modules.get)
    wiped = tuple(n for n, p in training.model.named_parameters() if id(p) in passed.wiped)
    passes, at = cleared_between(passed)
    is_idle = training.body.steps and not {"backward", "step"} & set(training.parts.passed.calls)
    return replace(
        facts,
        idle_rounds=LONGEST_WINDOW if is_idle else 0,
        cuts=cuts_of_their_step(facts, training.model, passed),
        wiped=wiped,
        wiped_passes=passes,
        wiped_at=passed.wiped_at or at,
    )


def _loss_scale(training: LoopTraining) -> float | None:
    """The scale of the script's gradient scaler."""
    scalers = [s for s in scalers_of(training.scope.values()) if s.is_enabled()]
    return float(scalers[0].get_scale()) if len(scalers) == 1 else None


def _further(training: LoopTraining, record: StepRecord, facts: StepFacts, turns: Sequence[Turn]) -> StepFacts:
    """The facts with the results of further steps, each from the initial weights."""
    forward, loss, gradients = facts
    if forward.fails_at_rows is not None:  # the step may prepare the model for each batch: a state for its rows, a mask
        step = step_on_rows(training, range(forward.fails_at_rows))
        forward = forward.with_any_rows() if step is None or not step.failure else forward
    if loss is not None:
        with training.ready(0):
            loss = further_losses(loss, gradients, training, turns, record)
        training.reset()
    if gradients is not None:
        with training.ready(0):
            gradients = replace(gradients, cuts=tuple(_tried(training, turns[0], gradients)))
        training.reset()
        with training.ready(0):
            if any(r.seam == Seam.OPTIMIZER for r in training.active.all):
                training.build_optimizer()
            gradients = replace(
                gradients, window_changes=changes_of_window(training, turns), loss_scale=_loss_scale(training)
            )
        training.reset()
        with training.ready(0):
            gradients = further_steps(gradients, training, training.take(POOLED, seed=0))
            if gradients.second_failure is not None and not gradients.kept:
                gradients = replace(
                    gradients, kept=tuple(_carried(training, turns[0])), frozen_by_step=_frozen(training, turns[0])
                )
        training.reset()
    if record.failure is None:
        with training.ready(0):
            again = functools.partial(training.gradients_of, turns[-1])
            forward = replace(forward, parameters=stay_identical(forward.parameters, training.model, again))
        training.reset()
    return forward, loss, gradients


__all__ = ["StepFacts", "measure_step"]
