"""The sets of a training: which they are is noted at its first update, and their rows are read behind the run.

What the script has left of them is read in its own process, within a few seconds. A set that cannot be read any more, that
gives other rows than in the run, or whose rows come too slowly, is not read: then nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, default_collate

from trainwright.adapters.data.measured_sets import ReadSets, measure_sets
from trainwright.adapters.data.odd_rows import MOST_ROWS, Items, RowStep, Step, try_rows_of
from trainwright.adapters.data.reading import as_mapping, read_split
from trainwright.adapters.torch.loaders import is_shuffling, loader_places, sampler_weights
from trainwright.adapters.torch.vocabulary import checkpoint_of, vocabulary_facts
from trainwright.core import Facts, Place
from trainwright.frameworks.label_names import USUAL
from trainwright.look.facts import set_fields
from trainwright.look.of_loop import LoopTraining, is_tokenizer
from trainwright.look.replay import Replay
from trainwright.look.row_form import find_cut, find_mispaired, is_equal, names_of_items, rename_columns
from trainwright.look.sliced_rows import LoaderlessPass, Sliced, find_arrays, find_evaluated, set_of
from trainwright.look.state import GivenBatch, Look, Sets, Trainings
from trainwright.probes.splits.labels import batch_order
from trainwright.seams.failures.blame import is_own, passed_on
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.seams.listening.hearing import silenced
from trainwright.seams.listening.seen import quiet, seen
from trainwright.seams.loops.found_loops import has_attributes
from trainwright.seams.state.snapshot import RandomState
from trainwright.stages import BatchFacts, DatasetFacts, OddRowFacts, SetupFacts, Split, SplitFacts
from trainwright.tensors.items import length, reader_of

# For reading the items of one set; for steps on its extreme rows; and for all that is read and measured of a training's sets.
READING_SECONDS, ROW_SECONDS, MOST_SECONDS = 2.0, 3.0, 20.0
UNREAD = DatasetFacts(train=SplitFacts(name="train", rows=None, kind="none"))
# The roles of an evaluation loader's lines.
_HELD_ROLES = {"train_dataset": "eval_dataset", "train_dataset_made": "eval_dataset_made"}


def note_sets(look: Look, looking: Trainings) -> None:
    """Note the set of the batch that the first step was made with; of a step without a loader's batch, none."""
    measured, kind = look.measured, looking.kind
    if measured is None or looking.watched is None:
        return
    view, key = measured.view, measured.key
    matched = [(names_of_items(one.columns, view), one) for one in looking.watched.list_given()]
    placed, given = max(matched, key=lambda pair: len(pair[0]), default=({}, None))
    if given is not None and not placed and (given.loader is None or given.loader is not look.loader):
        given = None
    sliced = find_arrays(view, key, look.scope) if given is None and not kind.is_asked_again else None
    drawn = length(getattr(look.loader, "dataset", None)) or 0
    if sliced is not None and len(view[str(key)]) == len(next(iter(sliced.columns.values()))) < drawn:
        sliced = None  # what the script made of a loader's batch, and no set
    if sliced is not None:
        given, placed = _give_rows(sliced), {str(number): name for number, name in enumerate(sliced.columns)}
    if given is None:
        return
    checkpoint = checkpoint_of(look.roots[0]) if look.roots else ""
    if (own := kind.form_sets(look.scope)) is not None:
        look.sets = replace(own, given=given, placed=placed, checkpoint=checkpoint)
        return
    labels, loader = view.get(key) if key else None, given.loader
    look.sets = Sets(
        kind=LoopTraining(),  # what the framework knows of its sets, others are asked
        data=given.data,
        label_names=USUAL if key is None else (key,) if placed and not given.is_mapping else (key, *USUAL),
        scope=list_data(look.scope),
        tokenizer=measured.tokenizer,
        checkpoint=checkpoint,
        batch_size=getattr(loader, "batch_size", None) or 0,
        drops_last=bool(getattr(loader, "drop_last", False)),
        places=setup.places if isinstance(setup := look.facts.get(SetupFacts), SetupFacts) else {},
        given=given,
        placed=placed,
        cut=find_cut(given.columns, key, labels, placed) if not given.is_mapping else None,
        sliced=sliced,
        watched=looking.watched,
        training=look.training,
        mispaired=find_mispaired(list(given.columns.values()), view, labels, look.step),
    )


def _give_rows(sliced: Sliced) -> GivenBatch:
    """The rows of the first batch that were looked up in the arrays, as a loader of them would give them."""
    rows = set_of(sliced.columns, sliced)
    columns = {str(number): rows.tensors[number][list(sliced.at)].clone() for number in range(len(sliced.columns))}
    return GivenBatch(columns=columns, is_mapping=False, numbers=sliced.at, data=rows, loader=None)


def places_of_held(loader: Any) -> dict[str, Place]:
    """The lines of an evaluation loader, by their roles; none if it is not known."""
    places = loader_places(loader, seen()) if loader is not None else {}
    return {_HELD_ROLES[role]: place for role, place in places.items() if role in _HELD_ROLES}


def list_data(scope: Mapping[str, Any]) -> dict[str, Any]:
    """The script's tables, lists and texts, and what reads these."""
    return {name: value for name, value in scope.items() if _is_data(value)}


def _is_data(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.grad_fn is None
    is_part = isinstance(value, (nn.Module, DataLoader)) or has_attributes(type(value), "__next__")
    return not is_part and (has_attributes(type(value), "__len__") or is_tokenizer(value))


def add_sets(
    facts: dict[type[Facts], Facts], sets: Sets | None, replay: Replay | None, *, is_end: bool = False
) -> None:
    """Read the sets, and add their facts to those of the training.

    Args:
        replay: makes the training's first step again; None: it cannot be made.
        is_end: the facts are of what ended the run: rows may have.
    """
    random = RandomState()
    facts.setdefault(DatasetFacts, UNREAD)
    try:
        with stopped_after(MOST_SECONDS), quiet(), silenced():
            if sets is not None:
                _add(facts, sets, replay, is_end=is_end)
    except OutOfTime:
        pass
    except Exception as error:  # the script's: its set may not be readable any more
        if is_own(error, measuring=True):
            raise
    finally:
        random.put_back()


def _add(facts: dict[type[Facts], Facts], sets: Sets, replay: Replay | None, *, is_end: bool) -> None:
    given, train = sets.given, _read("train", sets.data, sets)
    if train is None or (given is not None and _is_changed(given)):
        return
    cut_rows = _find_evaluated(sets)
    evaluated = ((_read("evaluation", data, sets), data, at) for data, at, is_held in sets.held if is_held())
    held, held_data, places = next((one for one in evaluated if one[0] is not None), (None, None, {}))
    first = next(iter(train.items), {})
    labels, positions = sets.label_names, [name for name in first if name.isdigit()]
    if labels == USUAL and not set(labels) & set(first) and len(first) > 1:
        labels = positions[-1:]
    loader = given.loader if given is not None else None
    steps = sets.kind.find_steps(replay, sets.placed, getattr(loader, "collate_fn", default_collate))
    # A Trainer's loader reads other columns of the same rows.
    read_by = {"train": given.data if given is not None else sets.data, "evaluation": held_data}
    found = measure_sets(
        ReadSets(
            train=train,
            held=held,
            data={"train": sets.data, "evaluation": held_data},
            label_names=labels,
            accepts=sets.accepts if sets.accepts is not None else [k for k in first if k not in labels],
            scope=sets.scope,
            tokenizer=sets.tokenizer,
            batch_size=sets.batch_size,
            step_on=lambda one: _steps_on(read_by[one.name], steps.of_items),
        )
    )
    if sets.sliced is not None and sets.watched is not None:
        found = replace(found, batch_order=batch_order(sets.watched.list_labels(sets.training)))
    if cut_rows is not None and held is not None:
        own: dict[str, Any] = (
            {"overlap": 0, "overlap_rows": (), "copies": None} if not cut_rows.is_trained_on.any() else {}
        )
        found = replace(found, evaluation_place=cut_rows.where, **own)
    facts[DatasetFacts] = found = replace(
        found,
        mispaired=sets.mispaired,
        sampler_weights=sampler_weights(loader, train, found.train),
        shuffles=is_shuffling(loader),
        drops_last=sets.drops_last,
        label_place=sets.kind.place_labels(labelled.column) if (labelled := found.train.labels) is not None else None,
    )
    _add_vocabulary(facts, sets, train)
    if isinstance(setup := facts.get(SetupFacts), SetupFacts):
        set_fields(facts, SetupFacts, places={**sets.places, **places, **setup.places})
    data = given.data if given is not None else sets.data if sets.kind.is_asked_again else None
    if is_end and length(data) is not None:
        size = sets.batch_size or MOST_ROWS
        reading, bad = try_rows_of(data, found.train, steps.of_items, ROW_SECONDS, size)
        facts[OddRowFacts] = OddRowFacts(readings={"train": reading}, bad=tuple(bad))


def _add_vocabulary(facts: dict[type[Facts], Facts], sets: Sets, train: Split) -> None:
    """Whether the rows' tokens are the tokenizer's; of several in a loop, it is not known which has made them."""
    known = {id(value) for value in sets.scope.values() if is_tokenizer(value) and not isinstance(value, type)}
    several = len(known) > 1
    batch = facts.get(BatchFacts)
    if sets.tokenizer is None or not isinstance(batch, BatchFacts) or (several and not sets.kind.is_asked_again):
        return
    found = vocabulary_facts(train.items, sets.tokenizer, sets.checkpoint, batch.vocabulary)
    set_fields(facts, BatchFacts, vocabulary_facts=found)


def _steps_on(data: Any, step: Callable[[Items], RowStep | None]) -> Step:
    """Steps on rows of a set."""
    return lambda rows: step(Items(data, rows)) if data is not None else None


def _find_evaluated(sets: Sets) -> LoaderlessPass | None:
    """The rows that a training without a loader is evaluated on, which are added to its sets."""
    if sets.sliced is None or sets.watched is None:
        return None
    key = sets.label_names[0]
    found = find_evaluated(sets.watched.list_evaluated(sets.training), sets.sliced, key, sets.scope)
    if found is not None:
        columns = {name: found.labels if name == key else found.rows for name in sets.sliced.columns}
        sets.held.append((set_of(columns, sets.sliced), {}, lambda: True))
    return found


def _read(name: str, data: Any, sets: Sets) -> Split | None:
    """A set with its columns named as in the step; None where it cannot be read any more."""
    if data is None:
        return None
    split = read_split(name, data, seconds=READING_SECONDS)
    if split.failure is not None or not split.items:
        return None
    split = rename_columns(split, sets.names)
    return sets.cut.apply(split) if sets.cut is not None else split


def _is_changed(given: GivenBatch) -> bool:
    """Whether a set gives other rows for the first batch than it gave then, although it gives the same ones each time."""
    if not given.numbers or length(given.data) is None:
        return False
    collate = getattr(given.loader, "collate_fn", default_collate)
    first, second = (
        as_mapping(passed_on(collate, [reader_of(given.data)(row) for row in given.numbers])) for _ in range(2)
    )
    known = [n for n in given.columns if isinstance(first.get(n), torch.Tensor)]
    is_fixed = all(is_equal(first[n], second.get(n)) for n in known)
    return is_fixed and not all(is_equal(first[n], given.columns[n]) for n in known)
