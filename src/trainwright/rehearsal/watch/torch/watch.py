"""Puts the watchers of torch together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trainwright.core import Place
from trainwright.frameworks.packages import TrainingKind
from trainwright.rehearsal.record import Training
from trainwright.rehearsal.record_parts import Best
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.broken import BrokenRows
from trainwright.rehearsal.watch.torch.close_look import CloseLook
from trainwright.rehearsal.watch.torch.comparisons import LabelsInBatch, watch_comparisons
from trainwright.rehearsal.watch.torch.files import watch_files
from trainwright.rehearsal.watch.torch.generated import Generating
from trainwright.rehearsal.watch.torch.handmade import Functional, Handmade, watch_functional
from trainwright.rehearsal.watch.torch.losses import Losses, watch_backward, watch_losses, watch_scaling
from trainwright.rehearsal.watch.torch.meetings import Meetings
from trainwright.rehearsal.watch.torch.optimizers import Optimizers, watch_optimizers
from trainwright.rehearsal.watch.torch.parameters import Parameters
from trainwright.rehearsal.watch.torch.passes import watch_calls
from trainwright.rehearsal.watch.torch.probes import Probes
from trainwright.rehearsal.watch.torch.samples import holder_of, is_plain
from trainwright.rehearsal.watch.torch.state import OuterCall, WatchState, unwrap_module, weights_fingerprint


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
        self.close = CloseLook(self.state)

    def after_call(self, call: OuterCall, args: Any, kwargs: Any, results: list[tuple[str, Any]]) -> None:
        """A model has answered."""
        if call.grads and call.is_training:
            self.parameters.name_model(call.model)
        self.evaluated.wait(call)
        self.generating.note(call)
        self.close.note_answered(call)
        if call.root is None:
            self.probes.note(call, args, kwargs)

    def begin_backward(self, tensors: Any) -> None:
        """`backward` is called: an update may have been made by hand since the last time."""
        if not self.optimizers.has_stepped:
            roots = [t for t in (tensors if isinstance(tensors, (tuple, list)) else [tensors]) if is_plain(t)]
            if self._changed_before(roots):
                self._count_update()

    def look_for_update(self) -> None:
        """An update may have been made by hand."""
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
        training = recorder.next_training(where, kind, planned=planned)
        if model is not None:
            training.weights_before = weights_fingerprint(model)
            training.models = (recorder.number_of(holder_of(unwrap_module(model))),)
        return recorder.begin_training(training)

    def finish(self) -> None:
        """Write what waits."""
        recorder, record = self.state.recorder, self.state.recorder.record
        self.look_for_update()
        ends = [self.evaluated.settle, self.optimizers.end_training, self.losses.flush, self.meetings.finish]
        ends += [self.functional.finish, self.handmade.finish, self.parameters.finish, self.broken.finish]
        for part in ends:
            recorder.watching(part)()
        read_by = self.state.read_by  # what the training gets itself, as for a baseline of its loss, is no evaluation
        record.passes = [one for one in record.passes if one.number not in read_by or not read_by[one.number].trains]
        record.unkept_passes = {m.number: m.unkept for m in self.state.models.values() if m.unkept[0] > 0}
        known = {m.number: m.is_trained for m in self.state.models.values()}
        for one in record.passes:  # those of Keras's models are not ours to judge
            one.is_trained = known.get(one.model, one.is_trained)


class TrainingWatch:
    """Notes the begin and the end of a training that a framework's Trainer makes, and what it keeps as best."""

    kind: TrainingKind

    def __init__(self, watch: TorchWatch, where: Place | None) -> None:
        self._watch = watch
        self._recorder = watch.state.recorder
        self._where = where
        self._training: Training | None = None

    def _begin_training(self, model: Any, planned: int | None) -> None:
        self._training = self._watch.begin_managed(self.kind, model, planned, self._where)

    def _end_training(self, model: Any) -> float | None:
        """The call that trains is left; the fingerprint of the model's weights, None if no training had begun."""
        state = self._watch.state
        state.managed, state.tables = False, {}
        if self._training is None:
            return None
        self._watch.meetings.finish()
        after = weights_fingerprint(model)
        if self._recorder.training is self._training:
            self._recorder.end_training(after)
        return after

    def _add_best(self, name: object, higher_is_better: bool | None, values: Iterable[float], kept: int | None) -> None:
        best = Best(name=str(name).lower(), higher_is_better=higher_is_better, values=tuple(values), kept=kept)
        self._recorder.record.best.append(best)


def watch_torch(recorder: Recorder) -> TorchWatch:
    """Watch torch, which has been imported."""
    made = TorchWatch(recorder)
    watch_calls(made.state, made.close, made.look_for_update, made.after_call)
    watch_losses(made.state, made.meetings)
    watch_backward(made.state, made.close, made.losses, made.meetings, made.begin_backward)
    watch_scaling(made.state)
    watch_comparisons(made.state, made.meetings)
    watch_optimizers(made.state, made.close, made.optimizers)
    watch_files(made.state)
    watch_functional(made.state, made.functional)
    made.close.watch()
    return made
