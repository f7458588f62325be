"""Labels that no loss function is given: a choice is compared with them, they are subtracted from an output, or nothing but the
loader's batch shows them."""

from __future__ import annotations

from typing import Any

import torch

from trainwright.rehearsal.record import LabelKind, Output, PairSource
from trainwright.rehearsal.watch.torch.meetings import Meetings
from trainwright.rehearsal.watch.torch.passes import call_of
from trainwright.rehearsal.watch.torch.reading import Meeting
from trainwright.rehearsal.watch.torch.samples import is_plain, plain
from trainwright.rehearsal.watch.torch.state import OuterCall, WatchState, storage_of
from trainwright.seams.listening.doors import watch_door

# Values of what is compared.
MOST_COMPARED = 200_000
# Comparisons and differences that fit nothing, after which fewer are looked at.
MOST_IN_VAIN = 300
# Numbers a row of what is subtracted: a reconstruction has more.
MOST_SUBTRACTED = 8


class Comparisons:
    """Finds the outputs behind what is compared or subtracted."""

    def __init__(self, state: WatchState, meetings: Meetings) -> None:
        self._state = state
        self._meetings = meetings
        self._in_vain = 0

    def is_wanted(self, one: Any, other: Any) -> bool:
        """Whether two tensors can be a choice and labels, or an output and its target."""
        state = self._state
        if state.is_off() or not state.recent or state.depth or state.in_loss or state.in_backward:
            return False
        if not isinstance(other, torch.Tensor) or type(one) is not torch.Tensor or one.shape != other.shape:
            return False
        if not one.dim() or not 0 < one.numel() <= MOST_COMPARED:
            return False
        self._in_vain += 1
        return state.recorder.is_due(self._in_vain) or self._in_vain < MOST_IN_VAIN

    def compare(self, one: Any, other: Any) -> None:
        """`guess == labels`: where one side is the choice of the latest outputs, the other side holds the labels."""
        if not (is_plain(one) and is_plain(other)) or self._state.recent[-1].update != self._state.update:
            return
        if one.grad_fn is not None or other.grad_fn is not None:
            return
        latest = self._state.recent[-1]
        same = [c for c in self._state.recent if c.model is latest.model and c.update == latest.update]
        for calls in ([latest], same) if len(same) > 1 else ([latest],):
            for path, _ in latest.outputs:
                if self._choose(calls, path, plain(one), plain(other)):
                    self._in_vain = 0
                    return

    def _choose(self, calls: list[OuterCall], path: str, one: Any, other: Any) -> bool:
        rows = [sum(h.shape[0] for p, h in call.outputs if p == path and h.shape) for call in calls]
        shapes = {h.shape[2:] for call in calls for p, h in call.outputs if p == path}
        if len(shapes) != 1 or not sum(rows) or one.numel() % sum(rows):
            return False
        parts = [h.get() for call in calls for p, h in call.outputs if p == path]
        if any(part is None or not part.dim() or not part.is_floating_point() for part in parts):
            return False
        answer = (torch.cat(parts) if len(parts) > 1 else parts[0]).to(one.device)
        for choice, labels in ((one, other), (other, one)):
            found = self._form(answer, choice, labels)
            if found is not None:
                self._meet(calls, parts, found, labels)
                return True
        return False

    def _form(self, answer: Any, choice: Any, labels: Any) -> str | None:
        """How the answer is read so that this is its choice; None: it is not."""
        if labels.is_floating_point() and not bool((labels == labels.round()).all()):
            return None
        width = int(answer.shape[-1])
        if answer.dim() > 1 and width > 1 and answer.numel() == choice.numel() * width:
            if bool((answer.argmax(-1).reshape(-1) == choice.reshape(-1)).all()):
                return "last classes"
        if answer.dim() > 2 and answer.shape[1] > 1 and answer.numel() == choice.numel() * answer.shape[1]:
            if bool((answer.argmax(1).reshape(-1) == choice.reshape(-1)).all()):
                return "classes"
        if answer.numel() == choice.numel():
            known = {self._state.forms.get(Output(LabelKind.BINARY, w)) for w in (1, width)}
            limits = [("binary", 0.5)] if known == {"binary"} else [("logits", 0.0), ("binary", 0.5)]
            for form, limit in limits:
                said = (answer.reshape(-1) > limit).to(choice.dtype)
                if bool((said == choice.reshape(-1)).all()) and not bool((labels.double().abs() > 1).any()):
                    return form
        return None

    def _meet(self, calls: list[OuterCall], parts: list[Any], form: str, labels: Any) -> None:
        """Share the labels out between the calls."""
        flat, at = labels.reshape(-1), 0
        for call, part in zip(calls, parts):
            count = part.numel() // (
                part.shape[-1] if form == "last classes" else part.shape[1] if form == "classes" else 1
            )
            share, at = flat[at : at + count], at + count
            answer = part.reshape(-1, part.shape[-1]) if form == "last classes" and part.dim() > 2 else part
            if form.endswith("classes"):
                share = share.long() if form == "last classes" else share.long().reshape(part.shape[0], *part.shape[2:])
            else:
                share = share.to(part.dtype).reshape(part.shape)
            self._meetings.add(
                Meeting(
                    form=form.removeprefix("last "),
                    output=answer,
                    target=share,
                    source=PairSource.COMPARISON,
                    call=call,
                    update=call.update,
                    node=call.nodes[0] if call.nodes else None,
                )
            )

    def subtract(self, one: Any, other: Any, result: Any) -> None:
        """An output minus its target, or the target minus the output."""
        if not (is_plain(one) and is_plain(other)) or one.numel() > MOST_SUBTRACTED * one.shape[0]:
            return
        for answer, target in ((one, other), (other, one)):
            storage = storage_of(answer)
            others = {h.storage for c in self._state.recent for _, h in c.outputs}
            if storage not in others or target.requires_grad or storage_of(target) in others:
                continue
            call = call_of(self._state, answer)
            if call is not None and call.update == self._state.update:
                self._in_vain = 0
                self._meetings.add(
                    Meeting(
                        form="numbers",
                        output=plain(answer),
                        target=plain(target).to(answer.dtype),
                        source=PairSource.DIFFERENCE,
                        call=call,
                        update=call.update,
                        node=result.grad_fn._sequence_nr() if result.grad_fn is not None else None,
                    )
                )
                return


def watch_comparisons(state: WatchState, meetings: Meetings) -> None:
    """Look at `==` and `-` of tensors."""
    found = Comparisons(state, meetings)
    compare, subtract = state.recorder.watching(found.compare), state.recorder.watching(found.subtract)

    def passed_on_equal(go_on: Any, self: Any, other: Any) -> Any:
        if found.is_wanted(self, other):
            compare(self, other)
        return go_on(self, other)

    def passed_on_minus(go_on: Any, self: Any, other: Any, **kwargs: Any) -> Any:
        result = go_on(self, other, **kwargs)
        if self.is_floating_point() and self.numel() > 1 and found.is_wanted(self, other):
            subtract(self, other, result)
        return result

    for name, watcher in (
        ("__eq__", passed_on_equal),
        ("eq", passed_on_equal),
        ("__sub__", passed_on_minus),
        ("sub", passed_on_minus),
    ):
        watch_door(torch.Tensor, name, watcher)


class LabelsInBatch:
    """Reads an evaluation call that met no labels, once the next one comes: its labels are in the batch, at the place
    where training has its own."""

    def __init__(self, state: WatchState, meetings: Meetings) -> None:
        self._state = state
        self._meetings = meetings
        self._waiting: OuterCall | None = None

    def wait(self, call: OuterCall) -> None:
        """A model has answered without gradients."""
        self.settle()
        if not call.grads and not call.is_training and call.batch is not None and self._state.labels:
            self._waiting = call

    def settle(self) -> None:
        """Read the call that waits, if nothing else gave its labels."""
        call, self._waiting = self._waiting, None
        if call is None or call.answered or call.batch is None:
            return
        for output, column in self._state.labels.items():
            held = call.batch.columns.get(column)
            labels = held.get() if held is not None else None
            if labels is not None and labels.dim() and labels.shape[0] == call.rows:
                self._read(call, output, labels)

    def _read(self, call: OuterCall, output: Output, labels: Any) -> None:
        for answer in self._answers(call, output):
            form = self._state.forms[output]
            if output.kind == LabelKind.CLASSES:
                if labels.numel() != answer.numel() // answer.shape[1]:
                    continue
            elif labels.numel() != answer.numel():
                continue
            else:
                labels = labels.reshape(answer.shape)
            update, node = call.update, None
            self._meetings.add(Meeting(form, answer, labels, PairSource.LOADER, call, update, node=node))
            return

    def _answers(self, call: OuterCall, output: Output) -> list[Any]:
        """The results of the call that have this output's shape."""
        found = []
        for _, held in call.outputs:
            shape = held.shape
            if not shape or shape[0] != call.rows:
                continue
            width = shape[1] if output.kind == LabelKind.CLASSES and len(shape) == 2 else None
            if output.kind != LabelKind.CLASSES:
                width = 1 if len(shape) == 1 else shape[1] if len(shape) == 2 else None
            tensor = held.get() if width == output.width else None
            if tensor is not None:
                found.append(tensor)
        return found[output.number : output.number + 1]
