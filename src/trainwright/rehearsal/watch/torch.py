"""Puts the watchers of torch together."""

from __future__ import annotations

from typing import Any

from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.comparisons import watch_comparisons
from trainwright.rehearsal.watch.evaluated import Evaluated
from trainwright.rehearsal.watch.files import watch_files
from trainwright.rehearsal.watch.losses import Losses, watch_backward, watch_losses
from trainwright.rehearsal.watch.meetings import Meetings
from trainwright.rehearsal.watch.optimizers import Optimizers, watch_optimizers
from trainwright.rehearsal.watch.parameters import Parameters
from trainwright.rehearsal.watch.passes import watch_calls
from trainwright.rehearsal.watch.probes import Probes
from trainwright.rehearsal.watch.state import Call, State


class TorchWatch:
    """The watchers of torch, in one process."""

    def __init__(self, recorder: Recorder) -> None:
        self.state = State(recorder)
        self.meetings = Meetings(self.state)
        self.losses = Losses(self.state)
        self.parameters = Parameters(self.state)
        self.probes = Probes(self.state)
        self.evaluated = Evaluated(self.state, self.meetings)
        self.optimizers = Optimizers(self.state, self.meetings, self.parameters)
        self.state.after_call = self._after_call

    def _after_call(self, call: Call, args: Any, kwargs: Any, results: list[tuple[str, Any]]) -> None:
        if call.grads and call.is_training:
            self.parameters.name_model(call.model)
        self.evaluated.wait(call)
        if call.root is None:
            self.probes.note(call, args, kwargs)

    def finish(self) -> None:
        """Write what waits, and probe the models."""
        recorder, record = self.state.recorder, self.state.recorder.record
        parts = (self.evaluated.settle, self.optimizers.end_training, self.losses.flush, self.meetings.finish,
                 self.parameters.finish, self.probes.finish)  # fmt: skip
        for part in parts:
            recorder.watching(part)()
        trained = {m.number for m in self.state.models.values() if m.is_trained}
        for one in record.passes:
            one.is_trained = one.model in trained


def watch_torch(recorder: Recorder) -> TorchWatch:
    """Watch torch, which has been imported."""
    made = TorchWatch(recorder)
    watch_calls(made.state)
    watch_losses(made.state, made.meetings)
    watch_backward(made.state, made.losses, made.meetings)
    watch_comparisons(made.state, made.meetings)
    watch_optimizers(made.state, made.optimizers)
    watch_files(made.state)
    return made
