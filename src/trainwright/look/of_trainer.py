"""What a Trainer shows behind the run, in its process: its evaluation once more, whether it learned, and the tokens of its rows."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from trainwright.adapters.data.odd_rows import Items, RowStep, Step
from trainwright.adapters.learning import Judged, Passed, Trained, measure_trained
from trainwright.adapters.torch.batches import other_padding_labels, special_ids
from trainwright.adapters.torch.called_model import left_as_it_was
from trainwright.adapters.torch.constant import JudgedLosses
from trainwright.adapters.torch.memory import measure_memory
from trainwright.adapters.torch.runs import Look as Evaluated
from trainwright.adapters.torch.vocabulary import vocabulary_facts
from trainwright.adapters.trainer import evaluation
from trainwright.adapters.trainer.evaluation import evaluation_set_of
from trainwright.adapters.trainer.repairs import find_tokenizer
from trainwright.adapters.trainer.row_changes import token_rows
from trainwright.core import Place
from trainwright.look.facts import change
from trainwright.look.observers import RunObserver
from trainwright.look.replay import RunLosses
from trainwright.look.state import Look
from trainwright.probes.information import sketch
from trainwright.seams.failures.blame import failure_of, is_own, tolerated
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.seams.listening.hearing import silenced
from trainwright.seams.listening.seen import quiet
from trainwright.seams.state.snapshot import RandomState, seed_everything
from trainwright.seams.torch.graph import anomalies
from trainwright.seams.torch.stations import PassRecord
from trainwright.stages import BatchFacts, EvaluationFacts, GradientFacts, LearningFacts, LossFacts, MemoryFacts
from trainwright.stages.learning import FEWEST_UPDATES
from trainwright.timing import now

# Seconds for reading batches, and for all that is asked of one Trainer.
READING_SECONDS, MOST_SECONDS = 1.0, 20.0
# A loss that is the value of one call, and not by chance near it.
SAME_VALUE = 1e-6
# Batches that are kept for the steps may take this much memory together, in bytes.
MOST_BYTES = 512 * 2**20


class _Learner(Trained):
    """A Trainer's batches, whose model has the weights that it trained."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer

    @property
    def model(self) -> Any:
        """The trained model."""
        return self.trainer.model

    def fresh(self, most: int, seconds: float) -> list[Mapping[str, Any]]:
        seed_everything(1)
        with tolerated(), quiet():  # data that raise are reported with the batches
            return _take_batches(iter(self.trainer.get_train_dataloader()), most, seconds)
        return []

    def held_out(self, rows: int, seconds: float) -> list[Mapping[str, Any]]:
        if (data := evaluation_set_of(self.trainer)) is None:
            return []
        found: list[Mapping[str, Any]] = []
        started = now()
        with tolerated(), quiet():
            for batch in self.trainer.get_eval_dataloader(data):
                found.append(batch)
                rows -= _count_rows(batch)
                if rows <= 0 or now() - started > seconds:
                    break
        return found

    def count_rows(self, batch: Any) -> int:
        return _count_rows(batch)

    def passed(self, batch: Any, chosen: frozenset[int] | None) -> Passed | None:
        record = PassRecord(self.model, _count_rows(batch), sketch, chosen)
        if not record.rows:
            return None
        judged = self._judged(batch, record.watching())
        if judged is None or not record.complete:
            return None
        return Passed(given=record.given, results=record.results, losses=judged.calls)

    def judged(self, batch: Any) -> Judged | None:
        return self._judged(batch, contextlib.nullcontext())

    def _judged(self, batch: Any, watching: contextlib.AbstractContextManager[Any]) -> Judged | None:
        with quiet(), left_as_it_was(self.model), watching:
            look = self.look(batch)
        return _calls_of(look) if look is not None else None

    def label_key(self, batch: Mapping[str, Any]) -> str | None:
        """The name of a batch's labels."""
        return next((name for name in [*self.trainer.label_names, "labels", "label"] if name in batch), None)

    def label_of(self, batch: Mapping[str, Any]) -> Any:
        """The labels of a batch, or None."""
        return batch.get(self.label_key(batch) or "")

    def look(self, batch: Mapping[str, Any]) -> Evaluated | None:
        """A batch's loss and answers, without updates; None if that raised."""
        trainer, loss = self.trainer, math.nan
        model = trainer.model
        model.eval()
        with (
            RunLosses() as seen,
            _noting_smoothed(trainer, seen),
            RunObserver(model, [model]).catching() as record,
            torch.no_grad(),
        ):
            loss = float(trainer.compute_loss(model, trainer._prepare_inputs(batch)))
        if record.failure is not None:
            return None
        return Evaluated(loss=loss, losses=seen.calls, scores=record.scores, labels=self.label_of(batch))


def _calls_of(look: Evaluated) -> Judged:
    """The loss calls that make up a batch's loss."""
    alone = [call for call in look.losses if abs(call.value - look.loss) <= SAME_VALUE * abs(look.loss)]
    return Judged(look.loss, alone[-1:] or look.losses)  # others may be of an evaluation within the step


def _count_rows(values: Any) -> int:
    """How many rows the tensors of a batch have; 0 unless all have one first axis, and it is that of rows."""
    found = [t for t in _tensors(values) if t.dim()]
    rows = len(found[0]) if found else 0
    return 0 if any(len(t) != rows or t.layout != torch.strided for t in found) else rows


def _take_batches(items: Iterator[Any], most: int, seconds: float) -> list[Any]:
    """Batches until there are enough, the time is over, or they fill the memory set aside for them; at least one."""
    started, taken, filled = now(), list[Any](), 0
    for item in items:
        taken.append(item)
        filled += sum(t.numel() * t.element_size() for t in _tensors(item))
        if len(taken) >= most or filled > MOST_BYTES or now() - started > seconds:
            break
    return taken


def _tensors(values: Any) -> list[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return [t for v in values for t in _tensors(v)]
    return []


@contextlib.contextmanager
def _noting_smoothed(trainer: Any, seen: JudgedLosses) -> Iterator[None]:
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

    if own is None:
        yield
        return
    trainer.label_smoother = smoother
    try:
        yield
    finally:
        trainer.label_smoother = own


class TrainerSteps:
    """Steps on chosen rows, as a Trainer forms their batch, with the weights that it has."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on(self, data: Any) -> Step:
        """Steps on rows of a set."""
        return lambda rows: self.of_items(Items(data, rows)) if data is not None else None

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


def measure_trainers_memory(trainer: Any) -> MemoryFacts:
    """What takes the memory in a Trainer's step, once a batch was too large for it."""
    model, batch = trainer.model, next(iter(trainer.get_train_dataloader()))

    def step(rows: Mapping[str, Any]) -> None:
        trainer.compute_loss(model, trainer._prepare_inputs(dict(rows))).backward()

    def update() -> Any:
        optimizer = trainer.optimizer if trainer.optimizer is not None else trainer.create_optimizer()
        optimizer.step()
        return optimizer

    model.train()
    return measure_memory(model, batch, step, update)


def add_trained(look: Look) -> None:
    """Measure a Trainer that has trained, as it is behind the run: with its last weights, then with its first ones."""
    trainer, facts, random = look.trainer, look.facts, RandomState()
    tokenizer = find_tokenizer(trainer, look.sets.scope if look.sets is not None else {})
    try:
        with stopped_after(MOST_SECONDS), quiet(), silenced():
            if tokenizer is not None and (tokens := token_rows(trainer.train_dataset)):
                change(facts, BatchFacts, vocabulary_facts=vocabulary_facts(tokens, tokenizer, trainer.model))
            learner = _Learner(trainer)
            change(facts, LossFacts, padding_label_change=_change_padding(learner, tokenizer))
            facts[EvaluationFacts] = evaluation.measure(trainer)
            if look.replay.can_reset and look.updates >= FEWEST_UPDATES:
                learned = measure_trained(
                    learner,
                    updates=look.updates,
                    planned=trainer.state.max_steps or None,
                    seconds=READING_SECONDS,
                    reset=look.replay.reset,
                )
                facts |= {LearningFacts: learned} if learned is not None else {}
            gradients = facts.get(GradientFacts)
            if isinstance(gradients, GradientFacts) and any(one.non_finite for one in gradients.gradients):
                operation, where = _find_anomaly(learner, look)
                change(facts, GradientFacts, anomaly=operation, anomaly_at=where)
    except OutOfTime:
        pass
    except Exception as error:  # the script's, in data or functions that are asked once more
        if is_own(error, measuring=True):
            raise
    finally:
        random.put_back()


def _change_padding(learner: _Learner, tokenizer: Any) -> float | None:
    """How far the loss of a batch changes, as a share of it, if padding gets other labels; None: it has none."""
    batch = next(iter(learner.fresh(1, READING_SECONDS)), {})
    _, pad_id, eos_id = special_ids(learner.model, tokenizer)
    key = learner.label_key(batch)
    other = other_padding_labels(batch, key, pad_id, eos_id) if key is not None else None
    if key is None or other is None:
        return None
    before, after = (learner.look({**batch, key: labels}) for labels in (batch[key], other))
    return abs(after.loss - before.loss) / (abs(before.loss) + 1e-12) if before and after else None


def _find_anomaly(learner: _Learner, look: Look) -> tuple[str, Place | None]:
    """The function whose backward makes a step's gradients not finite, and the user's line that called it; empty: none does."""
    trainer, batch = learner.trainer, next(iter(learner.fresh(1, READING_SECONDS)), {})
    if look.replay.can_reset:
        look.replay.reset()
    with tolerated(), anomalies() as found:  # it raises in the backward pass
        trainer.compute_loss(trainer.model, trainer._prepare_inputs(batch)).backward()
    return found[0] if found else ("", None)
