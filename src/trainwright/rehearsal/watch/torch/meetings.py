"""Outputs that meet their labels: read into answers, once it is known whether they were trained on."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from trainwright.core import Call, Seam
from trainwright.rehearsal.listener import LISTENING
from trainwright.rehearsal.record import Answers, LabelKind, Output, PairSource
from trainwright.rehearsal.recorder import EACH
from trainwright.rehearsal.watch.torch.passes import batch_with, pass_of
from trainwright.rehearsal.watch.torch.reading import Meeting, flat_rows, shape_of, values_of
from trainwright.rehearsal.watch.torch.rows import offer_rows, read_rows
from trainwright.rehearsal.watch.torch.state import OuterCall, WatchState, storage_of
from trainwright.seams.failures.blame import tolerated
from trainwright.tensors.torch import objects as tensors

# Meetings that wait for `backward`, the values of their outputs, and the nodes of the graph that are looked at for each.
MOST_PENDING, MOST_PENDING_VALUES, MOST_NODES = 1000, 50_000_000, 200
# Values of evaluated rows' inputs that are kept in all.
MOST_KEPT_INPUTS = 20_000_000
# Different outputs of one call; beyond them they are positions of a sequence.
MOST_OUTPUTS = 8
# Below this share for its first class, a label of several classes is a mixture of rows.
MIXED = 0.8
# What takes a difference that is no residual: the mean of two terms of a density, an exponential of log probabilities.
_TERM = re.compile(r"(Mean|Sum|Neg|Add|Sub|Rsub|Exp)Backward")
# Labels that are gathered before they are counted.
GATHERED, GATHERED_VALUES = 64, 250_000


class Meetings:
    """Reads meetings into the record."""

    def __init__(self, state: WatchState) -> None:
        self.state = state
        self.pending: list[Meeting] = []
        """Those with a graph, until `backward` tells which it goes through."""
        self._pending_values = 0
        self._labels: dict[Output, list[tuple[Any, int]]] = {}
        self._kept_inputs = 0
        self._reads: dict[Output, tuple[int, int]] = {}

    def add(self, meeting: Meeting) -> None:
        """Take a meeting: read it now if it is one of an evaluation, otherwise wait for `backward`."""
        if meeting.node is None:
            self._evaluate(meeting)
        else:
            self.pending.append(meeting)
            self._pending_values += meeting.output.numel()
            is_large = len(self.pending) > 1 and self._pending_values > MOST_PENDING_VALUES
            if is_large or len(self.pending) > MOST_PENDING:
                oldest = self.pending.pop(0)
                self._pending_values -= oldest.output.numel()
                if oldest.call is not None and not oldest.call.is_training:
                    self._evaluate(oldest)  # of the others, nobody knows whether backward would have followed

    def settle(self, roots: list[Any], is_whole: bool = True) -> None:
        """`backward` is called: what it goes through is trained on. The rest waits: its own `backward` may follow.

        Args:
            is_whole: whether the roots are losses; what `torch.autograd.grad` is called on need not be.
        """
        if not self.pending:
            return
        found = _reached(roots, {m.node for m in self.pending if m.node is not None})
        if not found and not is_whole:
            return
        self.pending = [
            m for m in self.pending if m.source != PairSource.DIFFERENCE or not _TERM.match(found.get(m.node or 0, ""))
        ]
        chosen = [m for m in self.pending if m.node in found or not found]
        calls = {id(m.call) for m in chosen if m.call is not None}
        with_loss = {id(m.call) for m in chosen if m.call is not None and m.source == PairSource.LOSS}
        pending = self._take_pending()
        for meeting in pending:
            if meeting in chosen:
                differs = meeting.source == PairSource.DIFFERENCE and id(meeting.call) not in with_loss
                if meeting.source == PairSource.LOSS or differs:
                    self.train(meeting)
            elif meeting.source == PairSource.LOSS or id(meeting.call) not in calls:
                self.pending.append(meeting)
        self._pending_values = sum(m.output.numel() for m in self.pending)

    def note_trained_sets(self, roots: list[Any]) -> None:
        """`backward` is called: the sets behind the answers that it goes through are trained on, whatever the loss."""
        for call in self.state.recent if self.state.due else ():
            drawn = call.batch.drawn if call.batch is not None else None
            if drawn is not None and not drawn.trains and call.grads and _reached(roots, set(call.nodes)):
                drawn.trains = True

    def leave(self, held: set[int]) -> None:
        """An optimizer that holds these weights steps: outputs of theirs that no `backward` went through were evaluated."""
        if not self.pending:
            return
        for meeting in self._take_pending():
            module = meeting.call.model.ref() if meeting.call is not None else None
            if meeting.call is not None and meeting.call.is_trained_on:
                continue
            is_held = module is not None and any(id(p) in held for p in module.parameters())
            if is_held or meeting.update + 1 < self.state.update:
                self._evaluate(meeting)
            else:
                self.pending.append(meeting)
        self._pending_values = sum(m.output.numel() for m in self.pending)

    def finish(self) -> None:
        """Read what waits: at the end of a training, and of the run."""
        for meeting in self._take_pending():
            self._evaluate(meeting)
        self.count_labels()

    def _take_pending(self) -> list[Meeting]:
        pending, self.pending, self._pending_values = self.pending, [], 0
        return pending

    def train(self, meeting: Meeting) -> None:
        """Take a meeting that is trained on."""
        output = self._output(meeting)
        if output is None:
            return
        self.state.forms[output] = meeting.form
        if meeting.call is not None:
            meeting.call.is_trained_on = True
        self._learn_column(output, meeting)
        meeting = self._with_mended_labels(meeting)
        self._gather(output, meeting.target, meeting.ignored)
        if meeting.call is not None and meeting.call.batch is not None and meeting.call.batch.drawn is not None:
            meeting.call.batch.drawn.trains = True
        count, last = self._reads.get(output, (0, -1))
        if self.state.due and (count < EACH or last != meeting.update):  # later on, one call of an update
            self._reads[output] = count + 1, meeting.update
            self._note_mixed(output, meeting)
            self._keep(meeting, True, output)

    def count(self, form: str, answer: Any, target: Any, ignored: int) -> None:
        """Count the labels of a training call that is not looked at, where the model has one such output only."""
        output = shape_of(form, answer)
        if output is not None and self.state.forms.get(output) == form:
            if replace(output, number=1) not in self.state.forms:
                self._gather(output, target, ignored)

    def _evaluate(self, meeting: Meeting) -> None:
        if meeting.call is not None and meeting.call.made is None:
            pass_of(self.state, meeting.call, labelled=True)
        output = self._output(meeting)
        if output is None or (meeting.call is not None and output in meeting.call.answered):
            return
        if meeting.call is not None:
            meeting.call.answered.add(output)
        if meeting.call is None or meeting.call.made is None or self.state.recorder.is_due(meeting.call.made.calls):
            self._keep(self._with_mended_labels(meeting), False, output)

    def _with_mended_labels(self, meeting: Meeting) -> Meeting:
        """The meeting, with its classes numbered as the loss takes them where a repair in force renumbers them."""
        trainings = self.state.recorder.record.trainings
        if meeting.form != "classes" or max(1, LISTENING.repaired_training) != (
            trainings[-1].number if trainings else 1
        ):
            return meeting
        for repair in LISTENING.repairs:
            given = {"logits": meeting.output, "targets": meeting.target, "function": "cross_entropy", "number": 0}
            if repair.seam != Seam.LOSS:
                continue
            with tolerated():
                taken = repair.change(Call(seam=Seam.LOSS, given=given, tensors=tensors)).given
                targets = taken["targets"]
                is_form_kept = (targets.shape, targets.dtype) == (meeting.target.shape, meeting.target.dtype)
                if is_form_kept and taken["logits"] is meeting.output and taken["function"] == given["function"]:
                    meeting = replace(meeting, target=targets)
        return meeting

    def _output(self, meeting: Meeting) -> Output | None:
        """Which output it is; None where output and labels have no shapes that fit each other."""
        found, call = shape_of(meeting.form, meeting.output), meeting.call
        if found is None or call is None:
            return found
        kind, width = found.kind, found.width
        place = meeting.output.data_ptr(), meeting.target.data_ptr()
        known = next((o for at, _, o in call.met if at == place[0] and (o.kind, o.width) == (kind, width)), None)
        if known is not None:
            if meeting.node is not None and all(t != place[1] for at, t, _ in call.met if at == place[0]):
                self.state.recorder.record.several_targets += 1
            call.met.append((*place, known))
            return known
        slots = call.model.slots.setdefault((str(kind), width), [])
        slot = _slot(call, meeting.output)
        if slot is None:  # a copy: told apart by the order in which they come
            slot = len({o.number for _, _, o in call.met if (o.kind, o.width) == (kind, width)})
            slot = slots[slot] if slot < len(slots) else ("copy", slot)
        if slot not in slots and len(slots) < MOST_OUTPUTS:
            slots.append(slot)
        output = Output(kind, width, slots.index(slot) if slot in slots else 0)
        call.met.append((*place, output))
        return output

    def _learn_column(self, output: Output, meeting: Meeting) -> None:
        """Note which column of the loader's batches holds these labels."""
        call = meeting.call
        if output in self.state.labels or call is None or call.batch is None:
            return
        target = meeting.target
        for name, held in call.batch.columns.items():
            column = held.get()
            if column is None or column.numel() != target.numel():
                continue
            if held.storage == storage_of(target) or (
                self.state.due and bool((column.reshape(-1).cpu().double() == target.reshape(-1).cpu().double()).all())
            ):
                self.state.labels[output] = name
                return

    def _note_mixed(self, output: Output, meeting: Meeting) -> None:
        target = meeting.target
        if output.kind == LabelKind.CLASSES and target.is_floating_point() and target.shape == meeting.output.shape:
            if bool((target.amax(1 if target.dim() > 1 else 0) < MIXED).any()):
                self.state.recorder.record.several_targets += 1

    def _gather(self, output: Output, target: Any, ignored: int) -> None:
        """Keep the labels of a training call, to be counted later."""
        if output.kind == LabelKind.CLASSES and target.is_floating_point():
            target = target.argmax(1 if target.dim() > 1 else 0)
        kept = self._labels.setdefault(output, [])
        kept.append((target.clone(), ignored))
        if len(kept) >= GATHERED or target.numel() * len(kept) > GATHERED_VALUES:
            self._count(output)

    def count_labels(self) -> None:
        """Count the labels that were gathered."""
        for output in list(self._labels):
            self._count(output)

    def _count(self, output: Output) -> None:
        by_shape: dict[Any, list[Any]] = {}
        for target, ignored in self._labels.pop(output):
            flat = target.reshape(-1) if output.kind == LabelKind.CLASSES else flat_rows(target, output.width)
            if flat is not None:
                by_shape.setdefault((flat.device, flat.dtype, flat.shape[1:], ignored), []).append(flat)
        for (_, _, _, ignored), many in by_shape.items():
            labels = torch.cat(many).cpu().numpy()
            if output.kind == LabelKind.CLASSES:
                labels = labels[(labels >= 0) & (labels != ignored)]
            with np.errstate(all="ignore"):
                self.state.recorder.count_labels(output, labels)

    def _keep(self, meeting: Meeting, trains: bool, output: Output) -> None:
        with torch.no_grad(), np.errstate(all="ignore"):
            found = values_of(meeting, output)
            if found is None:
                record, shapes = self.state.recorder.record, (tuple(meeting.output.shape), tuple(meeting.target.shape))
                record.widened = record.widened or shapes
                return
            index, total, values = found
            if len(index):
                answers = self._answers(meeting, output, trains, index, total, values)
                self.state.recorder.add_answers(answers)
                offer_rows(self.state.recorder, meeting, answers, index // answers.per_row, answers.per_row)

    def _answers(self, meeting: Meeting, output: Output, trains: bool, index: Any, total: int, values: Any) -> Answers:
        call, per_row = meeting.call, values["per_row"]
        keys = inputs = numbers = None
        rows = index // per_row
        if call is not None and len(index) and int(rows.max()) < call.rows and call.rows * per_row >= total:
            is_whole = int(np.prod(meeting.target.shape[:1])) in (call.rows, call.rows * per_row)
            keys, inputs = read_rows(call) if per_row == 1 and is_whole else (None, None)
            keys = keys[rows] if keys is not None else None
            if inputs is not None:
                self._kept_inputs += 0 if trains else len(rows) * inputs.shape[1]
                inputs = inputs[rows] if self._kept_inputs < MOST_KEPT_INPUTS else None
            batch = batch_with(self.state, call)
            if is_whole and batch is not None and batch.numbers is not None and len(batch.numbers) == call.rows:
                numbers = np.array(batch.numbers, dtype=np.int64)[rows]
        drawn = call.batch.drawn if call is not None and call.batch is not None else None
        value = meeting.value
        return Answers(
            output=output,
            update=meeting.update,
            trains=trains,
            keys=keys,
            numbers=numbers,
            inputs=inputs,
            total=total,
            model=call.model.number if call is not None else 0,
            evaluation=call.made.number if call is not None and call.made is not None and not trains else None,
            data=drawn.data if drawn is not None else 0,
            source=meeting.source,
            loss=float(value) if value is not None else None,
            is_noisy=call is not None and call.is_noisy,
            **values,
        )


def _slot(call: OuterCall, tensor: Any) -> Any:
    """Where in the call's result a tensor lies; None where it is a copy."""
    storage = storage_of(tensor)
    for path, held in call.outputs:
        if held.storage != storage:
            continue
        if len(held.shape) < 2 or not tensor.dim():
            return path
        per_row = int(np.prod(held.shape[1:], dtype=np.int64))
        own = int(np.prod(tensor.shape[1:], dtype=np.int64))
        if per_row // max(1, own) > MOST_OUTPUTS:
            return path
        return path, int(tensor.storage_offset()) % per_row
    return None


def _reached(roots: list[Any], wanted: set[int]) -> dict[int, str]:
    """Which of the wanted nodes of the graph lie near the roots, each with the name of the node that takes its result."""
    todo = deque((root.grad_fn, "") for root in roots if root.grad_fn is not None)
    found: dict[int, str] = {}
    seen = 0
    while todo and seen < MOST_NODES * len(wanted) and len(found) < len(wanted):
        node, taker = todo.popleft()
        seen += 1
        number = getattr(node, "_sequence_nr", lambda: None)()
        if number in wanted:
            found[number] = taker
            continue
        name = type(node).__name__
        todo.extend((inner, name) for inner, _ in getattr(node, "next_functions", ()) if inner is not None)
    return found
