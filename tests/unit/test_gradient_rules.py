"""Edges of the gradient and optimizer rules, on facts alone."""

import pytest

from trainwright.core import Failure, Place, Severity
from trainwright.rules.gradients.accumulation import uncleared_gradients, unscaled_accumulation, unscaled_loss
from trainwright.rules.gradients.graph import in_place_change, no_gradient, severed_graph
from trainwright.rules.optimizer.schedules import schedule_in_wrong_unit
from trainwright.rules.optimizer.unstepped_optimizer import unstepped_optimizer
from trainwright.stages import (
    CutOff,
    ForwardFacts,
    GradientFacts,
    GradientOf,
    InPlace,
    OptimizerFacts,
    ParameterFacts,
    SetupFacts,
)

HERE = Place("train.py", 7)
SETUP = SetupFacts(places={"trainer": Place("train.py", 20)}, accumulation=4)


def said(rule, **facts):
    return list(rule.function(**{n: facts.get(n) for n, _, _ in rule.parameters}))


def gradient(name, norm):
    return GradientOf(name=name, module=name.rpartition(".")[0], shape=(2, 2), norm=norm)


def parameter(name, **facts):
    return ParameterFacts(
        name=name, shape=(8, 64), trainable=True, dtype="float32", mean=0.0, **{"deviation": 0.02, **facts}
    )


@pytest.mark.parametrize(("ratio", "count"), [(None, 0), (0.0, 0), (-0.3, 0), (0.49, 0), (0.5, 1), (1.0, 1)])
def test_half_of_a_gradient_left_over_is_too_much(ratio, count):
    assert len(said(uncleared_gradients, gradients=GradientFacts(leftover_ratio=ratio), setup=SETUP)) == count


@pytest.mark.parametrize(
    ("scale", "follows", "count"), [(None, None, 0), (2.0**15, None, 0), (2.0**15, 1.0, 0), (2.0**15, 0.001, 1)]
)
def test_gradients_that_do_not_follow_the_loss_scale_were_never_scaled(scale, follows, count):
    facts = GradientFacts(loss_scale=scale, follows_loss_scale=follows)
    assert len(said(unscaled_loss, gradients=facts, setup=SETUP)) == count


def test_a_cut_on_a_branch_that_got_its_gradient_is_no_fault():
    cut = CutOff(operation="detach()", where=HERE, upstream=("body.weight",))
    facts = GradientFacts(gradients=(gradient("body.weight", 0.1), gradient("pooler.weight", None)), cuts=(cut,))
    assert not said(severed_graph, gradients=facts, forward=ForwardFacts(), setup=SETUP)


@pytest.mark.parametrize(("first", "named"), [("stop_gradient()", "stop_gradient()"), ("detach()", "argmax()")])
def test_keras_does_not_tell_whether_an_argmax_came_after_a_stopped_gradient(first, named):
    """The accuracy of a train_step of one's own takes an argmax, too; torch's calls are in their order."""
    cuts = tuple(CutOff(operation=n, where=HERE, upstream=("body.weight",)) for n in (first, "argmax()"))
    facts = GradientFacts(gradients=(gradient("body.weight", None),), cuts=cuts, backwards=(None,),
                          loss_requires_grad=False)  # fmt: skip
    [found] = said(no_gradient, gradients=facts, setup=SETUP)
    assert found.measured["operation"] == named


@pytest.mark.parametrize(("operation", "loaded", "count"), [
    ("detach()", False, 1), ("detach()", None, 1), ("no_grad", None, 1), ("no_grad", False, 0),
])  # fmt: skip
def test_a_loaded_encoder_under_no_grad_is_meant(operation, loaded, count):
    cut = CutOff(operation=operation, where=HERE, upstream=("body.weight",))
    facts = GradientFacts(gradients=(gradient("body.weight", None), gradient("head.weight", 0.1)), cuts=(cut,))
    forward = ForwardFacts(parameters=(parameter("body.weight", freshly_initialised=loaded),))
    assert len(said(severed_graph, gradients=facts, forward=forward, setup=SETUP)) == count


@pytest.mark.parametrize(("share", "user_loss", "count"), [
    (1.0, True, 0), (1.4, True, 0), (3.9, True, 1), (0.25, True, 1), (4.0, False, 0), (None, True, 0),
])  # fmt: skip
def test_only_a_loss_of_the_users_own_is_blamed_for_its_scale(share, user_loss, count):
    facts = GradientFacts(accumulated_share=share, accumulated_batches=4, accumulation=4, user_loss=user_loss)
    assert len(said(unscaled_accumulation, gradients=facts, setup=SETUP)) == count


@pytest.mark.parametrize(
    ("growth", "severity"), [(None, Severity.WARNING), (4.0, Severity.WARNING), (1.0, Severity.NOTE)]
)
def test_a_scale_that_the_optimizer_divides_out_is_a_note(growth, severity):
    facts = GradientFacts(
        accumulated_share=4.0, accumulated_batches=4, accumulation=4, user_loss=True, update_growth=growth
    )
    assert [f.severity for f in said(unscaled_accumulation, gradients=facts, setup=SETUP)] == [severity]


def test_the_in_place_call_of_the_shape_in_the_message_is_named():
    failure = Failure(
        type="RuntimeError", message="modified by an inplace operation: [torch.FloatTensor [4, 8]], is", where=None
    )
    calls = (
        InPlace(operation="mul", shape=(4, 8), where=HERE),
        InPlace(operation="add", shape=(4,), where=Place("a.py", 1)),
    )
    found = said(in_place_change, gradients=GradientFacts(failure=failure, in_place=calls), setup=SETUP)
    assert found[0].where == HERE and "(4, 8)" in found[0].message


def schedule(points, planned, **facts):
    return said(
        schedule_in_wrong_unit, optimizer=OptimizerFacts(schedule=points, planned_updates=planned, **facts), setup=SETUP
    )


def test_a_rate_that_is_spent_at_the_end_alone_is_in_order():
    assert not schedule(tuple((u, 1 - u / 100) for u in range(100)), 100)
    assert not schedule(tuple((u, 0.95**u) for u in range(100)), 100)
    assert schedule(tuple((u, 0.5**u) for u in range(100)), 100)


def test_a_schedule_of_restarts_is_in_order():
    assert not schedule(tuple((u, 1 - (u % 20) / 20) for u in range(100)), 100)


def test_a_length_in_micro_batches_is_told_by_their_number():
    points = tuple((u, 1 - u / 400) for u in range(100))
    assert schedule(points, 100, schedule_length=400)
    assert not schedule(points, 100, schedule_length=300)


OF_ROWS = SetupFacts(batch_size=32, epochs=10)
FALLING = tuple((u, 1 - u / 100_000) for u in range(0, 1000, 10))
OVER = tuple((u, max(0.1, 1 - u / 10)) for u in range(0, 1000, 5))


@pytest.mark.parametrize(
    ("points", "length", "steps", "count"),
    [
        (FALLING, 31_900, 1000, 1),  # the rows of ten epochs of 100 batches
        (FALLING, 31_600, 1000, 0),
        (OVER, 10, 1000, 1),
        (OVER, 11, 1000, 0),  # more than there are epochs
        (OVER, 10, 10, 0),  # stepped once an epoch
        (tuple((u, min(1.0, u / 10)) for u in range(0, 1000, 5)), 10, 1000, 0),  # a warm-up
    ],
)
def test_a_schedule_counts_updates_and_not_rows_or_epochs(points, length, steps, count):
    optimizer = OptimizerFacts(schedule=points, planned_updates=1000, schedule_length=length, schedule_steps=steps)
    assert len(said(schedule_in_wrong_unit, optimizer=optimizer, setup=OF_ROWS)) == count


def test_a_schedule_of_epochs_is_in_order_where_an_epoch_is_one_update():
    points = tuple((u, 1.0 if u < 100 else 0.1 if u < 200 else 0.01) for u in range(0, 1000, 5))
    optimizer = OptimizerFacts(schedule=points, planned_updates=1000, schedule_length=200, schedule_steps=1000)
    for epochs, count in ((1000, 0), (250, 1)):
        setup = SetupFacts(epochs=epochs)
        assert len(said(schedule_in_wrong_unit, optimizer=optimizer, setup=setup)) == count


@pytest.mark.parametrize(
    ("changed", "rate", "count"), [(0.0, 0.1, 1), (1e-9, 0.1, 0), (float("nan"), 0.1, 0), (0.0, 0.0, 0)]
)
def test_an_update_that_changes_nothing_at_a_rate_above_zero(changed, rate, count):
    optimizer = OptimizerFacts(kind="SGD", held=("a.weight",), changed={"a.weight": changed}, learning_rate=rate)
    facts = GradientFacts(gradients=(gradient("a.weight", 1.0),), norm=1.0)
    assert len(said(unstepped_optimizer, optimizer=optimizer, gradients=facts, setup=SETUP)) == count


@pytest.mark.parametrize(("facts", "untrained"), [
    ({"freshly_initialised": True}, True),
    ({"freshly_initialised": False, "initial_deviation": 0.02}, False),
    ({"initial_deviation": 0.02}, True),
    ({"initial_deviation": 0.02, "deviation": 0.03}, False),
    ({}, False),
])  # fmt: skip
def test_weights_as_they_were_drawn_are_untrained(facts, untrained):
    assert parameter("a.weight", **facts).untrained is untrained


def test_a_warm_up_that_does_not_end_is_named_and_a_slow_one_that_does_is_not():
    rising = tuple((u, min(1.0, 0.25 * (u + 1) / 100)) for u in range(100))
    assert schedule(rising, 100, schedule_steps=12)
    assert not schedule(tuple((u, (u + 1) / 100) for u in range(100)), 100)
    assert not schedule(tuple((u, 0.1) for u in range(100)), 100)
    assert not schedule(tuple((u, 1e-3 * 1.1**u) for u in range(100)), 100)
