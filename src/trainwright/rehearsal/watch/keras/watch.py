"""What is noted of Keras's trainings, evaluations and files of weights, and asked of its models after the run."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trainwright.adapters.keras.input.fit_data import FitData, fit_data
from trainwright.adapters.keras.input.nested_values import leaves, map_leaves, to_numpy
from trainwright.adapters.keras.input.sources import Arrays, ReplayedGenerator, Source
from trainwright.frameworks.packages import TrainingKind
from trainwright.rehearsal.listener import LISTENING
from trainwright.rehearsal.record import Pass
from trainwright.rehearsal.record_parts import KeptWeights, Loaded
from trainwright.rehearsal.recorder import MOST_KEYS, MOST_TRAINED_ROWS, Recorder, spread
from trainwright.rehearsal.watch.broken import BrokenRows
from trainwright.rehearsal.watch.dense_rows import MOST_DRAWS, DenseRows
from trainwright.rehearsal.watch.keras.answers import Asking, Question
from trainwright.rehearsal.watch.keras.fit import RunningFit, callbacks_of, with_callbacks
from trainwright.rehearsal.watch.keras.rows import row_bytes, rows_of_arrays, rows_of_stream
from trainwright.rehearsal.watch.keras.weights import FollowedWeights, fingerprint, values_of, weights_of
from trainwright.rehearsal.watch.labelled import keys_of
from trainwright.rehearsal.watch.stored_rows import StoredRows
from trainwright.seams.listening.doors import take_away
from trainwright.seams.source.places import user_frame, user_place

if TYPE_CHECKING:
    from trainwright.look.of_keras import FitLooks

# Copies of weights for questions after the run, in all; the oldest questions go without.
MOST_COPIES = 400_000_000
# Rows of which all are looked at for equal ones, in bytes.
MOST_LOOKED = 200_000_000
# Calls of `evaluate` and of saving that are noted.
MOST_CALLS = 2000
# Trainings whose models are asked after the run: the last ones.
MOST_TRAININGS = 12
# Rows of arrays that a model is asked about after training, and labels that are counted.
MOST_HELD_ROWS, MOST_LABELS = 512, 200_000
# Rows of a stream that are drawn several times.
DRAWN_AGAIN = 256


class KerasWatch:
    """Watches one Keras: `keras` or `tf_keras`."""

    def __init__(self, recorder: Recorder, keras: Any) -> None:
        self.recorder, self.keras = recorder, keras
        self.backend = "tensorflow" if keras.__name__.startswith("tf_keras") else str(keras.config.backend())
        self.followed = FollowedWeights(recorder)
        self.fits: list[RunningFit] = []
        """Those under way, the innermost last."""
        self.questions: list[Question] = []
        self._calls = 0
        self._passes: list[tuple[Pass, set[int]]] = []
        self._parts: dict[int, Any] = {}
        self.broken = BrokenRows(recorder)
        self.dense = DenseRows(recorder, lambda: ("y",))
        self.stored = StoredRows(recorder)
        self.error: BaseException | None = None
        """What ended the script."""
        self.calls = contextlib.ExitStack()
        """Takes the door away that stands at calls of models."""
        take_away(self.calls.close)

    @functools.cached_property
    def looks(self) -> FitLooks:
        """The looks at each `fit`; measuring is imported once there is one."""
        from trainwright.look.of_keras import FitLooks

        return FitLooks(LISTENING.repairs, LISTENING.repaired_training)

    def note_end(self, error: BaseException | None) -> None:
        """The script is over."""
        self.error = error

    def look_behind(self) -> None:
        """Look at each `fit`, once the record was written."""
        self.calls.close()  # what looks at a step replaces the one that is inherited
        record, looks = self.recorder.record, self.looks.look(self.error)
        told, has_end = {one.training for one in looks}, any(one.is_end for one in looks)
        record.looks = [one for one in record.looks if not (has_end if one.is_end else one.training in told)] + looks

    # Training

    def begin_fit(self, model: Any, given: dict[str, Any], frame: FrameType) -> RunningFit:
        """A training that begins, with our callbacks among its arguments."""
        recorder = self.recorder
        where, data = user_place(frame), self._data_of(given)
        number = recorder.number_of(model)
        training = recorder.next_training(where, TrainingKind.FIT, models=(number,))
        repairing = None
        if not self.fits and (user := user_frame(frame)) is not None:
            begin = functools.partial(self.looks.begin_fit, model, given, data, user, training.number)
            data, repairing = recorder.guard(begin) or (data, None)
        callbacks = given.get("callbacks")
        fit = RunningFit(
            recorder=recorder,
            model=model,
            backend=self.backend,
            given=dict(given),
            followed=self.followed,
            where=where,
            callbacks=leaves(getattr(callbacks, "callbacks", callbacks)),
            data=data,
            held=self._held_number(data),
            training=training,
            repairing=repairing,
        )
        if not isinstance(data.source, Arrays):
            self.stored.begin(given.get("x"), None)
        fit.begin_step(training=True)  # Keras may build the model before its first batch
        given["callbacks"] = with_callbacks(callbacks, *callbacks_of(self.keras, fit))
        self.fits.append(fit)
        return fit

    def end_fit(self, fit: RunningFit) -> None:
        """Keep what is to be asked about after the run."""
        self.fits.remove(fit)
        weights = fit.end()
        made = self.recorder.record.updates - fit.begins
        self.looks.end_fit(fit.model, fit.training.number, made, fit.training.planned, fit.logged)
        if weights is None:
            return
        model = fit.model
        self._look_for_broken_rows(fit, weights)
        loss = getattr(model, "loss", None)
        kept = self._copy(model, weights)
        update = self.recorder.record.updates
        common = Question(
            model=model,
            number=self.recorder.number_of(model),
            weights=kept,
            update=update,
            loss=loss,
            trains=True,
            training=fit.training.number,
        )
        evaluation = fit.passes[-1] if fit.passes else None
        held = replace(common, trains=False, data=fit.held, evaluation=evaluation)
        data = fit.data
        self.questions.append(self._asked(replace(common, data=self._number_of(data.source)), data.source))
        if data.validation is not None:
            self.questions.append(self._asked(held, data.validation.source))
        self._forget()

    def _data_of(self, given: Mapping[str, Any]) -> FitData:
        """What `fit`, or another call with such arguments, was given."""
        is_legacy = self.keras.__name__.startswith("tf_keras")
        return fit_data(given, floats=self.keras.backend.floatx(), listed=is_legacy)

    def _look_for_broken_rows(self, fit: RunningFit, weights: float) -> None:
        """Look at all rows of arrays, if a loss or the weights are not finite: some layers answer 0 to what is not."""
        losses = (value for update, value in self.recorder.record.losses if update >= fit.begins)
        is_sound = all(map(math.isfinite, (*losses, weights)))
        if is_sound or not self.broken.is_wanted() or not isinstance(fit.data.source, Arrays):
            return
        x, y = (map_leaves(to_numpy, fit.given.get(name)) for name in ("x", "y"))
        columns = [("x", part) for part in leaves(x)] + [("y", part) for part in leaves(y)]
        rows = range(len(leaves(x)[0]))
        first = leaves(fit.given.get("x"))[0]
        self.broken.look([(n, a) for n, a in columns if a.dtype.kind == "f" and a.ndim], rows, first, len(rows))

    def _asked(self, question: Question, source: Source) -> Question:
        """The question with its rows, or with the stream that gives them after the run."""
        if not isinstance(source, Arrays):
            return replace(question, stream=source)
        if not question.trains:
            return replace(question, rows=rows_of_arrays(source, MOST_HELD_ROWS))
        total, keys = source.rows or 0, None
        every = spread(total, MOST_KEYS)
        if len(every) * row_bytes(source.x) <= MOST_LOOKED:
            keys = keys_of(leaves(source.at(every)[0]))
        labels = source.at(spread(total, MOST_LABELS))[1]
        return replace(question, rows=rows_of_arrays(source, MOST_TRAINED_ROWS), keys=keys, labels=labels)

    def _number_of(self, source: Source) -> int:
        """The number of a set: that of its first array, or of what gives its batches."""
        given = source.generator if isinstance(source, ReplayedGenerator) else None
        if isinstance(source, Arrays):
            given = next(iter(leaves([source.x, source.y])), None)
        elif not isinstance(source, ReplayedGenerator):
            given = source.given
        return self.recorder.number_of(given) if given is not None else 0

    def _held_number(self, data: FitData) -> int:
        if data.validation is None:
            return 0
        if data.split and isinstance(data.source, Arrays):
            return self.recorder.number_of(self._parts.setdefault(id(leaves(data.source.x)[0]), _Part()))
        return self._number_of(data.validation.source)

    def _copy(self, model: Any, weights: float) -> list[NDArray[Any]] | None:
        """The weights as they are now; None: too many."""
        last = self.questions[-1] if self.questions else None
        if last is not None and last.model is model and last.weights is not None and fingerprint(model) == weights:
            same = [v.shape for v in last.weights]
            if same == [tuple(v.shape) for v in model.weights] and all(
                np.array_equal(a, values_of(v), equal_nan=a.dtype.kind == "f")
                for a, v in zip(last.weights, model.weights)
            ):
                return last.weights
        copied = [np.array(values_of(v)) for v in model.weights]
        size = sum(a.nbytes for a in copied)
        return copied if size <= MOST_COPIES else None

    def _forget(self) -> None:
        """Drop the questions about early trainings, and those whose copies are too large together."""
        numbers = sorted({q.training for q in self.questions})
        while numbers:
            sizes = {id(q.weights): sum(a.nbytes for a in q.weights or ()) for q in self.questions}
            if len(numbers) <= MOST_TRAININGS and (sum(sizes.values()) <= MOST_COPIES or len(numbers) == 1):
                return
            first = numbers.pop(0)
            self.questions = [q for q in self.questions if q.training != first]

    # Evaluation

    def evaluated(self, model: Any, given: dict[str, Any], result: Any, frame: FrameType, scores: bool) -> None:
        """`evaluate`, if it scores, or `predict` has read rows with a model."""
        self._calls += 1
        if not self.recorder.is_due(self._calls):
            return
        weights, recorder, source = fingerprint(model), self.recorder, self._data_of(given).source
        made = Pass(
            number=0,
            update=recorder.record.updates,
            model=recorder.number_of(model),
            is_trained=False,
            weights=weights,
            data=self._number_of(source),
            calls=0,
            where=user_place(frame),
        )
        done = self.note_pass(model, made)
        done.calls += 1
        if not scores:
            return
        trained = any(q.trains and q.data == made.data for q in self.questions)
        names = names_of_scores(model)
        pairs = result.items() if isinstance(result, dict) else zip(names, np.ravel(result).tolist())
        for name, value in pairs:
            recorder.add_number(f"{'train' if trained else 'evaluate'} {name}", float(value), "history")
        if trained or len(self.questions) > 4 * MOST_TRAININGS:
            return
        question = Question(
            model=model,
            number=made.model,
            weights=self._copy(model, weights),
            update=made.update,
            loss=getattr(model, "loss", None),
            trains=False,
            data=made.data,
            evaluation=done.number,
            training=len(recorder.record.trainings),
        )
        self.questions.append(self._asked(question, source))
        self._forget()

    def note_pass(self, model: Any, made: Pass) -> Pass:
        """Note an evaluation pass; whether updates change the model is known at the end of the run."""
        done = self.recorder.begin_pass(made)
        self._passes.append((done, {id(v) for v in weights_of(model)}))
        return done

    # Files

    def saved(self, model: Any, path: Any, how: str, frame: FrameType) -> None:
        """Weights were written to a file, or copied."""
        record = self.recorder.record
        if len(record.kept) >= MOST_CALLS:
            return
        kept = KeptWeights(
            update=record.updates,
            weights=fingerprint(model),
            how=how,
            path=str(path or ""),
            tensors=len(model.weights),
            where=user_place(frame),
        )
        record.kept.append(kept)
        if self.fits and self.fits[-1].model is model and how == "saved":
            self.fits[-1].note_saved(kept)

    def loaded(self, model: Any, before: float, frame: FrameType) -> None:
        """Weights were put into a model."""
        record = self.recorder.record
        if len(record.loaded) < MOST_CALLS:
            record.loaded.append(
                Loaded(
                    update=record.updates,
                    model=self.recorder.number_of(model),
                    before=before,
                    after=fingerprint(model),
                    missing=0,
                    tensors=len(model.weights),
                    where=user_place(frame),
                )
            )

    def finish(self) -> None:
        """Ask the models."""
        for made, variables in self._passes:
            made.is_trained = made.is_trained or bool(variables & self.followed.trained)
        self.recorder.watching(self.broken.finish)()
        asking = Asking(self.recorder, self.keras, self.backend)
        ask = self.recorder.watching(asking.ask)
        before = 0
        for question in self.questions:
            if question.training != before and question.trains:
                self.recorder.forget_rows()
                before = question.training
            ask(question)
            if question.trains and question.stream is not None:
                self.recorder.guard(functools.partial(self._draw_again, question, question.stream))
            drawn = self.recorder.record.trained_keys
            for key in question.keys.tolist() if question.keys is not None else ():
                if len(drawn) < MOST_KEYS:
                    drawn.setdefault(key, 1)

    def _draw_again(self, question: Question, stream: Source) -> None:
        """Draw the same rows of a stream several times, where their targets are as large as they are."""
        where = self.recorder.record.trainings[question.training - 1].where
        for _ in range(MOST_DRAWS):
            rows = rows_of_stream(stream, DRAWN_AGAIN)
            columns = {name: leaves(part) for name, part in (("x", rows.x), ("y", rows.y))} if rows is not None else {}
            single = {name: parts[0] for name, parts in columns.items() if len(parts) == 1}
            numbers = range(len(single["x"])) if "x" in single and getattr(stream, "at", None) is not None else None
            if not self.dense.note(getattr(stream, "given", stream), single, numbers, where):
                return


class _Part:
    """Stands for the rows of a set that `validation_split` keeps for validation."""


def names_of_scores(model: Any) -> list[str]:
    """The names of what `evaluate` returned, in order."""
    flatten = getattr(model, "_flatten_metrics_in_order", None)
    if flatten is not None:
        names = list(model.get_metrics_result())
        ordered = flatten({name: name for name in names})
        return [ordered] if isinstance(ordered, str) else list(ordered)
    return list(getattr(model, "metrics_names", None) or ())
