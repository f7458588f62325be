"""The edges of the rules on rates and scales, on facts literals."""

from dataclasses import replace

import pytest

from trainwright.core import Outcome, Place, Trial
from trainwright.rules.dataset.scales import inputs_scaled_twice, unscaled_inputs, unscaled_targets
from trainwright.rules.dataset.sorted_rows import sorted_without_shuffle
from trainwright.rules.optimizer.rates import (
    excessive_learning_rate,
    hidden_default_rate,
    negligible_learning_rate,
    set_rate,
)
from trainwright.seams.listening.seen import BuiltObjects, Construction
from trainwright.stages import (
    BatchFacts,
    DatasetFacts,
    ForwardFacts,
    LabelFacts,
    LossFacts,
    ModuleFacts,
    OptimizerFacts,
    OverfitFacts,
    ParameterFacts,
    SetupFacts,
    SplitFacts,
    TensorFacts,
)

SETUP = SetupFacts(places={"learning_rate": Place("train.py", 5), "train_dataset": Place("train.py", 3)})
BETTER = Outcome(changed="", before=(2.0, 2.1, 2.2), after=(1.0, 1.1, 1.0), start=(2.0, 2.0, 2.0), steps=12)
SAME = replace(BETTER, after=(2.1, 2.0, 2.2))
CUT_OFF = Outcome(changed="", before=(), after=(), cut_off=True)


def run(rule, *facts, outcome=BETTER):
    """What a rule finds whose trials all end like this, and how many trials it asks for."""
    found, trials, sent, answer = [], 0, None, rule.function(*facts)
    while True:
        try:
            item = answer.send(sent) if sent is not None else next(answer)
        except StopIteration:
            return found, trials
        sent = outcome if isinstance(item, Trial) else None
        trials += isinstance(item, Trial)
        found += [] if isinstance(item, Trial) else [item]


def curve(*losses, **more):
    facts = {"learnt": False, "falling": False, "rows": 16, **more}
    return OverfitFacts(losses=losses, **facts)


def optimizer(rate=1.0, **more):
    return OptimizerFacts(**{"kind": "AdamW", "learning_rate": rate, "planned_updates": 100, **more})


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize(
    ("losses", "diverged", "stuck"),
    [
        ((1.0, 1.2, 0.8, 0.8), False, True),
        ((1.0, 1.1, 0.8, 0.8), False, False),  # it never rose beyond a tenth
        ((1.0, 1.2, 0.7, 0.7), False, False),  # seven tenths are left, and no more
        ((1.0, 1.2, 0.8, 0.71), False, True),
        ((1.0, 1.2, 0.5, 0.5), True, True),
        ((1.0, float("nan"), float("nan"), float("nan")), True, True),
    ],
)
def test_a_rate_is_blamed_where_the_loss_rose_and_most_of_it_is_left(losses, diverged, stuck, given):
    rule, other = excessive_learning_rate, hidden_default_rate
    rule, other = (rule, other) if given else (other, rule)
    facts = curve(*losses, diverged=diverged), optimizer(rate_given=given), SETUP
    better = replace(BETTER, before=(1.5, 1.4, 1.6), after=(0.9, 0.9, 0.9), start=(1.0, 1.0, 1.0))
    assert bool(run(rule, *facts, outcome=better)[0]) == stuck
    assert run(other, *facts, outcome=better) == ([], 0)


@pytest.mark.parametrize(
    ("constant", "after", "found"),
    [((), 0.7, True), ((), 0.8, False), ((1.9,), 1.1, True), ((1.9,), 1.2, False), ((2.1,), 0.7, False)],
)
@pytest.mark.parametrize("given", [True, False])
def test_a_rate_that_one_batch_hides_is_tried_on_several(constant, after, found, given):
    """It must be left near the constant prediction, and a tenth of it leave three quarters of that; without one, half."""
    rule = excessive_learning_rate if given else hidden_default_rate
    outcome = replace(BETTER, before=(1.5, 1.4, 1.6), after=(after,) * 3, start=(1.0, 1.0, 1.0), steps=16)
    outcome = replace(outcome, constant=constant * 3)
    facts = optimizer(rate_given=given), SETUP
    thrown = curve(1.0, 0.4, 0.7, 0.3, constant=0.2)
    assert bool(run(rule, thrown, *facts, outcome=outcome)[0]) == found
    assert run(rule, curve(1.0, 0.4, 0.6, 0.3), *facts, outcome=outcome) == ([], 0)


@pytest.mark.parametrize(("rate", "kind", "tried"), [(1e-3, "AdamW", 1), (9e-4, "AdamW", 0), (1e-3, "SGD", 0)])
def test_a_rate_for_new_weights_is_tried_on_a_pre_trained_model(rate, kind, tried):
    loaded = replace(SETUP, loads_checkpoint=True)
    short = replace(BETTER, steps=16)  # the budget allowed half of the steps
    assert run(excessive_learning_rate, curve(1.0, 0.3), optimizer(rate, kind=kind), loaded, outcome=short) == (
        [], tried
    )  # fmt: skip
    assert run(excessive_learning_rate, curve(1.0, 0.3), optimizer(rate, kind=kind), SETUP) == ([], 0)


@pytest.mark.parametrize(("after", "before", "found"), [(0.94, 2.0, True), (0.95, 2.0, False), (0.94, 0.95, False)])
def test_a_lower_rate_must_learn_where_the_written_one_does_not(after, before, found):
    """A twentieth off the first loss, and a twentieth off what the script's own rate comes to."""
    outcome = replace(BETTER, before=(before,) * 3, after=(after,) * 3, start=(1.0,) * 3)
    seen, trials = run(excessive_learning_rate, curve(1.0, 1.2, 0.9), optimizer(), SETUP, outcome=outcome)
    assert bool(seen) == found
    assert trials == (2 if found else 3)


@pytest.mark.parametrize(("position", "function"), [(None, ""), (1, "SGD")])
def test_a_rate_is_written_where_the_script_gave_it(position, function):
    """By its name, in whichever call has it; by its place, which is another one in each framework."""
    seen = optimizer(kind="SGD", user_built=True, rate_position=position)
    (edit,) = set_rate(SETUP, seen, 0.1).edits
    assert (edit.name, edit.function, edit.position) == ("lr", function, position)


def test_an_argument_is_found_at_its_place_in_the_call(tmp_path):
    class Optimizer:
        def __init__(self, parameters, lr=0.1):
            pass

    script = tmp_path / "train.py"
    script.write_text("a = Optimizer(p, 0.5)\nb = Optimizer(p, lr=0.5)\nc = Optimizer(*p)\n")
    seen, found = BuiltObjects(), []
    for line in (1, 2, 3):
        built = Optimizer(None)
        place = Place("train.py", line)
        seen.optimizers[built] = Construction(
            name="Optimizer", frame_file=str(script), line=line, place=place, keywords=frozenset()
        )
        found.append(seen.position_given(built, "lr"))
    assert found == [1, None, None]


def test_rates_below_all_use_are_not_tried():
    facts = curve(1.0, 1.2, 0.9), optimizer(rate=9e-7, kind="SGD"), SETUP
    assert run(excessive_learning_rate, *facts, outcome=SAME) == ([], 0)
    facts = curve(1.0, 1.2, 0.9), optimizer(rate=1e-6, kind="SGD"), SETUP
    assert run(excessive_learning_rate, *facts, outcome=SAME) == ([], 1)


@pytest.mark.parametrize(
    ("rate", "more", "trials"),
    [
        (1e-6, {}, 1),
        (3.3e-5, {}, 1),
        (3.4e-5, {}, 0),  # within a factor of 30 of the usual 1e-3
        (0.0, {}, 0),
        (1e-3, {"kind": "SGD"}, 1),
        (3.4e-3, {"kind": "SGD"}, 0),
        (1e-6, {"planned_updates": None}, 0),
        (1e-6, {"planned_updates": 23_900}, 1),
        (1e-6, {"planned_updates": 24_000}, 0),  # all of them go as far as 24 at the usual rate
        (1e-6, {"schedule": ((0, 0.05),)}, 1),
        (1e-6, {"schedule": ((0, 0.04),)}, 0),
    ],
)
def test_a_rate_is_negligible_far_below_the_usual_one_only(rate, more, trials):
    facts = curve(1.0, 1.0, slow=True), optimizer(rate, **more), SETUP
    assert run(negligible_learning_rate, *facts)[1] == trials
    assert run(negligible_learning_rate, replace(facts[0], slow=False), *facts[1:])[1] == 0


@pytest.mark.parametrize(
    ("outcome", "found"),
    [
        (BETTER, True),
        (SAME, False),
        (CUT_OFF, False),
        (replace(BETTER, before=(1.95, 1.95, 1.95)), True),
        (replace(BETTER, before=(1.95, 1.95, 1.94)), False),  # all updates together take three hundredths off
    ],
)
def test_a_rate_is_negligible_where_all_updates_leave_the_loss(outcome, found):
    facts = curve(1.0, 1.0, slow=True), optimizer(1e-6), SETUP
    assert bool(run(negligible_learning_rate, *facts, outcome=outcome)[0]) == found


@pytest.mark.parametrize(
    ("largest", "value", "trials"), [(30.1, 1.51, 1), (30.0, 1.51, 0), (-30.1, 1.51, 1), (30.1, 1.5, 0)]
)
def test_inputs_are_large_beyond_thirty_where_the_first_loss_is_inflated(largest, value, trials):
    pixels = TensorFacts(shape=(8, 4), dtype="float32", minimum=min(largest, 0.0), maximum=max(largest, 0.0))
    batch = BatchFacts(tensors={"x": pixels}, label_key="labels")
    dataset = DatasetFacts(train=SplitFacts(name="train", rows=90))
    facts = dataset, batch, ForwardFacts(), LossFacts(value=value, expected=1.0), SETUP
    assert run(unscaled_inputs, *facts, outcome=SAME) == ([], trials)
    found, _ = run(unscaled_inputs, *facts)
    assert len(found) == trials and all(f.where == Place("train.py", 3) for f in found)


@pytest.mark.parametrize(
    ("weights", "trials"), [({}, 1), ({"trainable": False}, 0), ({"freshly_initialised": False}, 0)]
)
def test_inputs_of_a_first_layer_that_was_trained_are_as_they_were_then(weights, trials):
    pixels = TensorFacts(shape=(8, 4), dtype="float32", minimum=-124.0, maximum=151.0)
    batch = BatchFacts(tensors={"x": pixels}, label_key="labels")
    dataset = DatasetFacts(train=SplitFacts(name="train", rows=90))
    dense = ModuleFacts(name="dense", kind="Dense", inputs=(pixels,), sizes=(4, 2))
    kernel = {"trainable": True, "dtype": "float32", "mean": 0.0, "deviation": 1.0} | weights
    parameters = (ParameterFacts(name="dense.kernel", module="dense", shape=(4, 2), **kernel),)
    forward = ForwardFacts(modules=(dense,), parameters=parameters)
    facts = dataset, batch, forward, LossFacts(value=1.0, expected=1.0), SETUP
    assert run(unscaled_inputs, *facts, outcome=SAME) == ([], trials)


@pytest.mark.parametrize(("left", "trials"), [(0.0039, 1), (0.01, 0), (0.0, 0)])
def test_inputs_are_scaled_away_where_the_first_layer_with_weights_is_given_next_to_nothing(left, trials):
    given, made = (TensorFacts(shape=(8, 4), dtype="float32", minimum=0.0, maximum=m) for m in (1.0, left))
    scaling = ModuleFacts(name="rescaling", kind="Rescaling", inputs=(given,), output=made, where=Place("train.py", 7))
    dense = ModuleFacts(name="dense", kind="Dense", inputs=(made,), output=made, sizes=(4, 2))
    batch = BatchFacts(tensors={"x": given}, label_key="labels")
    facts = batch, ForwardFacts(modules=(scaling, dense)), LossFacts(value=1.0, expected=1.0), SETUP
    assert run(inputs_scaled_twice, *facts, outcome=SAME) == ([], trials)
    found, _ = run(inputs_scaled_twice, *facts)
    assert [f.where for f in found] == [Place("train.py", 7)] * trials


@pytest.mark.parametrize("name", ["mask", "labels"])
def test_masks_and_labels_are_no_inputs(name):
    tensor = TensorFacts(shape=(8, 4), dtype="float32", minimum=0.0, maximum=255.0)
    batch = BatchFacts(tensors={name: tensor}, label_key="labels")
    dataset = DatasetFacts(train=SplitFacts(name="train", rows=90))
    assert run(unscaled_inputs, dataset, batch, ForwardFacts(), LossFacts(value=9.0, expected=1.0), SETUP) == ([], 0)


@pytest.mark.parametrize(
    ("mean", "deviation", "more", "trials"),
    [
        (10.0, 1.0, {}, 1),
        (9.9, 1.0, {}, 0),
        (-10.0, 1.0, {}, 1),
        (0.0, 10.0, {}, 1),
        (0.0, 9.9, {}, 0),
        (500.0, 0.0, {}, 0),
        (500.0, 9.0, {"function": "cross_entropy"}, 0),
        (500.0, 9.0, {"learnt": True}, 0),
        (500.0, 9.0, {"dtype": "int64"}, 0),
    ],
)
def test_targets_are_far_from_ten_on(mean, deviation, more, trials):
    labels = LabelFacts(column="labels", kind="real", mean=mean, deviation=deviation)
    facts = (
        DatasetFacts(train=SplitFacts(name="train", rows=90, labels=labels)),
        BatchFacts(tensors={"labels": TensorFacts(shape=(8,), dtype=more.get("dtype", "float32"))}, label_key="labels"),
        LossFacts(function=more.get("function", "mse_loss")),
        optimizer(),
        curve(1.0, 0.9, learnt=more.get("learnt", False)),
        SETUP,
    )
    assert run(unscaled_targets, *facts, outcome=SAME)[1] == trials


@pytest.mark.parametrize(
    ("function", "spread", "ends", "found"),
    [
        ("mse_loss", 10.0, (101.0, 101.0, 101.0), True),
        ("mse_loss", 10.0, (101.0, 101.0, 100.0), False),  # as good as the mean of the targets, on one seed
        ("l1_loss", 10.0, (11.0, 11.0, 11.0), True),
        ("l1_loss", 10.0, (9.0, 9.0, 9.0), False),
    ],
)
def test_the_loss_is_counted_in_the_unit_of_the_targets(function, spread, ends, found):
    labels = LabelFacts(column="labels", kind="real", mean=1_234_567.0, deviation=spread)
    facts = (
        DatasetFacts(train=SplitFacts(name="train", rows=90, labels=labels)),
        BatchFacts(tensors={"labels": TensorFacts(shape=(8,), dtype="float32")}, label_key="labels"),
        LossFacts(function=function),
        optimizer(),
        curve(1.0, 0.9),
        SETUP,
    )
    outcome = replace(BETTER, before=ends, after=(0.5, 0.5, 0.5))
    seen, _ = run(unscaled_targets, *facts, outcome=outcome)
    assert bool(seen) == found
    for one in seen:
        unit = "variance" if function == "mse_loss" else "deviation"
        assert "1235000" in one.message and unit in one.message and unit in one.proof.changed


@pytest.mark.parametrize(
    ("mean_run", "expected", "more", "found"),
    [
        (16.0, 1.1, {}, True),
        (15.9, 1.1, {}, False),  # shorter than a batch
        (16.0, 5.4, {}, False),  # chance makes runs of five where one class dominates
        (16.3, 5.4, {}, True),
        (16.0, 1.1, {"shuffles": True}, False),
        (16.0, 1.1, {"shuffles": None}, False),
        (16.0, 1.1, {"census": {0: 160}}, False),
        (16.0, 1.1, {"kind": "real"}, False),
    ],
)
def test_runs_of_labels_count_from_a_whole_batch_on(mean_run, expected, more, found):
    labels = LabelFacts(
        column="label",
        kind=more.get("kind", "class"),
        census=more.get("census", {0: 80, 1: 80}),
        rows_read=160,
        mean_run=mean_run,
        expected_run=expected,
    )
    split = SplitFacts(name="train", rows=160, labels=labels)
    dataset = DatasetFacts(train=split, shuffles=more.get("shuffles", False), batch_size=16)
    assert bool(run(sorted_without_shuffle, dataset, SETUP)[0]) == found
