"""The edges of the loss rules, on facts literals."""

import math
from dataclasses import replace

import pytest

from trainwright.core import Call, Failure, Outcome, Place, Seam, Trial
from trainwright.rules.loss.activations import double_activation, missing_activation
from trainwright.rules.loss.label_range import (
    binary_targets_out_of_range,
    class_loss_of_one_score,
    label_out_of_range,
    misnumbered_labels,
    unignored_labels,
)
from trainwright.rules.loss.shapes_at_call import broadcast_loss, outputs_per_step, unflattened_scores
from trainwright.rules.loss.target_form import softmax_on_multilabel, wrong_target_dtype
from trainwright.rules.loss.tokens import labels_shifted_twice
from trainwright.rules.loss.values import constant_loss, non_finite_loss, surprising_initial_loss, unequal_loss_terms
from trainwright.stages import (
    BatchFacts,
    DatasetFacts,
    ForwardFacts,
    LabelFacts,
    LabelMaskFacts,
    LossCall,
    LossFacts,
    ModuleFacts,
    ParameterFacts,
    SetupFacts,
    SplitFacts,
    TensorFacts,
)
from trainwright.stages.describe import describe

LINE = Place("train.py", 7)
SETUP = SetupFacts(places={"train_dataset": Place("train.py", 3), "model": Place("train.py", 2)})
FAILED = Failure(type="RuntimeError", message="result type Float can't be cast", where=LINE)
BETTER = Outcome(changed="", before=(1.0, 1.1, 1.0), after=(0.2, 0.2, 0.3), start=(1.1, 1.1, 1.1))
SAME = Outcome(changed="", before=(1.0, 1.1, 1.0), after=(1.0, 1.1, 1.0), start=(1.1, 1.1, 1.1))
WORSE = Outcome(changed="", before=(0.2, 0.2, 0.3), after=(1.0, 1.1, 1.0), start=(1.1, 1.1, 1.1))


def tensor(shape, dtype="float32", **more):
    return TensorFacts(shape=shape, dtype=dtype, **{"requires_grad": True, **more})


def call(function="cross_entropy", scores=(8, 3), targets=(8,), dtype="int64", low=-1.0, high=1.0, spread=0.5, **more):
    inputs = tensor(scores, minimum=low, maximum=high, mean=0.0, deviation=spread)
    return LossCall(
        function=function, inputs=inputs, targets=tensor(targets, dtype, requires_grad=False), at=LINE, **more
    )


def facts(*calls, classes=3, **more):
    last = calls[-1]
    chance = math.log(classes) if classes else None
    return LossFacts(call=last, calls=calls, function=last.function, classes=classes, chance_nats=chance,
                     **{"value": 1.0, "expected": chance, **more})  # fmt: skip


def run(rule, outcome=None, **given):
    """The findings of a rule whose trials all end like this."""
    answer, found, sent = rule.function(**given), [], None
    while True:
        try:
            item = answer.send(sent) if sent is not None else next(answer)
        except StopIteration:
            return found
        sent = None
        if isinstance(item, Trial):
            assert outcome is not None, "the rule asked for a trial"
            sent = outcome
        else:
            found.append(item)


def labels(census, split="train"):
    found = LabelFacts(
        column="label", kind="class", census=dict.fromkeys(census, 5), first_rows={v: i for i, v in enumerate(census)}
    )
    return SplitFacts(name=split, rows=50, labels=found)


@pytest.mark.parametrize(
    ("census", "width", "repair"),
    [
        ((0, 1, 2), 3, None),
        ((0, 1), 3, None),
        ((1, 2), 3, None),
        ((0, 1, 2), 2, "give the head 3 outputs"),
        ((1, 2, 3), 3, "take label 1 as 0, 2 as 1, 3 as 2"),
        ((1, 2, 3), 2, "give the head 4 outputs"),
        ((-1, 1), 2, "take label -1 as 0, 1 as 1"),
        ((-1, 0, 1, 2), 3, "take label -1 as -100"),
        ((-100, 0, 1, 2), 3, None),
    ],
)
def test_labels_are_renumbered_where_that_makes_them_fit_and_else_the_head_is_widened(census, width, repair):
    loss = facts(
        call(scores=(8, width), target_values=tuple(float(v) for v in census)), classes=width, targets_are_labels=True
    )
    given = {"dataset": DatasetFacts(train=labels(census)), "setup": SETUP, "forward": ForwardFacts(), "loss": loss}
    family = (label_out_of_range, misnumbered_labels, unignored_labels)
    found = [f for rule in family for f in run(rule, **given)]
    assert [f.repair.does for f in found] == ([repair] if repair else [])


@pytest.mark.parametrize(
    ("census", "activation", "repair"),
    [
        ((0, 1), "sigmoid", "compute binary_cross_entropy instead of cross_entropy"),
        ((0, 1), "", "give the head 2 outputs"),
        ((0, 1, 2), "sigmoid", "give the head 3 outputs"),
        ((0,), "sigmoid", None),
    ],
)
def test_one_sigmoid_for_two_labels_asks_for_another_loss(census, activation, repair):
    one = call(scores=(8, 1), target_values=tuple(map(float, census)), activation=activation)
    given = {
        "dataset": DatasetFacts(train=labels(census)),
        "setup": SETUP,
        "forward": ForwardFacts(),
        "loss": facts(one, classes=None, targets_are_labels=True),
    }
    given["loss"] = replace(given["loss"], classes=1)
    found = [f for rule in (label_out_of_range, class_loss_of_one_score) for f in run(rule, **given)]
    assert [f.repair.does for f in found] == ([repair] if repair else [])


@pytest.mark.parametrize(
    ("values", "does"),
    [
        ((1.0, 2.0), "take label 1 as 0, 2 as 1"),
        ((1.0, 1.5, 2.0), "scale the targets of the binary cross-entropy to 0 to 1"),
        ((0.0, 1.0, 2.0), None),
    ],
)
def test_targets_of_a_binary_loss_are_classes_only_where_all_are_whole(values, does):
    targets = tensor((8, 1), minimum=values[0], maximum=values[-1])
    binary = replace(call("binary_cross_entropy", scores=(8, 1), target_values=values), targets=targets)
    loss = facts(binary, classes=None)
    [found] = run(binary_targets_out_of_range, setup=SETUP, loss=loss)
    given = {"dataset": DatasetFacts(train=labels((1, 2))), "setup": SETUP, "forward": ForwardFacts()}
    assert not run(label_out_of_range, **given, loss=loss)
    assert (found.repair and found.repair.does) == does
    if found.repair:  # the loss of another head is left alone
        other = Call(seam=Seam.LOSS, given={"function": "mse_loss"}, tensors=None)
        assert found.repair.change(other) is other


@pytest.mark.parametrize(
    ("deviation", "configured", "does"),
    [
        (0.02, None, "give the model 3 outputs (num_labels=3)"),
        (None, 2, "give the model 3 outputs (num_labels=3)"),
        (None, None, "give the last layer 3 units"),
    ],
)
def test_num_labels_is_proposed_only_for_a_model_that_has_it(deviation, configured, does):
    """A layer that the script writes itself takes no num_labels."""
    weight = ParameterFacts(
        name="head.weight",
        shape=(2, 8),
        trainable=True,
        dtype="float32",
        mean=0.0,
        deviation=0.02,
        initial_deviation=deviation,
    )
    head = ModuleFacts(name="head", kind="Linear", where=LINE, sizes=(8, 2))
    loss = facts(call(scores=(8, 2), target_values=(0.0, 1.0, 2.0)), classes=2, targets_are_labels=True)
    forward = ForwardFacts(head=head, parameters=(weight,), configured_labels=configured)
    given = {"dataset": DatasetFacts(train=labels((0, 1, 2))), "setup": SETUP, "forward": forward, "loss": loss}
    [found] = run(label_out_of_range, **given)
    assert found.fix.does == does


def test_the_census_counts_only_where_the_targets_are_the_labels():
    """A contrastive loss numbers the rows of the batch: labels of the set say nothing about it."""
    loss = facts(call(scores=(8, 8), target_values=tuple(map(float, range(8)))), classes=8)
    given = {"dataset": DatasetFacts(train=labels(range(60))), "setup": SETUP, "forward": ForwardFacts(), "loss": loss}
    assert not run(label_out_of_range, **given)


@pytest.mark.parametrize(
    ("seen", "outcome", "speaks"),
    [
        ({"rows_sum_to_one": True}, BETTER, True),
        ({"rows_sum_to_one": True}, SAME, True),
        ({"rows_sum_to_one": True}, WORSE, False),
        ({"activation": "sigmoid"}, BETTER, True),
        ({}, None, False),
        ({"function": "nll_loss", "rows_sum_to_one": True}, None, False),
        ({"function": "binary_cross_entropy_with_logits"}, None, False),
        ({"function": "binary_cross_entropy_with_logits", "activation": "sigmoid"}, SAME, True),
        ({"function": "binary_cross_entropy", "activation": "sigmoid"}, None, False),
    ],
)
def test_only_seen_probabilities_count_as_a_second_activation(seen, outcome, speaks):
    loss = facts(call(low=0.0, high=1.0, in_unit_range=True, **seen))
    assert bool(run(double_activation, outcome, loss=loss, forward=ForwardFacts(), setup=SETUP)) == speaks


@pytest.mark.parametrize(
    ("seen", "speaks"),
    [
        ({"function": "nll_loss"}, True),
        ({"function": "nll_loss", "log_normalised": True, "high": -0.1}, False),
        ({"function": "nll_loss", "high": -0.1}, False),  # log-likelihoods without their normalizer
        ({"function": "nll_loss", "rows_sum_to_one": True, "low": 0.0, "in_unit_range": True}, True),
        ({"function": "binary_cross_entropy", "failure": FAILED}, True),
        ({"function": "binary_cross_entropy", "low": 0.0, "in_unit_range": True}, False),
        ({"function": "cross_entropy"}, False),
    ],
)
def test_scores_outside_the_domain_of_the_loss(seen, speaks):
    assert bool(run(missing_activation, loss=facts(call(**seen)), setup=SETUP)) == speaks


@pytest.mark.parametrize(
    ("seen", "cast"),
    [
        ({"dtype": "float32", "target_values": (0.0, 1.0, 2.0)}, "cast the targets to int64"),
        ({"dtype": "float32", "target_values": (0.5, 1.0)}, None),
        ({"dtype": "int32", "target_values": (0.0, 1.0)}, "cast the targets to int64"),
        ({"dtype": "int64", "targets": (8, 3), "target_values": (0.0, 1.0)}, "cast the targets to float32"),
        ({"dtype": "int64", "target_values": (0.0, 7.0)}, None),
        ({"function": "huber_loss", "scores": (8,), "dtype": "int64"}, "cast the targets to float32"),
    ],
)  # fmt: skip
def test_targets_are_cast_to_what_the_loss_takes(seen, cast):
    loss = facts(call(failure=FAILED, **seen), failure=FAILED, value=None)
    found = run(wrong_target_dtype, loss=loss, setup=SETUP, batch=None, gradients=None)
    assert [f.repair.does for f in found] == ([cast] if cast else [])


def test_a_loss_that_went_through_has_targets_of_a_type_it_takes():
    loss = facts(call(function="mse_loss", scores=(8,), dtype="float64"))
    assert not run(wrong_target_dtype, loss=loss, setup=SETUP, batch=None, gradients=None)


@pytest.mark.parametrize(
    ("scores", "targets", "speaks"),
    [
        ((8, 1), (8,), True),
        ((8,), (8, 1), True),
        ((8, 1), (8, 1), False),
        ((8, 5), (8, 1), False),  # one target for all steps
        ((8, 8, 1), (8, 8), True),
        ((1, 1), (1,), False),
        ((8, 5), (1,), False),
        ((8, 5), (), False),
    ],
)
def test_shapes_that_spread_over_each_other(scores, targets, speaks):
    loss = facts(call(function="mse_loss", scores=scores, targets=targets, value=1.0), classes=None)
    assert bool(run(broadcast_loss, loss=loss, setup=SETUP)) == speaks


@pytest.mark.parametrize(
    ("scores", "takes_indices", "said"),
    [
        ((8, 10, 1), True, "last step"),
        ((8, 10, 1), None, "Flatten"),
        ((8, 10, 1, 1), None, "Flatten"),
        ((8, 10, 5), None, None),
    ],
)
def test_axes_that_a_pooling_left_are_no_steps_of_a_sequence(scores, takes_indices, said):
    """torch's classes are on axis 1: (8, 10, 1) is what AdaptiveAvgPool1d(1) makes of 10 classes."""
    stopped = call(scores=scores, failure=FAILED, takes_indices=takes_indices)
    loss, forward = facts(stopped, failure=FAILED), ForwardFacts(output=tensor(scores))
    family = (broadcast_loss, outputs_per_step, unflattened_scores)
    found = [f for rule in family for f in run(rule, loss=loss, setup=SETUP, forward=forward)]
    assert [said in f.fix.does for f in found] == ([True] if said else [])


@pytest.mark.parametrize(("value", "function", "speaks"), [(0.0, "cross_entropy", True), (0.0, "triplet_margin_loss", False),
                                                          (0.0, "", False), (2.5, "", True)])  # fmt: skip
def test_a_margin_loss_may_rest_at_zero(value, function, speaks):
    loss = LossFacts(value=value, function=function, unchanged_by_weights=True)
    assert bool(run(constant_loss, loss=loss, setup=SETUP)) == speaks


def test_what_the_rows_without_a_finite_loss_share_is_said():
    nan = math.nan
    loss = facts(call(), value=nan, row_losses=(1.0, nan, 1.0, nan), row_labels=(0, 2, 1, 2))
    (found,) = run(non_finite_loss, loss=loss, forward=ForwardFacts(), setup=SETUP)
    assert "2 of 4 rows" in found.message and "rows with label 2" in found.message
    loss = facts(call(), value=nan, row_losses=(1.0, nan, 1.0, nan), row_labels=(0, 2, 2, 1))
    (found,) = run(non_finite_loss, loss=loss, forward=ForwardFacts(), setup=SETUP)
    assert "with label" not in found.message


def test_scores_that_are_not_finite_are_another_rules_matter():
    output = tensor((8, 3), non_finite=4)
    assert not run(
        non_finite_loss, loss=facts(call(), value=math.nan), forward=ForwardFacts(output=output), setup=SETUP
    )


@pytest.mark.parametrize(("seen", "speaks"), [
    ({"rows_of_several_labels": 3, "target_values": (0.0, 1.0)}, True),
    ({"rows_of_several_labels": 0, "target_values": (0.0, 1.0)}, False),
    ({"rows_of_several_labels": 3, "target_values": (0.0, 0.4, 2.0)}, False),  # weights in the targets
    ({"rows_of_several_labels": 3, "target_values": (0.0, 1.0), "function": "binary_cross_entropy_with_logits"}, False),
    ({"rows_of_several_labels": 3, "target_values": (0.0, 1.0), "function": "nll_loss", "takes_indices": False}, True),
])  # fmt: skip
def test_several_ones_in_a_row_are_too_many_for_a_softmax(seen, speaks):
    loss = facts(call(targets=(8, 3), dtype="float32", **seen))
    assert bool(run(softmax_on_multilabel, loss=loss, setup=SETUP)) == speaks


@pytest.mark.parametrize(
    ("offset", "shifted", "speaks"), [(2, True, True), (1, True, False), (1, False, False), (2, False, False)]
)
def test_only_labels_moved_by_both_are_moved_twice(offset, shifted, speaks):
    """A model of one's own that does not move them, given moved labels, is right."""
    mask = LabelMaskFacts(live=72, rows=8, shifted_by_one=shifted)
    batch = BatchFacts(rows=8, label_key="labels", mask=mask)
    loss = facts(call(), token_offset=offset)
    assert bool(run(labels_shifted_twice, loss=loss, batch=batch, setup=SETUP)) == speaks


HIGH = Outcome(changed="", before=(5.0, 6.0, 5.0), after=(0.2, 0.2, 0.3), start=(30.0,) * 3)


@pytest.mark.parametrize(
    ("plain", "outcome", "loads", "speaks"),
    [
        (30.0, HIGH, False, True),
        (30.0, BETTER, False, False),  # it recovers by itself
        (30.0, SAME, False, False),
        (30.0, None, True, False),
        (3.2, None, False, False),
        (0.2, None, False, False),
    ],
)
def test_a_high_first_loss_counts_only_if_it_stays_above_chance(plain, outcome, loads, speaks):
    setup = SetupFacts(loads_checkpoint=loads, places=SETUP.places)
    loss = facts(call(spread=30.0, plain_value=plain), value=plain)
    assert bool(run(surprising_initial_loss, outcome, loss=loss, setup=setup)) == speaks


@pytest.mark.parametrize(
    ("terms", "outcome", "speaks"),
    [
        (((1.0, 1.0), (500.0, 1.0)), BETTER, True),
        (((1.0, 1.0), (500.0, 1.0)), SAME, False),
        (((1.0, 1.0), (90.0, 1.0)), None, False),
        (((1.0, 1.0), (1.0, 0.001)), None, False),  # weighted on purpose
        (((1.0, 1.0), (500.0, 0.0)), None, False),  # watched only
        (((1.0, 1.0), (500.0, None)), None, False),
    ],
)
def test_only_terms_that_nobody_weighted_are_unequal(terms, outcome, speaks):
    calls = tuple(call(value=value, factor=factor) for value, factor in terms)
    assert bool(run(unequal_loss_terms, outcome, loss=facts(*calls), setup=SETUP)) == speaks


@pytest.mark.parametrize(("whole", "told"), [(18683.0, True), (1.2, False)])
def test_chance_is_compared_with_the_term_that_it_is_the_chance_of(whole, told):
    assert ("cross_entropy alone is 0.8000" in describe(facts(call(value=0.8), value=whole))) == told
