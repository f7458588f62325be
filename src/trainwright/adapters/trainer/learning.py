"""Fresh batches of a Trainer, and its evaluation rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trainwright.adapters.torch.constant import JudgedLosses
from trainwright.adapters.torch.learning import TorchLearner, row_digests, taken_batches
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.seen import quiet
from trainwright.seams.state.snapshot import seed_everything
from trainwright.timing import now

if TYPE_CHECKING:
    from trainwright.adapters.trainer.training import TrainerTraining


@contextlib.contextmanager
def noting_smoothed(trainer: Any, seen: JudgedLosses) -> Iterator[None]:
    """Also record the loss of `label_smoothing_factor`, which transformers computes itself."""
    own: Any = getattr(trainer, "label_smoother", None)

    def smoother(outputs: Any, labels: Any, shift_labels: bool = False, **more: Any) -> Any:
        value = own(outputs, labels, shift_labels=shift_labels, **more)
        logits = outputs["logits"] if isinstance(outputs, Mapping) else outputs[0]
        if shift_labels:
            logits, labels = logits[..., :-1, :], labels[..., 1:]
        options = {"label_smoothing": own.epsilon, "ignore_index": own.ignore_index}
        flat = logits.detach().reshape(-1, logits.shape[-1])
        seen.note("cross_entropy", flat, labels.reshape(-1), float(value.detach()), options)
        return value

    if own is None or not seen.by_row:
        yield
        return
    trainer.label_smoother = smoother
    try:
        yield
    finally:
        trainer.label_smoother = own


class TrainerLearner(TorchLearner):
    """A Trainer's batches."""

    training: TrainerTraining

    def __init__(self, training: TrainerTraining) -> None:
        self.training = training

    @property
    def window(self) -> int:
        return int(self.training.trainer.args.gradient_accumulation_steps)

    def fresh(self, most: int, seconds: float) -> list[Mapping[str, Any]]:
        seed_everything(1)
        with tolerated(), quiet():  # data that raise are reported with the batches
            return taken_batches(iter(self.training.loader(evaluation=False)), most, seconds)
        return []

    def held_out(self, rows: int, seconds: float) -> list[Mapping[str, Any]]:
        if self.training.evaluation_set() is None:
            return []
        found: list[Mapping[str, Any]] = []
        started = now()
        with tolerated(), quiet():
            for batch in self.training.loader(evaluation=True):
                found.append(batch)
                rows -= len(row_digests(batch) or ())
                if rows <= 0 or now() - started > seconds:
                    break
        return found

    def digests(self, batch: Mapping[str, Any]) -> list[int] | None:
        return row_digests(batch)
