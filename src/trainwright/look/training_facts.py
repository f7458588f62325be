"""The facts of a training that its update and its further course show: setup, optimizer, schedule, batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trainwright.adapters.torch.batches import batch_facts, several_batches_facts
from trainwright.adapters.torch.collation import collator_facts
from trainwright.adapters.torch.optimizer import optimizer_facts, peak_rates, schedule_facts
from trainwright.look.facts import set_fields
from trainwright.look.sets import note_sets
from trainwright.look.state import Look, Trainings
from trainwright.probes.forward import units_equal
from trainwright.seams.listening.seen import seen
from trainwright.seams.source.special_methods import misspelled_methods, user_scopes
from trainwright.seams.source.undefined_names import undefined_names
from trainwright.stages import BatchFacts, ForwardFacts, OptimizerFacts, SetupFacts
from trainwright.tensors.items import length
from trainwright.tensors.torch import objects as tensors

# Points of a schedule that are kept.
POINTS = 200


def measure_update(look: Look, looking: Trainings, *, is_made: bool = True) -> None:
    """Right after the first update: what it moved, and the training's parts, while the script still has their names.

    Args:
        is_made: False: the script stopped before it.
    """
    optimizers = look.passed.optimizers or looking.optimizers.list_live()
    look.facts[SetupFacts] = replace(
        looking.kind.measure_setup(look, optimizers, _schedules(look)),
        misspelled=misspelled_methods(user_scopes(), seen().modules),
        undefined=undefined_names(),
    )
    look.batches = length(look.loader) or 0
    _measure_batch(look, looking)
    note_sets(look, looking)
    measured, kind = look.measured, looking.kind
    look.kind = kind if kind.is_asked_again else look.kind
    if measured is None or not is_made:
        return
    own = [o for o in measured.optimizers if o.param_groups]
    look.facts[OptimizerFacts] = optimizer_facts(
        own,
        look.model,
        look.before,
        user_built=kind.had_optimizer,
        schedule_first=_is_schedule_first(measured.passed.calls) or look.is_schedule_first,
        rate_given=kind.is_rate_written(own),
        rate_position=seen().position_given(own[0], "lr") if own else None,
    )
    look.scope, look.before = {}, {}


def _is_schedule_first(calls: Sequence[str]) -> bool:
    """Whether the schedule is stepped before the optimizer; not where each micro-batch steps it, and the update is behind the last."""
    before = calls[: calls.index("step")] if "step" in calls else calls
    return before.count("schedule") >= max(1, before.count("backward"))


def _measure_batch(look: Look, looking: Trainings) -> None:
    measured = look.measured
    if measured is None or not look.inputs:
        return
    view, key = measured.view, measured.key
    measured.tokenizer = looking.kind.find_tokenizer(look.scope)
    formed = collator_facts(look.items, view) if look.items is not None else {}
    further = {**formed, **looking.kind.find_row_changes()}
    look.facts[BatchFacts] = batch_facts(view, key, look.roots[0], look.model, measured.tokenizer, **further)


def add_further_batches(look: Look) -> None:
    """What further batches have shown, while the model is still held."""
    facts, measured = look.facts, look.measured
    if measured is None:
        return
    if look.updates > 1 and isinstance(forward := facts.get(ForwardFacts), ForwardFacts):
        same = {name: units_equal(tensors.to_numpy(p), 0) for name, p in measured.suspects.items()}
        parameters = tuple(
            replace(p, identical_after_steps=same[p.name]) if p.name in same else p for p in forward.parameters
        )
        set_fields(facts, ForwardFacts, parameters=parameters)
    views = [measured.view, *(view for view in look.views if set(view) == set(measured.view))]
    set_fields(facts, BatchFacts, **several_batches_facts(views, measured.key, look.model, measured.tokenizer))
    schedules = _schedules(look)
    if schedules:
        set_fields(facts, OptimizerFacts, **schedule_facts(schedules[0], look.schedule_steps))


def _schedules(look: Look) -> list[Any]:
    """The schedules of the training's optimizers."""
    measured = look.measured
    optimizers = measured.optimizers if measured is not None else []
    own = {id(getattr(o, "optimizer", o)) for o in optimizers}
    known = [*look.schedules, *(s for s in seen().schedules if not any(s is one for one in look.schedules))]
    scheduled = ((s, getattr(s, "optimizer", None)) for s in known)
    return [s for s, optimizer in scheduled if id(getattr(optimizer, "optimizer", optimizer)) in own]


def add_end(look: Look, looking: Trainings, *, is_ended: bool) -> None:
    """What the rest of the training has shown. A rule on a whole schedule may only speak where all planned updates were seen."""
    add_further_batches(look)
    facts, rates = look.facts, look.rates
    look.planned_updates = looking.watched.count_planned(looking.number) if looking.watched is not None else None
    if look.planned_updates is None and is_ended:  # a loop that has come to its end has made them
        look.planned_updates = look.updates
    if look.lost:
        set_fields(facts, ForwardFacts, lost_modules=look.lost, mode_lost_at=look.lost_at)
    optimizer = facts.get(OptimizerFacts)
    if not isinstance(optimizer, OptimizerFacts):
        return
    first = next((one for ref in look.optimizers[:1] if (one := ref()) is not None), None)
    peak = max([*rates, *(peak_rates(first) if first is not None else ())], default=0.0)
    planned = look.planned_updates
    if planned and look.batches:
        set_fields(facts, SetupFacts, epochs=planned * look.draws / look.batches, planned_updates=planned)
    has_schedule, seen_rates = bool(optimizer.schedule_kind), len(rates)
    if has_schedule and planned and look.updates == len(rates):
        rates = looking.kind.continue_rates(rates, planned)
    every = max(1, len(rates) // POINTS)
    is_whole = bool(has_schedule and planned and len(rates) >= planned and peak)
    set_fields(
        facts,
        OptimizerFacts,
        planned_updates=planned,
        update_rate=rates[0] if rates and rates[0] != peak else None,
        warmup_updates=looking.kind.count_warmup(planned) if planned else None,
        learning_rate=max(peak, optimizer.learning_rate),
        schedule=tuple((i, rate / peak) for i, rate in enumerate(rates) if i % every == 0) if is_whole else (),
        schedule_seen=seen_rates,
        schedule_given=has_schedule and looking.kind.had_schedule,
        schedule_steps=look.schedule_steps if is_ended and has_schedule else None,
    )
