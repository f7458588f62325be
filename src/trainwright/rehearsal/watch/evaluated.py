"""Labels of evaluation calls that nothing but the loader's batch shows."""

from __future__ import annotations

from typing import Any

from trainwright.rehearsal.record import Kind, Output, Source
from trainwright.rehearsal.watch.meetings import Meeting, Meetings
from trainwright.rehearsal.watch.state import Call, State


class Evaluated:
    """Reads an evaluation call that met no labels, once the next one comes: its labels are in the batch, at the place
    where training has its own."""

    def __init__(self, state: State, meetings: Meetings) -> None:
        self._state = state
        self._meetings = meetings
        self._waiting: Call | None = None

    def wait(self, call: Call) -> None:
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

    def _read(self, call: Call, output: Output, labels: Any) -> None:
        for answer in self._answers(call, output):
            form = self._state.forms[output]
            if output.kind == Kind.CLASSES:
                if labels.numel() != answer.numel() // answer.shape[1]:
                    continue
            elif labels.numel() != answer.numel():
                continue
            else:
                labels = labels.reshape(answer.shape)
            update, node = call.update, None
            self._meetings.add(Meeting(form, answer, labels, Source.LOADER, call, update, node=node))
            return

    def _answers(self, call: Call, output: Output) -> list[Any]:
        """The results of the call that have this output's shape."""
        found = []
        for _, held in call.outputs:
            shape = held.shape
            if not shape or shape[0] != call.rows:
                continue
            width = shape[1] if output.kind == Kind.CLASSES and len(shape) == 2 else None
            if output.kind != Kind.CLASSES:
                width = 1 if len(shape) == 1 else shape[1] if len(shape) == 2 else None
            tensor = held.get() if width == output.width else None
            if tensor is not None:
                found.append(tensor)
        return found[output.number : output.number + 1]
