"""Each question speaks on faulty records and is silent on sound ones; the verdict rests on numbers."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from records import (
    BATCH,
    MODEL,
    ROWS,
    TEST_SET,
    TRAIN_SET,
    UPDATES,
    add_calls,
    add_pass,
    classifier,
    empty,
    guesses_for,
    of_classes,
    of_values,
    parameters,
    regressor,
)
from trainwright.core import Failure, Finding, Place, Proof, Severity, Shown, Stage, Verdict
from trainwright.registry import load_rules
from trainwright.rehearsal.record import (
    Best,
    Drawn,
    Ended,
    KeptWeights,
    LabelKind,
    Loaded,
    Number,
    Output,
    Record,
    TrainedLabels,
    Training,
    Update,
)
from trainwright.rehearsal.record_parts import Broken, LastingNoise
from trainwright.rehearsal.recorder import Recorder
from trainwright.review import verdict
from trainwright.review.review import ask, review
from trainwright.review.rows import evaluated_rows, held_out_rows
from trainwright.review.scores import Score, tell
from trainwright.review.sheet import sheet_of
from trainwright.review.verdict import verdict_of, verdicts

QUESTIONS = {one.name: one for one in load_rules() if one.stage == Stage.REHEARSAL}


def said(record: Record) -> set[str]:
    found, errors = review(record)
    assert not errors, errors
    for one in found:
        assert one.proof is not None or one.severity == Severity.NOTE, one.name
        assert one.measured and one.fix is not None and one.code and one.name, one.name
    return {one.name for one in found if one.severity != Severity.NOTE}


def first(record: Record) -> Finding:
    return review(record).findings[0]


def shown(record: Record) -> Shown:
    return verdict_of(record, review(record).findings).shown


# Sound records


@pytest.mark.parametrize(
    "record",
    [classifier(), classifier(width=2), classifier(0.97, 0.95, 10), regressor(), regressor(width=3), empty(),
     classifier(shares=[0.7, 0.1, 0.1, 0.1]), classifier(0.6, 0.5, 4)],
    ids=["four", "two", "ten", "numbers", "three-numbers", "no-labels", "unequal-shares", "middling"],
)  # fmt: skip
def test_sound_records_are_silent(record: Record) -> None:
    if record.answers and record.trained_rows and record.answers[-1].guesses is not None:
        record = dataclasses.replace(record, trained_rows={})  # answers are made by chance, and not from these inputs
    assert said(record) == set()
    assert shown(record) == (Shown.LEARNS if record.answers else Shown.CANNOT_BE_JUDGED)


def test_the_verdict_names_its_numbers() -> None:
    verdict = verdict_of(classifier(0.95, 0.94, 9), ())
    assert verdict.shown == Shown.LEARNS
    assert "after 200 updates 360 evaluation rows are right at 0.9" in verdict.why
    assert "a constant answer at 0.1" in verdict.why and "standard errors" in verdict.why
    assert "its own val_accuracy went from 0." in verdict.why


def test_rows_that_are_answered_far_worse_than_at_first_show_no_learning() -> None:
    record = classifier()
    evaluated = [one for one in record.answers if not one.trains]
    backwards = [dataclasses.replace(one, update=UPDATES + 50 - one.update) for one in evaluated]
    record.answers = [one for one in record.answers if one.trains] + backwards
    record.numbers = []
    found = verdict_of(record, ())
    assert found.shown == Shown.NOT_SHOWN and "; it was 0.8" in found.why, found.why


# Ended and finite


def test_a_script_that_raises_is_broken() -> None:
    place = Place("train.py", 30)
    record = classifier()
    record.ended = Ended(failure=Failure(type="ValueError", message="no such file", where=place), update=UPDATES)
    assert first(record).name == "script-stopped" and first(record).where == place
    assert shown(record) == Shown.BROKEN
    killed = classifier()
    killed.ended = Ended(status=-9)
    assert first(killed).name == "script-stopped" and "signal 9" in first(killed).message
    assert shown(killed) == Shown.BROKEN


def test_a_run_that_was_cut_is_not_broken() -> None:
    record = regressor()
    record.ended = Ended(is_cut=True, status=-24)
    assert said(record) == set()


def test_a_loss_that_is_not_finite_is_broken() -> None:
    record = regressor()
    record.losses[150:] = [(u, float("nan")) for u in range(150, UPDATES)]
    found = first(record)
    assert found.name == "run-diverged" and found.severity == Severity.ERROR and "update 151" in found.message
    assert shown(record) == Shown.BROKEN
    steps = empty()
    for one in steps.looked_updates[100:]:
        one.gradient_norm = float("inf")
    assert said(steps) == {"run-diverged"}


def test_the_row_that_is_not_finite_is_named() -> None:
    record = regressor()
    record.losses[150:] = [(u, math.nan) for u in range(150, UPDATES)]
    record.broken = Broken()
    assert "its batch" not in first(record).message and "are finite" in first(record).message
    named = Broken(rows=(1522,), count=1, column="[0]", position=2, value=math.nan, data="Subset", size=2700)
    origin = 'row 2,417 of frame, column "age"'
    record.broken = dataclasses.replace(named, is_numbered=True, origin=origin, where=Place("a.csv", 9))
    assert "row 1,522 of the 2,700 of Subset holds nan at place 2 of its [0]" in first(record).message
    assert first(record).message.endswith('It is row 2,417 of frame, column "age", a.csv:9')


def test_a_loss_that_jumps_and_stays_is_told_and_a_spike_is_not() -> None:
    record = regressor()
    record.losses[120:] = [(u, 500.0) for u in range(120, UPDATES)]
    assert said(record) == {"run-diverged"} and first(record).severity == Severity.WARNING
    spike = regressor()
    spike.losses[120:123] = [(u, 500.0) for u in range(120, 123)]
    assert said(spike) == set()


def test_skipped_steps_of_loss_scaling_are_no_fault() -> None:
    record = regressor()
    for n in (0, 1):
        record.looked_updates[n].gradient_norm = float("inf")
    record.losses[7] = 7, float("nan")
    assert said(record) == set()


# Weights


def test_an_output_layer_that_no_optimizer_holds_is_told_and_a_body_before_a_probe_is_not() -> None:
    record = classifier(0.25, 0.25)
    width = next(iter(record.trained_labels)).width
    head = dataclasses.replace(
        parameters()[-1], name="head.weight", shape=(width, 8), is_held=False, has_moved=False, model=MODEL
    )
    record.parameters = [*(dataclasses.replace(one, model=MODEL) for one in parameters()), head]
    assert "weights-stand-still" in said(record)
    record.parameters[-1] = dataclasses.replace(head, name="body.weight", shape=(width + 60, 8))
    assert "weights-stand-still" not in said(record)


def test_weights_that_stand_still_are_told_and_their_consequences_are_not() -> None:
    record = classifier(0.25, 0.25)
    record.parameters = parameters(has_moved=False)
    assert said(record) == {"weights-stand-still"} and first(record).severity == Severity.ERROR
    partly = regressor()
    partly.parameters = parameters(12) + parameters(3, has_moved=False)
    assert said(partly) == {"weights-stand-still"} and first(partly).severity == Severity.WARNING


def test_a_rate_of_zero_in_the_middle_is_told_and_at_the_ends_is_not() -> None:
    record = regressor()
    for one in record.looked_updates[90:]:
        one.rate = 0.0
    assert said(record) == {"weights-stand-still"}
    decayed = regressor()
    for one in (*decayed.looked_updates[:20], *decayed.looked_updates[185:]):
        one.rate = 0.0
    assert said(decayed) == set()


@pytest.mark.parametrize(("zero", "share"), [(range(51, 151), "0 in 81% of"), (range(51), "")])
def test_each_update_that_was_looked_at_stands_for_those_up_to_the_next(zero: range, share: str) -> None:
    record = regressor()
    record.looked_updates = [
        Update(number=n, optimizer=1, rate=0.0 if n in zero else 0.01, gradient_norm=1.0)
        for n in range(1, 151)
        if not n % Recorder.stride(n)
    ]
    told = [one.message for one in review(record)[0] if one.name == "weights-stand-still"]
    assert [share in one for one in told] == ([True] if share else [])


def test_gradients_that_vanish_from_the_start_are_told_and_those_of_a_learned_task_are_not() -> None:
    record = empty()
    for one in record.looked_updates:
        one.gradient_norm = 1e-9
    assert said(record) == {"weights-stand-still"}
    learned = empty()
    for one in learned.looked_updates[80:]:
        one.gradient_norm = 0.0
    assert said(learned) == set()


def test_one_still_tensor_a_table_and_frozen_weights_are_no_fault() -> None:
    record = regressor()
    record.parameters = (
        parameters(10)
        + parameters(1, has_moved=False)
        + parameters(3, has_moved=False, shape=(5000, 16))
        + parameters(20, has_moved=False, is_trainable=False, had_gradient=False)
    )
    assert said(record) == set()


def test_weights_without_gradients_are_a_note() -> None:
    record = regressor()
    record.parameters = parameters(4) + parameters(6, has_moved=False, had_gradient=False)
    assert said(record) == set()
    assert [one.severity for one in review(record).findings] == [Severity.NOTE]


# Seeing its data


def test_rows_that_are_never_drawn_are_told() -> None:
    record = regressor()
    record.drawn = [Drawn(data=TRAIN_SET, size=400, name="Rows", draws=Counter(list(range(64)) * 30), trains=True)]
    assert said(record) == {"partial-data"} and "64 of the 400" in first(record).message


def test_samplers_that_balance_and_short_runs_and_evaluation_sets_are_no_fault() -> None:
    rng = np.random.default_rng(0)
    weights = np.where(np.arange(1000) < 50, 10.0, 0.5)
    balanced = Counter(rng.choice(1000, 1600, p=weights / weights.sum()).tolist())
    assert len(balanced) < 600
    record = regressor()
    record.drawn = [
        Drawn(data=TRAIN_SET, size=1000, name="Rows", draws=balanced, trains=True),
        Drawn(data=TEST_SET, size=400, name="Rows", draws=Counter(list(range(20)) * 99)),
        Drawn(data=12, size=4000, name="Rows", draws=Counter(range(1000)), trains=True),
    ]
    assert said(record) == set()


def test_one_class_in_training_is_told_for_classes_and_for_yes_and_no() -> None:
    record = empty()
    for update in range(UPDATES):
        add_calls(record, of_classes([3] * 8, [3] * 8, update=update, trains=True, width=5))
    assert said(record) == {"partial-data"} and "class 3" in first(record).message
    binary = empty()
    for update in range(UPDATES):
        add_calls(binary, of_values([0.0] * 8, [0.1] * 8, update=update, trains=True, kind=LabelKind.BINARY))
    assert said(binary) == set()  # adversarial: nothing says that these are labels of rows
    add_calls(binary, of_values([0.0, 1.0] * 40, [0.1] * 80, update=UPDATES, kind=LabelKind.BINARY))
    assert "partial-data" in said(binary)
    wide = empty()  # of so many labels a row only some are read
    for update, trains in [*((n, True) for n in range(UPDATES)), (UPDATES, False)]:
        none = np.zeros((8, 64))
        add_calls(wide, of_values(none, none + 0.1, update=update, trains=trains, kind=LabelKind.BINARY))
    assert "partial-data" not in said(wide)
    queue = empty()  # a queue of others: the first is right
    for update in range(UPDATES):
        add_calls(queue, of_classes([0] * 8, [0] * 8, update=update, trains=True, width=65))
    assert said(queue) == set()


def test_the_same_batch_at_each_update_is_told_and_a_full_batch_is_not() -> None:
    record = empty()
    rng = np.random.default_rng(0)
    labels = np.arange(16) % 4
    for update in range(60):
        given = guesses_for(labels, 0.9, 4, rng)
        add_calls(record, of_classes(labels, given, update=update, trains=True, keys=np.arange(16)))
    assert said(record) == {"partial-data"} and "the same 16 rows" in first(record).message
    record.drawn[0].size = 16
    record.drawn[0].draws = Counter(list(range(16)) * 60)
    assert said(record) == set()


def test_a_batch_that_was_fetched_once_is_learned_by_heart_on_purpose() -> None:
    record, labels = empty(60), np.arange(16) % 4
    for update in range(60):
        given = guesses_for(labels, 0.2, 4, np.random.default_rng(update))
        add_calls(record, of_classes(labels, given, update=update, trains=True, keys=np.arange(16)))
    right = int((given == labels).sum())
    record.drawn[0].draws = Counter(range(32))  # and one that was fetched ahead
    assert said(record) == set()
    assert first(record).name == "partial-data" and first(record).severity == Severity.NOTE
    verdict = verdict_of(record, review(record).findings)
    assert verdict.shown == Shown.NOT_SHOWN and f"{right} of 16 were right" in verdict.why
    add_calls(record, of_classes(np.arange(40) % 4, np.zeros(40, int), update=60, width=4, keys=500 + np.arange(40)))
    assert said(record) == set()  # held-out rows are no better than a constant, and nobody asked for it
    record.drawn[0].draws = Counter(list(range(16)) * 60)  # an iterator that is made anew
    assert said(record) == {"partial-data"}
    record.drawn[0].draws = Counter([*range(16), *list(range(400)) * 10])
    assert said(record) == {"partial-data"}
    record.drawn[0].evaluated = Counter(list(range(400)) * 10)
    assert said(record) == set()


def _sorted_training(*, together: bool) -> Record:
    """Updates of one class each; or each update with a call for each class."""
    rng, record = np.random.default_rng(0), regressor()
    for update in range(80):
        for one in (0, 1, 2) if together else (update * 3 // 80,):
            labels = np.full(16, one)
            if not together:
                labels[0] = (one + 1) % 3
            add_calls(record, of_classes(labels, guesses_for(labels, 0.8, 3, rng), update=update, trains=True, width=3))
    return record


def test_batches_of_one_class_each_are_told_and_domains_that_alternate_are_not() -> None:
    assert said(_sorted_training(together=False)) == {"partial-data"}
    assert said(_sorted_training(together=True)) == set()


def _torn(share: float, columns: int = 20) -> Record:
    rng, record = np.random.default_rng(0), empty()
    labels = rng.integers(0, 4, ROWS)
    keys = np.where(rng.random(ROWS) < share, 7000 + np.arange(ROWS) % 10, np.arange(ROWS))
    for update in range(UPDATES):
        drawn = rng.permutation(ROWS)[:BATCH]
        add_calls(record, of_classes(labels[drawn], guesses_for(labels[drawn], 0.6, 4, rng), update=update, trains=True, width=4, keys=keys[drawn]))  # fmt: skip
    record.trained_rows[Output(LabelKind.CLASSES, 4)] = rng.standard_normal((ROWS, columns)), labels, keys
    return record


def test_equal_rows_with_unequal_labels_are_told() -> None:
    assert said(_torn(0.8)) == {"torn-labels"}
    assert "no model can be right at more than 0." in first(_torn(0.8)).message
    assert said(_torn(0.5)) == {"torn-labels"}


def test_a_row_whose_label_is_its_place_in_the_batch_is_not_torn() -> None:
    """The loss of pairs: each draw of a row has another place."""
    rng, record, places = np.random.default_rng(0), empty(), np.arange(BATCH)
    for update in range(UPDATES):
        drawn = rng.permutation(ROWS)[:BATCH]
        guesses = guesses_for(places, 0.6, BATCH, rng)
        add_calls(record, of_classes(places, guesses, update=update, trains=True, width=BATCH, keys=drawn))
    record.trained_rows[Output(LabelKind.CLASSES, BATCH)] = (
        rng.standard_normal((ROWS, 20)),
        np.zeros(ROWS),
        np.arange(ROWS),
    )
    assert "torn-labels" not in said(record)


def test_few_torn_rows_small_rows_mixed_rows_and_two_heads_are_no_fault() -> None:
    assert said(_torn(0.1)) == set()
    assert said(_torn(0.8, columns=3)) == set()
    assert said(dataclasses.replace(_torn(0.8), several_targets=UPDATES)) == set()
    rng, record = np.random.default_rng(0), empty()
    for update in range(UPDATES):  # each row has a label for each of two outputs
        keys = rng.permutation(ROWS)[:BATCH]
        for number in (0, 1):
            labels = (keys * 7919 // (number + 1)) % 3
            one = of_classes(labels, guesses_for(labels, 0.8, 3, rng), update=update, trains=True, width=3, keys=keys)
            add_calls(record, dataclasses.replace(one, output=Output(LabelKind.CLASSES, 3, number)))
    assert said(record) == set()


@pytest.mark.parametrize(
    ("widened", "faulty"),
    [(((32, 1), (32,)), True), (((5, 5, 1), (5, 5)), True),
     (((32, 1), ()), False), (((32, 7), (1, 7)), False), (None, False)],
)  # fmt: skip
def test_a_loss_of_all_pairs_is_told(widened: Any, faulty: bool) -> None:
    assert said(dataclasses.replace(regressor(), widened=widened)) == ({"widened-loss"} if faulty else set())


@pytest.mark.parametrize(("widened", "longer"), [(((8,), (8, 1)), "labels"), (((8, 1), (8,)), "outputs")])
def test_a_widened_loss_is_mended_where_the_dimension_is_too_many(widened: Any, longer: str) -> None:
    (finding,) = review(dataclasses.replace(regressor(), widened=widened)).findings
    assert finding.fix is not None and finding.fix.does.endswith(f"squeeze(-1) on the {longer}")


# Probes


@pytest.mark.parametrize(("model", "is_told"), [(MODEL, True), (99, False)])
def test_dropout_that_evaluation_mode_does_not_reach_is_told(model: int, is_told: bool) -> None:
    record = regressor()
    record.lasting_noise = [LastingNoise(model=model, operation="dropout", where=Place("train.py", 7))]
    found = review(record).findings
    assert [(one.name, one.where) for one in found] == ([("wrong-mode", Place("train.py", 7))] if is_told else [])


# What is evaluated


def _other_weights(record: Record, model: int = 2) -> Record:
    """The evaluation passes are of another model, whose weights stay the same."""
    record.passes = [dataclasses.replace(p, model=model, is_trained=False, weights=1.0) for p in record.passes]
    record.answers = [one if one.trains else dataclasses.replace(one, model=model) for one in record.answers]
    return record


def test_an_evaluated_model_that_never_changes_is_told() -> None:
    assert said(_other_weights(classifier(0.9, 0.25))) == {"other-weights-evaluated"}
    assert said(_other_weights(regressor(0.9, 0.0))) == {"other-weights-evaluated"}


def test_a_teacher_is_no_fault() -> None:
    record = regressor()
    rng = np.random.default_rng(1)
    for update in range(0, UPDATES, 2):  # asked at each update, and scored now and then
        number = add_pass(record, update, model=2, is_trained=False, weights=4.0, data=TRAIN_SET)
        if update % 50 == 0:
            labels = rng.standard_normal(50)
            add_calls(record, of_values(labels, 0.9 * labels, update=update, model=2, evaluation=number))
    assert said(record) == set()
    beside = regressor()  # scored beside the student, and better
    for update in (50, 100, 200):
        labels = 5 + 2 * rng.standard_normal(100)
        number = add_pass(beside, update, model=2, is_trained=False, weights=4.0)
        add_calls(beside, of_values(labels, labels, update=update, model=2, evaluation=number))
    assert said(beside) == set()


def test_the_wrong_mode_is_told_in_evaluation_and_in_training() -> None:
    record = regressor()
    record.answers = [one if one.trains else dataclasses.replace(one, is_noisy=True) for one in record.answers]
    assert said(record) == {"wrong-mode"}
    stays = regressor()
    stays.answers = [
        dataclasses.replace(one, is_noisy=one.trains and one.update <= UPDATES // 4) for one in stays.answers
    ]
    assert said(stays) == {"wrong-mode"}


def test_sampled_dropout_and_frozen_statistics_are_no_fault() -> None:
    record, rng = regressor(), np.random.default_rng(0)
    labels = 5 + 2 * rng.standard_normal(40)
    record.answers = [one for one in record.answers if one.trains]
    for update in (50, 100, 200):
        number = add_pass(record, update)
        for _ in range(20):
            values = labels + 0.3 * rng.standard_normal(40)
            add_calls(
                record, of_values(labels, values, update=update, is_noisy=True, keys=np.arange(40), evaluation=number)
            )
    assert said(record) == set()
    quiet = regressor()  # in evaluation mode all along, as with frozen statistics
    assert said(quiet) == set()


# What is kept


def _numbers(record: Record, name: str, values: list[float], source: str = "logged") -> list[int]:
    updates = [UPDATES * (n + 1) // len(values) for n in range(len(values))]
    record.numbers = [Number(update=u, name=name, value=v, source=source) for u, v in zip(updates, values)]
    return updates


def test_a_monitor_in_the_wrong_direction_is_told() -> None:
    record = regressor()
    record.best = [Best(name="val_accuracy", higher_is_better=False, values=(0.3, 0.6, 0.8, 0.9), kept=0)]
    assert said(record) == {"best-not-kept"}
    unknown = regressor()
    unknown.best = [Best(name="val_closeness", higher_is_better=True, values=(0.3, 0.6, 0.8, 0.9), kept=1)]
    assert said(unknown) == {"best-not-kept"}


@pytest.mark.parametrize(
    "best",
    [
        Best(name="val_loss", higher_is_better=False, values=(0.9, 0.4, 0.5, 0.6), kept=1),
        Best(name="val_loss", higher_is_better=False, values=(0.9, 0.41, 0.4, 0.6), kept=1),
        Best(name="val_loss", higher_is_better=False, values=(0.9, 0.4, 0.5, 0.6), kept=None),
        Best(name="val_closeness", higher_is_better=None, values=(0.9, 0.4, 0.5, 0.6), kept=3),
    ],
)
def test_what_was_best_and_is_kept_is_no_fault(best: Best) -> None:
    record = regressor()
    record.best = [best]
    assert said(record) == set()


def test_the_worst_checkpoint_restored_is_told_and_the_best_is_not() -> None:
    for at, faulty in ((0, True), (2, False)):
        record = regressor()
        updates = _numbers(record, "val_loss", [0.9, 0.5, 0.3, 0.6, 0.7])
        record.kept = [KeptWeights(update=u, weights=float(u), how="copied") for u in updates]
        record.loaded = [
            Loaded(update=UPDATES, model=MODEL, before=1.0, after=float(updates[at]), missing=0, tensors=4)
        ]
        assert said(record) == ({"best-not-kept"} if faulty else set())


def test_by_any_number_that_has_its_best_there_nothing_is_said() -> None:
    record = regressor()
    updates = _numbers(record, "val_loss", [0.9, 0.5, 0.3, 0.6, 0.7])
    record.numbers += [
        Number(update=u, name="val_f1", value=v, source="logged") for u, v in zip(updates, [0.1, 0.2, 0.3, 0.8, 0.5])
    ]
    record.kept = [KeptWeights(update=updates[3], weights=7.0, how="saved", path="best.pt")]
    assert said(record) == set()
    ambiguous = regressor()
    _numbers(ambiguous, "val_loss", [0.9, 0.5, 0.3, 0.6, 0.7])
    ambiguous.numbers += [dataclasses.replace(one, value=one.value + 1) for one in ambiguous.numbers]
    ambiguous.kept = [KeptWeights(update=updates[0], weights=7.0, how="saved", path="best.pt")]
    assert said(ambiguous) == set()


def test_a_restore_without_effect_is_marked_unless_the_last_weights_are_the_best() -> None:
    for last, marked in ((0.2, False), (0.8, True)):
        record = regressor()
        _numbers(record, "val_loss", [0.9, 0.5, 0.3, 0.6, last])
        record.loaded = [Loaded(update=UPDATES, model=MODEL, before=9.5, after=9.5, missing=0, tensors=4)]
        (row,) = (row for row in sheet_of(record).pieces if row.what == "loaded")
        assert (row.mark == "changed nothing") == marked


def test_a_restore_without_effect_is_told() -> None:
    record = regressor()
    updates = _numbers(record, "val_loss", [0.9, 0.5, 0.3, 0.6, 0.9])
    record.kept = [KeptWeights(update=updates[2], weights=9.5, how="copied")]
    record.loaded = [Loaded(update=UPDATES, model=MODEL, before=9.5, after=9.5, missing=0, tensors=4)]
    assert said(record) == {"best-not-kept"}
    record.kept = [
        KeptWeights(update=UPDATES, weights=9.5, how="saved", path="last.pt")
    ]  # saved at the end, and read back
    assert said(record) == set()
    record.kept = []  # no copy was made: a reference to the weights went on with the training
    assert said(record) == {"best-not-kept"}
    names = regressor()
    names.loaded = [Loaded(update=UPDATES, model=MODEL, before=9.5, after=9.5, missing=12, tensors=12)]
    assert said(names) == {"best-not-kept"}
    head = regressor()
    head.loaded = [Loaded(update=UPDATES, model=MODEL, before=9.5, after=3.0, missing=2, tensors=12)]
    assert said(head) == set()


# Learning


def test_held_out_rows_at_the_constant_are_told() -> None:
    for record in (regressor(0.9, 0.0), classifier(0.25, 0.25)):
        record.trained_rows = {}
        assert said(record) == {"held-out-at-constant"}
        assert shown(record) == Shown.DOES_NOT_LEARN


def _flat(**more: Any) -> str:
    """What is advised for a classifier that learns nothing, and answers one class only where it is evaluated."""
    record = classifier(0.25, 0.25, **more)
    for one in record.answers:
        if not one.trains and one.guesses is not None:
            one.guesses[:] = 0
    inputs, labels, keys = record.trained_rows[Output(LabelKind.CLASSES, 4)]
    return advise(record, inputs, labels, keys)


def advise(record: Record, inputs: np.ndarray, labels: np.ndarray, keys: np.ndarray) -> str:
    record.trained_rows = {Output(LabelKind.CLASSES, 4): (inputs, labels, keys)}
    finding = next(one for one in review(record).findings if one.name == "held-out-at-constant")
    assert finding.fix is not None
    return finding.fix.does


def test_what_is_advised_rests_on_what_was_measured() -> None:
    assert "one answer for all rows; the inputs do tell" in _flat()
    assert "% of the labels that were trained on are class 0" in _flat(shares=[0.88, 0.04, 0.04, 0.04])
    record, rng = classifier(0.25, 0.25), np.random.default_rng(3)
    _, labels, keys = record.trained_rows[Output(LabelKind.CLASSES, 4)]
    noise = dataclasses.replace(record.answers[-1], inputs=rng.standard_normal((360, 8)))
    record.answers[-1] = noise
    assert "random or unrelated" in advise(record, rng.standard_normal((ROWS, 8)), labels, keys)
    losses = dict(record.losses)
    record.losses = [(u, 9000 - 10 * u + loss) for u, loss in losses.items()]
    assert "that is minimized" in advise(record, rng.standard_normal((ROWS, 8)), labels, keys)
    record.losses = [(one.update, 65536 * (one.loss or 0.0)) for one in record.answers if one.trains]  # loss scaling
    assert "random or unrelated" in advise(record, rng.standard_normal((ROWS, 8)), labels, keys)
    record.losses[5:] = [(update, loss / 2) for update, loss in record.losses[5:]]  # halved early
    assert "random or unrelated" in advise(record, rng.standard_normal((ROWS, 8)), labels, keys)
    record.losses = [(u, 9000 - 10 * u + loss) for u, loss in losses.items()]
    record.is_scaled = True
    assert "random or unrelated" in advise(record, rng.standard_normal((ROWS, 8)), labels, keys)


def test_rows_that_were_learned_are_told_beside_held_out_ones_that_were_not() -> None:
    record = classifier(0.9, 0.25)
    record.trained_rows = {}
    finding = next(one for one in review(record).findings if one.name == "held-out-at-constant")
    assert finding.fix is not None and "evaluation rows are made as these were" in finding.fix.does


def test_training_rows_are_asked_where_no_held_out_labels_were_seen() -> None:
    for right in (0.25, 0.9):
        record = classifier(right)
        record.answers, record.trained_rows = [one for one in record.answers if one.trains], {}
        record.numbers = []
        assert said(record) == ({"held-out-at-constant"} if right < 0.5 else set())
        assert shown(record) == (Shown.DOES_NOT_LEARN if right < 0.5 else Shown.NOT_SHOWN)
        assert "no held-out labels were seen beside answers" in verdict_of(record, ()).why


def test_a_gain_that_is_sure_and_tiny_is_no_learning_and_no_fault() -> None:
    rng, record = np.random.default_rng(0), empty()
    labels = rng.standard_normal(60_000)
    add_calls(
        record,
        of_values(labels, 0.02 * labels, update=150, trains=True),
        of_values(labels, 0.01 * labels, update=UPDATES),
    )
    assert shown(record) == Shown.NOT_SHOWN
    small = Score(name="log loss", value=7.0, constant=7.1, errors=16.8, room=0.014)
    assert "learning counts from 3% of the way" in tell(small, "300 rows")
    assert "counts" not in tell(dataclasses.replace(small, room=0.04), "300 rows")


def test_a_run_that_was_cut_early_does_not_accuse() -> None:
    record = regressor(0.9, 0.0)
    record.ended = Ended(is_cut=True)
    record.trainings = [Training(number=1, kind="loop", begins=0, ends=UPDATES, planned=100_000, is_cut=True)]
    assert said(record) == set()
    assert shown(record) == Shown.NOT_SHOWN
    assert "200 of 100,000 planned updates" in verdict_of(record, ()).why


def test_a_sweep_whose_last_run_fails_is_no_fault() -> None:
    record = regressor()
    rng = np.random.default_rng(3)
    record.updates = 2 * UPDATES
    record.trainings.append(Training(number=2, kind="loop", begins=UPDATES, ends=2 * UPDATES, models=(5,)))
    labels = 5 + 2 * rng.standard_normal(200)
    add_calls(record, of_values(labels, 5 + rng.standard_normal(200), update=2 * UPDATES, trains=True, model=5))
    number = add_pass(record, 2 * UPDATES, model=5)
    add_calls(record, of_values(labels, 5 + rng.standard_normal(200), update=2 * UPDATES, model=5, evaluation=number))
    assert said(record) == set()
    assert [one.shown for _, one in verdicts(record)] == [Shown.LEARNS, Shown.DOES_NOT_LEARN]
    assert shown(record) == Shown.LEARNS_IN_PART
    record.numbers += [Number(update=u, name="val_loss", value=v, source="logged") for u, v in ((150, 0.2), (350, 9.0))]
    assert [row.last for row in sheet_of(record).own if row.name == "val_loss"] == [
        0.2
    ]  # of the one that the verdict is of


def test_a_number_of_one_training_says_nothing_of_another_model() -> None:
    record = empty()
    record.updates = 2 * UPDATES
    record.trainings[0].models = (1,)
    second = Training(number=2, kind="fit", begins=UPDATES, ends=2 * UPDATES, models=(2,), where=Place("train.py", 30))
    record.trainings.append(second)
    record.numbers = [Number(update=u, name="val_accuracy", value=0.98, source="logged") for u in (350, 400)]
    assert shown(record) == Shown.LEARNS
    assert verdict_of(record, ()).why.startswith(
        f"training 2 of 2, after {UPDATES} updates its own val_accuracy is 0.98"
    )
    record.trainings[1].models = (1,)  # it goes on with the model of the first
    assert verdict_of(record, ()).why.startswith(f"after {2 * UPDATES} updates its own val_accuracy is 0.98")
    record.trainings[1].models = (2,)
    record.numbers.insert(0, dataclasses.replace(record.numbers[0], update=150))
    assert verdict_of(record, ()).why.startswith(f"after {2 * UPDATES} updates its own val_accuracy is 0.98")


def test_trials_that_the_check_cut_short_are_not_judged() -> None:
    record = regressor()
    labels = 5 + 2 * np.random.default_rng(5).standard_normal(200)
    guessed = np.full(200, 5.0)
    for number in (2, 3):
        model, begins = number + 3, record.updates
        record.updates = begins + 20
        cut = Training(number=number, kind="loop", begins=begins, ends=begins + 20, models=(model,), is_cut=True)
        record.trainings.append(cut)
        add_calls(record, of_values(labels, guessed, update=begins + 10, trains=True, model=model))
        add_calls(record, of_values(labels, guessed, update=begins + 20, model=model, evaluation=number))
        record.numbers.append(Number(update=begins + 20, name="val_loss", value=99.0, source="logged"))
    record.trainings[-1].ends, record.ended = None, Ended(is_cut=True)
    sheet, verdict = sheet_of(record), verdict_of(record, ())
    assert verdict.shown == Shown.LEARNS and verdict.why.startswith(f"training 1 of 3, after {UPDATES} updates")
    assert not any(row.mark for row in sheet.scores)
    assert all(row.last != 99.0 for row in sheet.own)
    assert [row.shown for row in sheet.trainings] == ["learns", "not shown", "not shown"]
    record.trainings[0].is_cut = True  # each was cut: the longest stands for them
    assert verdict_of(record, ()).why.startswith("training 1 of 3, ")
    assert not any(row.mark for row in sheet_of(record).scores)
    record.trainings[0].models = (5,)  # one model in all of them: parts of one training
    record.answers = [dataclasses.replace(one, model=5) for one in record.answers]
    assert verdict_of(record, ()).why.startswith(f"after {record.updates} updates")


def test_two_sets_at_the_same_update_stay_apart() -> None:
    record = regressor()
    labels = 5 + 2 * np.random.default_rng(5).standard_normal(300)
    add_calls(record, of_values(labels, labels, update=UPDATES, data=12, evaluation=add_pass(record, UPDATES, data=12)))
    assert sorted(len(rows.labels) for rows in evaluated_rows(record)) == [200, 300]


def test_rows_that_were_trained_on_are_not_held_out() -> None:
    record = classifier()
    record.answers = [
        one if one.trains else dataclasses.replace(one, keys=1000 + np.arange(360)) for one in record.answers
    ]
    record.numbers, record.trained_rows = [], {}
    assert not held_out_rows(record)
    assert shown(record) == Shown.NOT_SHOWN
    few = classifier()  # few different rows: equal ones are no sign
    few.answers = [
        one if one.trains else dataclasses.replace(one, keys=1000 + np.arange(360) % 8) for one in few.answers
    ]
    assert held_out_rows(few)


def test_real_against_made_rows_cannot_be_judged() -> None:
    record = empty()
    for update in range(UPDATES):
        for truth in (1.0, 0.0):
            add_calls(record, of_values([truth] * 16, [0.5] * 16, update=update, trains=True, kind=LabelKind.BINARY))
    assert said(record) == set()
    assert shown(record) == Shown.CANNOT_BE_JUDGED


def test_a_contrastive_loss_cannot_be_judged() -> None:
    record = empty()
    for update in range(UPDATES):
        add_calls(record, of_classes(np.arange(16), np.roll(np.arange(16), update % 2), update=update, trains=True))
    assert said(record) == set()
    assert shown(record) == Shown.CANNOT_BE_JUDGED


def test_rows_that_come_again_count_once() -> None:
    """Five positions of one batch, answered in each update, are five; rows are told apart by their numbers where no keys are."""
    again, numbered = empty(), empty()
    for update in range(UPDATES):
        labels = np.array([4, 6, 1, 2, 3])
        add_calls(again, of_classes(labels, labels, update=update, trains=True, width=7, per_row=5))
        drawn = update % 6
        add_calls(
            numbered, of_classes([drawn], [drawn], update=update, trains=True, width=7, numbers=np.array([drawn]))
        )
    for record, told in ((again, "5 training positions"), (numbered, "6 training rows")):
        found = verdict_of(record, ())
        assert found.shown == Shown.NOT_SHOWN
        assert found.why == f"after 200 updates too few labels were seen to tell: those of {told}"


def test_a_sample_in_which_the_rare_class_hardly_occurs_tells_nothing() -> None:
    record = empty()
    labels = np.zeros(512)
    labels[:3] = 1
    values = np.where(labels > 0, 0.4, 0.01)
    for update, total in ((UPDATES, 4000),):
        call = of_values(labels, values, update=update, kind=LabelKind.BINARY)
        add_calls(record, dataclasses.replace(call, total=total))
    _numbers(record, "val_precision", [0.31, 0.5, 0.68])
    found = verdict_of(record, ())
    assert found.shown == Shown.NOT_SHOWN
    assert "512 evaluation rows were kept of 4,000, of which only 3 have another label" in found.why
    assert "its own val_precision went from 0.31 to 0.68" in found.why and "standard errors" not in found.why


def test_no_training_cannot_be_judged_and_own_numbers_can_show_learning() -> None:
    assert shown(Record()) == Shown.CANNOT_BE_JUDGED
    record = empty()
    _numbers(record, "val_accuracy", [0.4, 0.6, 0.9])
    record.trained_labels = {Output(LabelKind.CLASSES, 2): TrainedLabels(classes=Counter({0: 500, 1: 500}))}
    assert shown(record) == Shown.LEARNS
    _numbers(record, "val_accuracy", [0.4, 0.6, 0.9], "printed")
    assert shown(record) != Shown.LEARNS


def test_a_cross_entropy_of_pixels_learns_by_log_loss_alone() -> None:
    """A rare class that is never answered: accuracy is that of the constant, and the probabilities tell."""
    rng, record = np.random.default_rng(0), empty()
    labels = (rng.random(2000) < 0.05).astype(int)
    losses = np.where(labels == 1, -np.log(0.35), -np.log(0.98))
    for trains in (True, False):
        one = of_classes(labels, np.zeros(2000, int), update=UPDATES - trains, trains=trains, width=2)
        add_calls(record, dataclasses.replace(one, log_losses=losses))
    assert shown(record) == Shown.LEARNS


# Parts


def test_a_class_without_training_rows_is_told() -> None:
    for new in (2, 3):
        record = classifier(0.9, 0.85)
        record.trained_rows = {}
        labels = record.trained_labels[Output(LabelKind.CLASSES, 4)].classes
        del labels[new]
        assert said(record) == {"untrained-class"} and f"class {new}" in first(record).message


def _never(share: float, width: int = 4) -> Record:
    """The last class is never answered."""
    rng, record = np.random.default_rng(0), empty()
    shares = np.full(width, (1 - share) / (width - 1))
    shares[-1] = share
    for update in range(0, UPDATES + 1, 10):
        labels = rng.choice(width, 400, p=shares)
        given = np.where(labels == width - 1, 0, guesses_for(labels, 0.95, width - 1, rng))
        given = np.where((labels < width - 1) & (rng.random(400) < 0.97), labels, given)
        add_calls(record, of_classes(labels, given, update=update, trains=update < UPDATES, width=width))
    return record


def test_a_class_that_is_never_answered_is_told_and_a_rare_one_or_a_rare_token_is_not() -> None:
    assert said(_never(0.25)) == {"unlearned-part"}
    assert said(_never(0.15)) == {"unlearned-part"}
    assert said(_never(0.01)) == set()
    rng, record = np.random.default_rng(0), empty()
    shares = 1 / np.arange(1, 41)
    for update in range(0, UPDATES + 1, 5):  # a language model: rare tokens are never answered
        labels = rng.choice(40, 800, p=shares / shares.sum())
        given = np.where(labels < 15, guesses_for(labels, 0.7, 40, rng), 0)
        add_calls(record, of_classes(labels, given, update=update, trains=update < UPDATES, width=40))
    assert said(record) == set()


def test_a_class_of_a_curriculum_that_was_hardly_drawn_is_no_fault() -> None:
    record = _never(0.25)
    output = Output(LabelKind.CLASSES, 4)
    record.answers = [one for one in record.answers if not one.trains]
    record.trained_labels[output].classes = Counter({0: 3000, 1: 3000, 2: 3000, 3: 200})
    assert said(record) == set()


def test_two_classes_that_are_taken_for_each_other_are_told() -> None:
    rng, record = np.random.default_rng(0), empty()
    for update in range(0, UPDATES + 1, 10):
        labels = rng.integers(0, 8, 800)
        given = guesses_for(labels, 0.97, 8, rng)
        given = np.where((labels == 3) & (rng.random(800) < 0.55), 5, given)
        add_calls(record, of_classes(labels, given, update=update, trains=update < UPDATES, width=8))
    assert said(record) == {"unlearned-part"} and "class 3" in first(record).message


def test_an_output_that_is_not_learned_is_told_for_numbers_and_for_yes_and_no() -> None:
    record = regressor(width=3)
    for n, one in enumerate(record.answers):
        assert one.values is not None
        one.values[:, 1] = 5 + np.random.default_rng(n).standard_normal(len(one.values))
    assert said(record) == {"unlearned-part"} and "output 2 of 3" in first(record).message
    rng, binary = np.random.default_rng(0), empty()
    for update in (150, UPDATES):
        labels = (rng.random((400, 3)) < 0.4).astype(float)
        values = np.clip(0.3 + 0.4 * labels + 0.1 * rng.standard_normal((400, 3)), 0, 1)
        values[:, 2] = rng.random(400)
        add_calls(binary, of_values(labels, values, update=update, trains=update < UPDATES, kind=LabelKind.BINARY))
    assert said(binary) == {"unlearned-part"} and "answer 3 of 3" in first(binary).message


# A simple learner


def test_a_simple_learner_that_is_clearly_better_is_told() -> None:
    record = classifier(0.6, 0.5)
    assert said(record) == {"simple-learner-better"}
    found = first(record)
    assert float(found.measured["simple_learner"]) > 0.9 and float(found.measured["model"]) < 0.6
    stuck = classifier(0.25, 0.25)
    assert said(stuck) == {"held-out-at-constant"} and "nearest rows" in first(stuck).message


def test_a_simple_learner_is_a_note_while_the_last_training_still_falls() -> None:
    record = classifier(0.6, 0.5)
    assert first(record).severity == Severity.WARNING
    begins = 3 * UPDATES // 4
    record.trainings = [dataclasses.replace(record.trainings[0], ends=begins)]
    record.trainings.append(dataclasses.replace(record.trainings[0], begins=begins, ends=None))
    for n, one in enumerate(record.answers):
        if one.trains:  # the first has come to rest, low; the second begins high
            loss = 0.02 if one.update < begins else 2.0 - 1.5 * (one.update - begins) / (UPDATES - begins)
            record.answers[n] = dataclasses.replace(one, loss=loss)
    assert first(record).severity == Severity.NOTE


def test_a_model_as_good_as_a_simple_learner_and_a_balanced_one_are_no_fault() -> None:
    good = classifier(0.99, 0.97)
    assert said(good) == set()
    rng, record = np.random.default_rng(0), classifier(shares=[0.9, 0.1], width=2)
    last = record.answers[-1]
    inputs = rng.standard_normal(
        (len(last.labels), 8)
    )  # nothing tells the classes apart; a balancing sampler answers both
    given = guesses_for(last.labels, 0.7, 2, rng)
    record.answers[-1] = dataclasses.replace(last, inputs=inputs, guesses=given)
    stored = record.trained_rows[last.output]
    record.trained_rows[last.output] = rng.standard_normal(stored[0].shape), stored[1], stored[2]
    assert "simple-learner-better" not in said(record)


def test_a_simple_learner_of_numbers() -> None:
    rng = np.random.default_rng(0)
    inputs, weights = rng.standard_normal((700, 6)), rng.standard_normal(6)
    labels = inputs @ weights
    for good in (0.3, 0.97):
        record = empty()
        add_calls(record, of_values(labels[:400], good * labels[:400], update=150, trains=True, keys=np.arange(400)))
        record.trained_rows[Output(LabelKind.NUMBERS, 1)] = inputs[:400], labels[:400, None], np.arange(400)
        values = good * labels[400:] + (1 - good) * rng.standard_normal(300)
        add_calls(
            record, of_values(labels[400:], values, update=UPDATES, inputs=inputs[400:], keys=np.arange(400, 700))
        )
        assert said(record) == ({"simple-learner-better"} if good < 0.5 else set())


# Numbers


def _with_loss(record: Record, loss: list[float]) -> Record:
    calls = [one for one in record.answers if one.trains]
    others = [one for one in record.answers if not one.trains]
    calls = [dataclasses.replace(one, loss=loss[min(n, len(loss) - 1)]) for n, one in enumerate(calls)]
    return dataclasses.replace(record, answers=[*calls, *others], trained_rows={})


def test_a_loss_of_guessing_beside_a_high_accuracy_is_told_and_a_slow_training_is_not() -> None:
    assert said(_with_loss(classifier(0.97, 0.95), [1.35] * UPDATES)) == {"numbers-disagree"}
    assert said(_with_loss(classifier(0.97, 0.95, 10), [2.2] * UPDATES)) == {"numbers-disagree"}
    slow = _with_loss(classifier(0.97, 0.95), np.linspace(1.38, 1.1, UPDATES).tolist())
    assert said(slow) == set()


@pytest.mark.parametrize(
    ("name", "value", "source", "faulty"),
    [
        ("val_accuracy", 0.2, "logged", True),
        ("eval_acc", 0.5, "history", True),
        ("test_acc", 20.0, "returned", True),
        ("test accuracy", 0.04, "printed", False),
        ("val_balanced_accuracy", 0.2, "logged", False),
        ("train_acc", 0.2, "logged", False),
        ("best_val_acc", 0.2, "logged", False),
        ("val_accuracy", 0.86, "logged", False),
        ("val_accuracy", 86.0, "logged", False),
        ("val_exact", 0.0, "logged", True),
        ("exact match", 0.0, "printed", True),
        ("bleu", 0.0, "printed", False),
        ("val_f1", 0.0, "logged", True),
        ("test_auc", 0.2, "returned", True),
        ("auc", 0.2, "printed", False),
        ("val_auc", 0.8, "logged", False),
    ],
)
def test_own_numbers_beside_the_records(name: str, value: float, source: str, faulty: bool) -> None:
    record = dataclasses.replace(classifier(0.9, 0.86), trained_rows={})
    record.numbers = [Number(update=UPDATES, name=name, value=value, source=source)]
    assert said(record) == ({"numbers-disagree"} if faulty else set())


def test_evaluated_rows_far_above_training_rows_are_told_and_dropout_is_not() -> None:
    record = classifier(0.55, 0.9)
    record.trained_rows = {}
    assert said(record) == {"numbers-disagree"}
    noisy = dataclasses.replace(classifier(0.65, 0.9), trained_rows={})
    noisy.answers = [dataclasses.replace(one, is_noisy=one.trains) for one in noisy.answers]
    assert said(noisy) == set()
    mixed = dataclasses.replace(record, several_targets=UPDATES)
    assert said(mixed) == set()
    fast = dataclasses.replace(classifier(0.45, 0.9), trained_rows={})  # its rows are those of several models
    fast.answers = [dataclasses.replace(one, loss=2.0 - one.update / UPDATES) for one in fast.answers]
    assert said(fast) == set()


@pytest.mark.parametrize(("shuffled", "faulty"), [(False, False), (True, True)])
def test_scores_that_are_ranked_alike_and_cut_elsewhere_do_not_disagree(shuffled: bool, faulty: bool) -> None:
    """Probabilities given to a loss of logits: their training rows are cut where a logit is 0, and all answered yes."""
    rng, record = np.random.default_rng(0), empty()
    for update in (UPDATES - 2, UPDATES - 1, UPDATES):
        labels = (rng.random(400) < 0.5).astype(float)
        values = np.clip(0.5 + 0.35 * (2 * labels - 1) + 0.1 * rng.standard_normal(400), 0.01, 0.99)
        trains = update < UPDATES
        values = 0.5 + 0.5 * values if trains else values
        values = rng.permutation(values) if trains and shuffled else values
        add_calls(record, of_values(labels, values, update=update, trains=trains, kind=LabelKind.BINARY))
    assert ("numbers-disagree" in [one.name for one in QUESTIONS.values() if ask(one, record)]) == faulty


def test_a_ranking_below_guessing_is_told() -> None:
    rng, record = np.random.default_rng(0), empty()
    labels = (rng.random(400) < 0.4).astype(float)
    for update, sign in ((150, 1), (UPDATES, -1)):
        values = np.clip(0.4 + sign * 0.3 * (labels - 0.4) + 0.1 * rng.standard_normal(400), 0, 1)
        add_calls(record, of_values(labels, values, update=update, trains=update < UPDATES, kind=LabelKind.BINARY))
    names = [one.name for one in QUESTIONS.values() if ask(one, record)]
    assert "numbers-disagree" in names
    assert said(record) == {"held-out-at-constant"}


# Folds and leaks


def _folds(*, goes_on: bool, tasks: bool = False) -> Record:
    """Two folds; or two tasks with rows of their own, of which the second is evaluated on the first one's."""
    rng, record = np.random.default_rng(0), empty()
    labels = rng.integers(0, 3, 600)
    parts = (np.arange(300), np.arange(300, 600)) if tasks else (np.arange(200, 600), np.r_[0:200, 400:600])
    held = (np.arange(590, 600), np.arange(100)) if tasks else (np.arange(200), np.arange(200, 400))
    for fold in (0, 1):
        for update in range(fold * 100, fold * 100 + 100):
            drawn = rng.permutation(parts[fold])[:40]
            given = guesses_for(labels[drawn], 0.9, 3, rng)
            add_calls(record, of_classes(labels[drawn], given, update=update, trains=True, width=3, keys=drawn))
        given = guesses_for(labels[held[fold]], 0.9, 3, rng)
        number = add_pass(record, fold * 100 + 100, data=20 + fold)
        add_calls(record, of_classes(labels[held[fold]], given, update=fold * 100 + 100, width=3, keys=held[fold], data=20 + fold, evaluation=number))  # fmt: skip
    record.trainings = [
        Training(number=1, kind="loop", begins=0, ends=100, weights_before=1.0, weights_after=2.0),
        Training(
            number=2, kind="loop", begins=100, ends=200, weights_before=2.0 if goes_on else 1.5, weights_after=3.0
        ),
    ]
    return record


def test_a_fold_that_begins_with_trained_weights_is_told() -> None:
    assert said(_folds(goes_on=True)) == {"fold-begins-trained"}
    assert said(_folds(goes_on=False)) == set()
    assert said(_folds(goes_on=True, tasks=True)) == set()


def _near(share: float) -> Record:
    rng, record = np.random.default_rng(0), empty()
    train = rng.standard_normal((400, 10))
    test = rng.standard_normal((200, 10))
    twice = int(share * 200)
    test[:twice] = train[:twice] + 0.05 * rng.standard_normal((twice, 10))
    train_labels, labels = (x[:, 0] + 0.2 * rng.standard_normal(len(x)) for x in (train, test))
    add_calls(record, of_values(train_labels, 0.9 * train[:, 0], update=150, trains=True, keys=np.arange(400)))
    record.trained_rows[Output(LabelKind.NUMBERS, 1)] = train, train_labels[:, None], np.arange(400)
    add_calls(record, of_values(labels, 0.9 * test[:, 0], update=UPDATES, inputs=test, keys=1000 + np.arange(200)))
    return record


def test_rows_that_were_measured_twice_are_told() -> None:
    assert said(_near(0.6)) == {"rows-measured-twice"}
    assert said(_near(0.3)) == {"rows-measured-twice"}
    assert said(_near(0.0)) == set()
    assert said(_near(0.05)) == set()


def test_a_target_among_the_inputs_is_told_and_a_slow_series_is_not() -> None:
    for noise in (0.0, 0.01):
        record, rng = _near(0.0), np.random.default_rng(1)
        inputs, labels, keys = record.trained_rows[Output(LabelKind.NUMBERS, 1)]
        inputs = inputs.copy()
        inputs[:, 4] = 3 * labels[:, 0] + 1 + noise * rng.standard_normal(len(labels))
        record.trained_rows[Output(LabelKind.NUMBERS, 1)] = inputs, labels, keys
        last = record.answers[-1]
        record.answers[-1] = dataclasses.replace(last, values=last.labels + 0.05, inputs=None)
        assert said(record) == (set() if noise else {"target-among-inputs"})
    record = classifier(0.99, 0.99)
    inputs, labels, keys = record.trained_rows[Output(LabelKind.CLASSES, 4)]
    record.trained_rows[Output(LabelKind.CLASSES, 4)] = np.concatenate([inputs, labels[:, None] * 0.5], 1), labels, keys
    assert said(record) == {"target-among-inputs"}


# The review


def test_an_error_of_a_question_is_ours_and_the_others_are_asked() -> None:
    record = classifier(0.25, 0.25)
    record.lasting_noise = [None]  # type: ignore[list-item]
    found, errors = review(record)
    assert "held-out-at-constant" in {one.name for one in found}
    assert any(text.startswith("wrong-mode: AttributeError") for text in errors)


def test_findings_are_few_and_in_the_order_of_worth() -> None:
    record = classifier(0.25, 0.25)
    record.looked_updates = [Update(number=n, optimizer=1, rate=0.0, gradient_norm=1e-9) for n in range(1, UPDATES + 1)]
    record.parameters = parameters(has_moved=False)
    record.lasting_noise = [LastingNoise(model=MODEL, operation="dropout", where=None)]
    names = [one.name for one in review(record).findings]
    assert names == ["weights-stand-still", "wrong-mode"]
    assert all(isinstance(one.proof, Proof) for one in review(record).findings)


def test_weights_that_are_not_finite_at_the_end_are_told() -> None:
    record = empty()
    record.parameters[1].size_after = float("nan")
    assert said(record) == {"run-diverged"}
    record.parameters[1].size_before = float("nan")  # it began so: nothing happened in the run
    assert said(record) == set()


def test_a_rare_class_is_not_answered_in_the_first_updates() -> None:
    def seldom(updates: int) -> Record:
        record = classifier(0.9, 0.9, shares=(0.3, 0.3, 0.2, 0.2), updates=updates)
        record.trained_rows = {}
        record.answers = [
            dataclasses.replace(one, guesses=np.where(one.guesses == 3, 0, one.guesses)) for one in record.answers
        ]
        return record

    assert "unlearned-part" in said(seldom(UPDATES))
    assert "unlearned-part" not in said(seldom(60))


def test_weights_that_answer_like_a_constant_once_they_were_loaded_are_told() -> None:
    record = classifier(0.95, 0.95)
    known = record.passes[-1]
    add_pass(record, update=UPDATES, weights=known.weights, model=99, data=77)
    loaded = record.passes[-1]
    record.loaded = [
        Loaded(
            update=UPDATES, model=99, before=0.0, after=known.weights, missing=0, tensors=4, where=Place("train.py", 70)
        )
    ]
    last = [one for one in record.answers if one.evaluation == known.number]
    flat = [
        dataclasses.replace(one, guesses=np.zeros_like(one.labels), log_losses=None, model=99, data=77, keys=None,
                            evaluation=loaded.number, update=UPDATES)
        for one in last
    ]  # fmt: skip
    record.answers += flat
    found = [one for one in review(record).findings if one.name == "other-weights-evaluated"]
    assert len(found) == 1 and "after they were loaded" in found[0].message and found[0].where == Place("train.py", 70)
    record.loaded[0].after = 12.5  # other weights
    assert "other-weights-evaluated" not in said(record)


def test_a_small_gain_on_held_out_rows_beside_none_in_training_is_not_learning() -> None:
    record = classifier(0.25, 0.34)
    (held,) = held_out_rows(record)
    assert held.learned and max(one.errors for one in held.scores) < 6
    assert shown(record) == Shown.NOT_SHOWN
    assert shown(classifier(0.9, 0.34)) == Shown.LEARNS


# Accumulation


def accumulating(size: int, batches: int) -> Record:
    """A training that steps once in so many batches, and whose log multiplies the loss before it is divided."""
    record = classifier()
    losses = np.linspace(2.0, 1.0, batches)
    record.updates = batches // size
    record.losses = [(number // size, value / size) for number, value in enumerate(losses)]
    record.looked_updates = [Update(number=n + 1, optimizer=1, rate=0.1) for n in range(record.updates)]
    record.numbers = [
        Number(update=n // size, name="loss/train", value=round(losses[n] * size, 4), source="printed")
        for n in range(0, batches, 3 * size)
    ]
    return record


def test_a_loss_that_is_multiplied_before_it_is_divided_is_noted() -> None:
    noted = {f.name: f for f in review(accumulating(8, 400)).findings}
    assert "numbers-disagree" in noted and "64 times what backward was called on" in noted["numbers-disagree"].message
    assert noted["numbers-disagree"].severity == Severity.NOTE
    few = accumulating(8, 400)
    few.numbers = few.numbers[:3]
    assert "numbers-disagree" in {f.name for f in review(few).findings}
    sound = accumulating(8, 400)
    sound.numbers = [dataclasses.replace(one, value=one.value / 8) for one in sound.numbers]
    assert "numbers-disagree" not in said(sound)


def test_a_last_window_that_is_never_applied_is_noted() -> None:
    noted = {f.name: f for f in review(accumulating(8, 406)).findings}
    assert "the last 6 of 406 batches" in noted["partial-data"].message
    assert noted["partial-data"].severity == Severity.NOTE
    for record in (accumulating(8, 400), accumulating(1, 400), accumulating(8, 406)):
        record.losses = record.losses if len(record.losses) == 400 else [*record.losses[:-6], (record.updates, 40.0)]
        assert "partial-data" not in said(record)


@pytest.mark.parametrize(("lines", "expected"), [([5] * 8, Shown.LEARNS), (range(8), Shown.LEARNS_IN_PART)])
def test_a_training_of_many_at_one_line_is_no_part_of_its_own(
    monkeypatch: pytest.MonkeyPatch, lines: Iterable[int], expected: Shown
) -> None:
    record, learns = classifier(), Verdict(shown=Shown.LEARNS, why="")
    record.trainings = [
        Training(number=n, kind="loop", begins=9 * n, ends=9 * n + 9, where=Place("t.py", line))
        for n, line in enumerate(lines, 1)
    ]
    first = Verdict(shown=Shown.DOES_NOT_LEARN, why="")
    found = [(one, first if one.number == 1 else learns) for one in record.trainings]
    monkeypatch.setattr(verdict, "verdicts", lambda record: found)
    assert verdict._with_trainings(record, learns).shown == expected
