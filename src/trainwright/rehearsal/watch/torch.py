"""Puts the watchers of torch together."""

from __future__ import annotations

from typing import Any

from trainwright.core import Place
from trainwright.frameworks.packages import TrainingKind
from trainwright.rehearsal.record import Training
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.broken import BrokenRows
from trainwright.rehearsal.watch.close_look import watch_closely
from trainwright.rehearsal.watch.comparisons import LabelsInBatch, watch_comparisons
from trainwright.rehearsal.watch.files import watch_files
from trainwright.rehearsal.watch.generated import Generating
from trainwright.rehearsal.watch.handmade import Functional, Handmade, watch_functional
from trainwright.rehearsal.watch.losses import Losses, watch_backward, watch_losses, watch_scaling
from trainwright.rehearsal.watch.meetings import Meetings
from trainwright.rehearsal.watch.optimizers import Optimizers, watch_optimizers
from trainwright.rehearsal.watch.parameters import Parameters
from trainwright.rehearsal.watch.passes import watch_calls
from trainwright.rehearsal.watch.probes import Probes
from trainwright.rehearsal.watch.samples import holder_of, is_plain
from trainwright.rehearsal.watch.state import OuterCall, WatchState, unwrapped, weights_fingerprint


class TorchWatch:
    """The watchers of torch, in one process."""

    def __init__(self, recorder: Recorder) -> None:
        self.state = WatchState(recorder)
        self.meetings = Meetings(self.state)
        self.broken = BrokenRows(recorder)
        self.losses = Losses(self.state, self.broken)
        self.parameters = Parameters(self.state)
        self.probes = Probes(self.state)
        self.generating = Generating(recorder)
        recorder.on_written += [recorder.watching(self.probes.finish), recorder.watching(self.generating.finish)]
        self.evaluated = LabelsInBatch(self.state, self.meetings)
        self.optimizers = Optimizers(self.state, self.meetings, self.parameters)
        self.handmade = Handmade(self.state, self.optimizers, self.parameters)
        self.functional = Functional(self.state, self.meetings, lambda: self.optimizers.has_stepped)
        self._changed = recorder.watching(self.handmade.has_changed)
        self._changed_before = recorder.watching(self.handmade.begin_backward)
        self.state.look_for_update = self._look_for_update
        self.state.after_call = self._after_call

    def _after_call(self, call: OuterCall, args: Any, kwargs: Any, results: list[tuple[str, Any]]) -> None:
        if call.grads and call.is_training:
            self.parameters.name_model(call.model)
        self.evaluated.wait(call)
        self.generating.note(call)
        self.state.note_answered(call)
        if call.root is None:
            self.probes.note(call, args, kwargs)

    def begin_backward(self, tensors: Any) -> None:
        """`backward` is called: an update may have been made by hand since the last time."""
        if not self.optimizers.has_stepped:
            roots = [t for t in (tensors if isinstance(tensors, (tuple, list)) else [tensors]) if is_plain(t)]
            if self._changed_before(roots):
                self._count_update()

    def _look_for_update(self) -> None:
        if not self.optimizers.has_stepped and self._changed():
            self._count_update()

    def _count_update(self) -> None:
        self.state.end_update()
        self.state.recorder.end_update()

    def begin_managed(self, kind: TrainingKind, model: Any, planned: int | None, where: Place | None) -> Training:
        """A Trainer begins a training, and tells when it evaluates and ends."""
        recorder = self.state.recorder
        self.optimizers.end_training()
        self.state.managed = True
        training = Training(
            number=len(recorder.record.trainings) + 1,
            kind=kind,
            begins=self.state.update,
            planned=planned,
            weights_before=weights_fingerprint(model) if model is not None else None,
            models=(recorder.number_of(holder_of(unwrapped(model))),) if model is not None else (),
            where=where,
        )
        recorder.begin_training(training)
        return training

    def finish(self) -> None:
        """Write what waits."""
        recorder, record = self.state.recorder, self.state.recorder.record
        self._look_for_update()
        ends = [self.evaluated.settle, self.optimizers.end_training, self.losses.flush, self.meetings.finish]
        ends += [
            self.functional.finish,
            self.handmade.finish,
            self.parameters.finish,
            self.broken.finish,
        ]
        for part in ends:
            recorder.watching(part)()
        read_by = self.state.read_by  # what the training gets itself, as for a baseline of its loss, is no evaluation
        record.passes = [one for one in record.passes if one.number not in read_by or not read_by[one.number].trains]
        record.unkept_passes = {m.number: m.unkept for m in self.state.models.values() if m.unkept[0] > 0}
        known = {m.number: m.is_trained for m in self.state.models.values()}
        for one in record.passes:  # those of Keras's models are not ours to judge
            one.is_trained = known.get(one.model, one.is_trained)


def watch_torch(recorder: Recorder) -> TorchWatch:
    """Watch torch, which has been imported."""
    made = TorchWatch(recorder)
    watch_calls(made.state)
    watch_losses(made.state, made.meetings)
    watch_backward(made.state, made.losses, made.meetings, made.begin_backward)
    watch_scaling(made.state)
    watch_comparisons(made.state, made.meetings)
    watch_optimizers(made.state, made.optimizers)
    watch_files(made.state)
    watch_functional(made.state, made.functional)
    watch_closely(made.state)
    return made
