"""A Trainer's batches, formed and computed once more behind the run."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from trainwright.adapters.base import EvaluatedBatch
from trainwright.adapters.data.odd_rows import RowStep
from trainwright.adapters.learning import ForwardPass, Trained, read_batches
from trainwright.adapters.torch.batches import other_padding_labels, special_ids
from trainwright.adapters.torch.called_model import left_as_it_was
from trainwright.adapters.torch.memory import measure_memory
from trainwright.adapters.trainer.evaluation import evaluation_set_of
from trainwright.core import Failure, Place
from trainwright.frameworks.label_names import ARGUMENTS, find_label
from trainwright.look.state import Look
from trainwright.probes.information import sketch
from trainwright.seams.failures.blame import failure_of, tolerated
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.seams.listening.doors import replaced
from trainwright.seams.listening.seen import quiet
from trainwright.seams.state.snapshot import seed_everything
from trainwright.seams.torch.graph import anomalies
from trainwright.seams.torch.loss import KeptLoss, flat_smoothed, judge_call
from trainwright.seams.torch.observer import Observer
from trainwright.seams.torch.stations import PassRecord
from trainwright.stages import ForwardFacts
from trainwright.tensors.torch.objects import tensors_in

# Seconds for reading batches, and for all that is asked of one Trainer.
READING_SECONDS, MOST_SECONDS = 1.0, 20.0
# A loss that is the value of one call, and not by chance near it.
SAME_VALUE = 1e-6
# Batches that are kept for the steps may take this much memory together, in bytes.
MOST_BYTES = 512 * 2**20


class TrainerLearner(Trained):
    """A Trainer's batches, whose model has the weights that it trained."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer

    @property
    def model(self) -> Any:
        """The trained model."""
        return self.trainer.model

    def fresh(self, most: int, seconds: float) -> list[Mapping[str, Any]]:
        seed_everything(1)
        with quiet():
            return read_batches(
                self.trainer.get_train_dataloader,
                seconds,
                lambda batch: max(1 / most, sum(t.nbytes for t in tensors_in(batch)) / MOST_BYTES),
            )

    def held_out(self, rows: int, seconds: float) -> list[Mapping[str, Any]]:
        if (data := evaluation_set_of(self.trainer)) is None:
            return []
        with quiet():
            return read_batches(
                lambda: self.trainer.get_eval_dataloader(data), seconds, lambda batch: _count_rows(batch) / rows
            )

    def count_rows(self, batch: Any) -> int:
        return _count_rows(batch)

    def passed(self, batch: Any, chosen: frozenset[int] | None) -> ForwardPass | None:
        record = PassRecord(self.model, _count_rows(batch), sketch, chosen)
        if not record.rows:
            return None
        judged = self._judged(batch, record.watching())
        if judged is None or not record.complete:
            return None
        return ForwardPass(given=record.given, results=record.results, losses=judged.losses)

    def judged(self, batch: Any) -> EvaluatedBatch | None:
        return self._judged(batch, contextlib.nullcontext())

    def _judged(self, batch: Any, watching: contextlib.AbstractContextManager[Any]) -> EvaluatedBatch | None:
        with quiet(), left_as_it_was(self.model), watching:
            evaluated = self.evaluate(batch)
        return _leave_own_calls(evaluated) if evaluated is not None else None

    def label_key(self, batch: Mapping[str, Any]) -> str | None:
        """The name of a batch's labels."""
        return find_label(batch, [*self.trainer.label_names, *ARGUMENTS])

    def evaluate(self, batch: Mapping[str, Any]) -> EvaluatedBatch | None:
        """A batch's loss and answers, without updates; None if that raised."""
        trainer, loss = self.trainer, math.nan
        model = trainer.model
        model.eval()
        observer = Observer(model, keeps_losses=True)
        kept = observer.record.kept_losses
        with observer.catching() as record, _keeping_smoothed(trainer, kept), torch.no_grad():
            loss = float(trainer.compute_loss(model, trainer._prepare_inputs(batch)))
        if record.failure is not None:
            return None
        return EvaluatedBatch(loss=loss, losses=[call for call in map(judge_call, kept) if call is not None])


def _leave_own_calls(batch: EvaluatedBatch) -> EvaluatedBatch:
    """The batch with the loss calls that make up its loss."""
    alone = [call for call in batch.losses if abs(call.value - batch.loss) <= SAME_VALUE * abs(batch.loss)]
    return replace(batch, losses=alone[-1:] or batch.losses)  # others may be of an evaluation within the step


def _count_rows(values: Any) -> int:
    """How many rows the tensors of a batch have; 0 unless all have one first axis, and it is that of rows."""
    found = [t for t in tensors_in(values) if t.dim()]
    rows = len(found[0]) if found else 0
    return 0 if any(len(t) != rows or t.layout != torch.strided for t in found) else rows


@contextlib.contextmanager
def _keeping_smoothed(trainer: Any, kept: list[KeptLoss]) -> Iterator[None]:
    """Also keep the loss of `label_smoothing_factor`, which transformers computes itself."""
    own: Any = getattr(trainer, "label_smoother", None)

    def smoother(outputs: Any, labels: Any, shift_labels: bool = False, **more: Any) -> Any:
        value = own(outputs, labels, shift_labels=shift_labels, **more)
        scores, targets, options = flat_smoothed(own, outputs, labels, shift_labels)
        call = KeptLoss(function="cross_entropy", scores=scores.detach(), targets=targets, options=options, value=value)
        kept.append(call)
        return value

    if own is None:
        yield
        return
    with replaced([(trainer, "label_smoother", smoother)]):
        yield


class TrainerSteps:
    """Steps on chosen rows, as a Trainer forms their batch, with the weights that it has."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def of_items(self, items: Sequence[Any]) -> RowStep | None:
        """A step on items of a set, which are read as they are asked for; None where they make no batch."""
        trainer = self._trainer
        kept, trainer.train_dataset = trainer.train_dataset, items
        trainer.model.train()
        try:
            batch = next(iter(trainer.get_train_dataloader()))
            return RowStep(loss=float(trainer.compute_loss(trainer.model, trainer._prepare_inputs(batch)).detach()))
        except StopIteration:
            return None
        except Exception as error:  # the script's own code, with other rows than it was given
            return RowStep(failure=str(failure_of(error)))
        finally:
            trainer.train_dataset = kept


def change_padding(learner: TrainerLearner, tokenizer: Any) -> float | None:
    """How far the loss of a batch changes, as a share of it, if padding gets other labels; None: it has none."""
    batch = next(iter(learner.fresh(1, READING_SECONDS)), {})
    _, pad_id, eos_id = special_ids(learner.model, tokenizer)
    key = learner.label_key(batch)
    other = other_padding_labels(batch, key, pad_id, eos_id) if key is not None else None
    if key is None or other is None:
        return None
    before, after = (learner.evaluate({**batch, key: labels}) for labels in (batch[key], other))
    return abs(after.loss - before.loss) / (abs(before.loss) + 1e-12) if before and after else None


def find_anomaly(learner: TrainerLearner, look: Look) -> tuple[str, Place | None]:
    """The function whose backward makes a step's gradients not finite, and the user's line that called it; empty: none does."""
    trainer, batch = learner.trainer, next(iter(learner.fresh(1, READING_SECONDS)), {})
    if look.replay.can_reset:
        look.replay.reset()
    with tolerated(), anomalies() as found:  # it raises in the backward pass
        trainer.compute_loss(trainer.model, trainer._prepare_inputs(batch)).backward()
    return found[0] if found else ("", None)


def measure_step_memory(trainer: Any, failure: Failure) -> ForwardFacts:
    """What takes the memory in a step, once a batch was too large for it."""

    def step(rows: Mapping[str, Any]) -> None:
        trainer.compute_loss(model, trainer._prepare_inputs(dict(rows))).backward()

    def update() -> Any:
        optimizer = trainer.optimizer if trainer.optimizer is not None else trainer.create_optimizer()
        optimizer.step()
        return optimizer

    facts, model = ForwardFacts(failure=failure), trainer.model
    try:
        with tolerated(), stopped_after(MOST_SECONDS):  # a step that raises something else tells nothing
            batch = next(iter(trainer.get_train_dataloader()))
            model.train()
            return replace(facts, memory=measure_memory(model, batch, step, update))
    except OutOfTime:
        pass
    return facts
