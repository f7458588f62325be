"""The edges of the forward rules, on facts literals."""

from dataclasses import replace

import pytest

from trainwright.adapters.torch.words import TRAINER
from trainwright.core import Failure, Finding, Outcome, Place, Severity, Trial
from trainwright.rules.forward.activations import (
    bounded_regression_output,
    dead_units,
    linear_stack,
    non_finite_activation,
    one_unit_softmax,
    rectified_logits,
    saturated_units,
)
from trainwright.rules.forward.dependencies import constant_output, crossed_samples, future_leak, ignored_input
from trainwright.rules.forward.failed_calls import (
    fixed_batch_size,
    index_beyond_embedding,
    layer_size_mismatch,
    wrong_number_of_axes,
)
from trainwright.rules.forward.initial_weights import identical_units, oversized_initialisation
from trainwright.rules.forward.layers import extreme_dropout, inactive_training_mode
from trainwright.rules.forward.out_of_memory import out_of_memory
from trainwright.rules.optimizer.parameters import frozen_untrained_layers
from trainwright.stages import (
    BatchFacts,
    ForwardFacts,
    LossCall,
    LossFacts,
    MemoryFacts,
    ModuleFacts,
    Origin,
    OverfitFacts,
    ParameterFacts,
    SetupFacts,
    TensorFacts,
)

SETUP = SetupFacts(words=TRAINER, places={"model": Place("train.py", 1), "arguments": Place("train.py", 2)})
BATCH = BatchFacts(rows=16)
LINE = Place("train.py", 7)
BETTER = Outcome(changed="it", before=(2.0, 2.1, 2.2), after=(1.0, 1.0, 1.1))
SAME = Outcome(changed="it", before=(2.0, 2.1, 2.2), after=(1.9, 2.2, 2.1))


def tensor(*shape, **more):
    return TensorFacts(shape=shape, dtype=more.pop("dtype", "float32"), **more)


def run(rule, *facts, outcome=SAME):
    """The findings of a rule whose trials all end with this outcome."""
    found, answer, sent = [], rule.function(*facts), None
    while True:
        try:
            item = answer.send(sent) if sent is not None else next(answer)
        except StopIteration:
            return found
        sent = outcome if isinstance(item, Trial) else None
        found += [item] if isinstance(item, Finding) else []


def failed(kind, sizes, *shape, message="shapes cannot be multiplied", **values):
    layer = ModuleFacts(name="fc", kind=kind, sizes=sizes, inputs=(tensor(*shape, **values),), where=LINE)
    return ForwardFacts(failure=Failure(type="RuntimeError", message=message, where=LINE), failed_module=layer)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (failed("Linear", (64, 10), 16, 32), "in_features=32"),
        (failed("Linear", (512, 10), 16, 8, 8, 8), "x.flatten(1)"),
        (failed("Linear", (64, 10), 16, 64, 5), "move dimension 1"),
        (failed("Conv2d", (3, 8), 16, 28, 28, 3), "move dimension 3"),
        (failed("Conv2d", (1, 8), 16, 28, 28), "x.unsqueeze(1)"),
        (failed("LayerNorm", (100,), 16, 64), "normalized_shape=64"),
        (failed("Embedding", (10, 4), 16, 5, dtype="int64", minimum=0, maximum=12), "num_embeddings=13"),
        (failed("Embedding", (10, 4), 16, 5, dtype="int64", minimum=-1, maximum=5), "number the indices from 0"),
    ],
)
def test_a_layer_is_named_with_what_makes_it_fit(facts, said):
    by_size = [f for rule in (layer_size_mismatch, wrong_number_of_axes) for f in run(rule, SETUP, facts, None)]
    (finding,) = by_size + run(index_beyond_embedding, facts, SETUP)
    assert said in finding.fix.does
    assert finding.where == LINE


@pytest.mark.parametrize(
    ("before", "layer", "axes", "speaks"),
    [
        (["Dense"], "conv2d", 4, False),
        (["LSTM", "Dense"], "conv1d", 3, True),
        ([], "gru", 3, True),
        (None, "conv2d", 4, False),
        (None, "lstm_1", 3, True),
        (None, "conv1d", 3, True),  # while the model is built the layers before are not known
    ],
)
def test_return_sequences_is_advice_where_there_may_be_a_recurrent_layer(before, layer, axes, speaks):
    came = (None, *[28] * (axes - 2))
    failure = Failure(
        type="ValueError",
        message=f'Input 0 of layer "{layer}" is incompatible with the layer: expected ndim={axes}, '
        f"found ndim={axes - 1}. Full shape received: {came}",
        where=LINE,
    )
    modules = tuple(ModuleFacts(name=k.lower(), kind=k) for k in before or ())
    forward = None if before is None else ForwardFacts(failure=failure, modules=modules)
    setup = replace(SETUP, failure=failure if before is None else None)
    (finding,) = run(wrong_number_of_axes, setup, forward, None)
    assert "x[..., None]" in finding.fix.does
    assert ("return_sequences" in finding.fix.does) == speaks


@pytest.mark.parametrize("came", ["(32, 12, 12)", "torch.Size([32, 12, 12])"])
def test_an_input_that_a_keras_model_refuses_is_read_in_the_words_of_each_backend(came):
    message = (
        "Invalid input shape for input tensor([[0.5, ...]]) with name 'keras_tensor' and path ''. "
        f"Expected shape (None, 144), but input has incompatible shape {came}"
    )
    failure = Failure(type="ValueError", message=message, where=LINE)
    (finding,) = run(wrong_number_of_axes, SETUP, ForwardFacts(failure=failure), None)
    assert finding.message == "the model's Input expects (None, 144), but gets (32, 12, 12)"


def test_a_layer_of_the_right_size_that_raised_for_another_reason_is_left_to_others():
    assert not run(
        layer_size_mismatch, SETUP, failed("Linear", (64, 10), 16, 64, message="expected scalar type Long"), None
    )
    assert not run(
        layer_size_mismatch, SETUP, failed("Embedding", (10, 4), 16, dtype="int64", minimum=0, maximum=9), None
    )
    assert not run(layer_size_mismatch, SETUP, replace(failed("Linear", (64, 10), 16, 32), works_at_rows=4), None)


def test_a_batch_of_one_row_before_batch_norm_is_placed_at_the_arguments():
    failure = Failure(type="ValueError", message="Expected more than 1 value per channel when training", where=LINE)
    facts = ForwardFacts(fails_at_rows=1, other_rows_failure=failure, other_rows_from="the last training batch")
    (finding,) = run(fixed_batch_size, facts, BATCH, SETUP)
    assert finding.where == Place("train.py", 2)
    assert "drop_last" in finding.fix.does
    assert not run(fixed_batch_size, ForwardFacts(), BATCH, SETUP)


def test_infinite_scores_with_a_finite_loss_are_a_mask():
    masked = ForwardFacts(output=tensor(16, 3, non_finite=4), non_finite_from=Origin(operation="log", where=LINE))
    assert not run(non_finite_activation, masked, SETUP, LossFacts(value=1.1))
    (finding,) = run(non_finite_activation, masked, SETUP, LossFacts(value=float("nan")))
    assert finding.where == LINE
    assert not run(non_finite_activation, ForwardFacts(output=tensor(16, 3)), SETUP, LossFacts(value=float("nan")))


def call(activation, *shape, share=None, function="mse_loss", **values):
    return LossCall(
        function=function, inputs=tensor(*shape, **values), targets=tensor(*shape, minimum=-1.0, maximum=2.0), at=None,
        activation=activation, activation_at=LINE, activation_module="end", unreachable_share=share,
    )  # fmt: skip


def test_a_softmax_over_several_units_is_none_over_one():
    ones = {"minimum": 1.0, "maximum": 1.0}
    assert run(one_unit_softmax, LossFacts(call=call("softmax", 16, 1, **ones)), SETUP)
    assert run(one_unit_softmax, LossFacts(call=call("softmax", 16, **ones)), SETUP)
    almost = dict.fromkeys(ones, 0.99999994)
    assert run(one_unit_softmax, LossFacts(call=call("softmax", 16, 1, **almost)), SETUP)
    assert not run(one_unit_softmax, LossFacts(call=call("softmax", 16, 3, **ones)), SETUP)
    assert not run(one_unit_softmax, LossFacts(call=call("softmax", 1, **ones)), SETUP)
    assert not run(one_unit_softmax, LossFacts(call=call("sigmoid", 16, 1, **ones)), SETUP)


@pytest.mark.parametrize(("share", "found"), [(0.06, 1), (0.04, 0), (None, 0)])
def test_a_bounded_output_matters_from_five_percent_of_the_variance_on(share, found):
    assert len(run(bounded_regression_output, LossFacts(call=call("tanh", 16, share=share)), SETUP)) == found
    classes = LossFacts(call=call("tanh", 16, share=share, function="binary_cross_entropy"))
    assert not run(bounded_regression_output, classes, SETUP)


def test_a_constant_output_must_withstand_other_weights_and_is_not_that_of_dead_units():
    loss, facts = LossFacts(value=1.0), ForwardFacts(same_for_other_inputs=True, same_when_perturbed=True)
    assert run(constant_output, facts, SETUP, loss)
    assert not run(constant_output, replace(facts, same_when_perturbed=False), SETUP, loss)
    dead = ModuleFacts(name="act", kind="ReLU", dead_share=1.0)
    assert not run(constant_output, replace(facts, modules=(dead,)), SETUP, loss)


def parameter(**more):
    usual = {"name": "fc.weight", "shape": (64, 64), "trainable": True, "dtype": "float32", "mean": 0.0, "deviation": 0.1,
             "default_deviation": 0.1, "module": "fc"}  # fmt: skip
    return ParameterFacts(**{**usual, **more})


def drowned(deviation, layers=("conv", "conv_1")):
    """Frozen layers that are spread as they were drawn, and what they leave for the head."""
    frozen = [parameter(name=f"{n}.kernel", module=n, trainable=False) for n in layers]
    norm = parameter(name="norm.gamma", module="norm", shape=(64,), trainable=False)
    head = ModuleFacts(name="head", kind="Dense", inputs=(tensor(8, 64, deviation=deviation),))
    called = tuple(ModuleFacts(name=n, kind="Conv2D") for n in layers)
    trained = parameter(name="head.kernel", module="head", deviation=3.0)
    return ForwardFacts(
        parameters=(*frozen, norm, trained),
        modules=(*called, head),
        head=head,
        same_for_other_inputs=True,
        same_when_perturbed=True,
    )


def test_random_layers_that_leave_nothing_are_the_cause_of_a_constant_output():
    (found,) = run(frozen_untrained_layers, drowned(1e-7), SETUP)
    assert found.repair.does == "train the 3 frozen parameters that nothing has trained"
    assert not run(frozen_untrained_layers, drowned(0.1), SETUP)
    assert run(frozen_untrained_layers, drowned(0.1), SETUP, outcome=BETTER)
    assert not run(frozen_untrained_layers, drowned(0.1, ("random",)), SETUP, outcome=BETTER)  # random features
    speaking = [bool(run(constant_output, drowned(d), SETUP, LossFacts(value=1.0))) for d in (1e-7, 0.1)]
    assert speaking == [False, True]


@pytest.mark.parametrize(
    ("seen", "zeros", "outcome", "instead"),
    [
        ({}, 0.5, BETTER, "no activation"),
        ({}, 0.5, SAME, None),
        ({}, 0.05, BETTER, None),  # hardly a score is cut
        ({"activation": "softplus"}, 0.5, BETTER, None),
        ({"function": "mse_loss"}, 0.5, BETTER, None),
        ({"function": "nll_loss", "from_logits": False}, 0.5, BETTER, "a softmax instead"),
        ({"function": "binary_cross_entropy", "from_logits": False}, 0.5, BETTER, "a sigmoid instead"),
        ({"function": "nll_loss"}, 0.5, BETTER, None),  # missing-activation's matter
    ],
)
def test_a_rectifier_before_a_classification_is_exchanged_for_what_the_loss_takes(seen, zeros, outcome, instead):
    given = {"function": "cross_entropy", "activation": "relu", "activation_module": "last", **seen}
    call = LossCall(inputs=tensor(8, 3, zero_share=zeros), targets=tensor(8, dtype="int64"), at=None, **given)
    found = run(rectified_logits, LossFacts(call=call, calls=(call,)), SETUP, outcome=outcome)
    assert [f.repair.does for f in found] == ([f"{instead} at last"] if instead else [])


def test_rows_that_are_equal_at_first_only_are_no_fault():
    assert run(identical_units, ForwardFacts(parameters=(parameter(identical_after_steps=True),)), SETUP)
    for later in (False, None):
        facts = ForwardFacts(parameters=(parameter(identical_rows=True, identical_after_steps=later),))
        assert not run(identical_units, facts, SETUP)


@pytest.mark.parametrize(
    ("weight", "loss", "outcome", "found"),
    [
        (parameter(deviation=1.0), 10.0, BETTER, 1),
        (parameter(deviation=1.0), 10.0, SAME, 0),  # the experiment does not bear it out
        (parameter(deviation=1.0), 2.0, BETTER, 0),  # the loss is near chance
        (parameter(deviation=0.25), 10.0, BETTER, 0),  # He's initialization
        (parameter(deviation=1.0, freshly_initialised=False), 10.0, BETTER, 0),  # a checkpoint's own
    ],
)
def test_weights_are_oversized_only_where_the_loss_shows_it(weight, loss, outcome, found):
    facts = LossFacts(value=loss, expected=1.1, chance_nats=1.1)
    assert (
        len(run(oversized_initialisation, ForwardFacts(parameters=(weight,)), facts, SETUP, outcome=outcome)) == found
    )


@pytest.mark.parametrize(("share", "units", "outcome", "found"), [(0.95, 64, BETTER, 1), (0.95, 64, SAME, 0),
                                                                (0.85, 64, BETTER, 0), (1.0, 4, BETTER, 0)])  # fmt: skip
def test_dead_units_are_nearly_all_of_a_layer_that_learns_when_revived(share, units, outcome, found):
    act = ModuleFacts(name="act", kind="ReLU", dead_share=share, inputs=(tensor(16, units),), output=tensor(16, units))
    assert len(run(dead_units, ForwardFacts(modules=(act,)), SETUP, outcome=outcome)) == found


def test_saturation_by_raw_inputs_is_left_to_the_rules_of_the_data():
    act = ModuleFacts(name="act", kind="Tanh", saturated_share=0.9, inputs=(tensor(16, 8, minimum=3.0, maximum=9.0),))
    facts = ForwardFacts(modules=(act,))
    assert run(saturated_units, facts, BatchFacts(tensors={"x": tensor(16, 8, maximum=1.0)}), SETUP, outcome=BETTER)
    assert not run(
        saturated_units, facts, BatchFacts(tensors={"x": tensor(16, 8, maximum=255.0)}), SETUP, outcome=BETTER
    )
    assert not run(saturated_units, facts, BATCH, SETUP, outcome=SAME)


@pytest.mark.parametrize(
    ("function", "columns", "mended"),
    [
        ("cross_entropy", "columns_sum_to_one", True),
        ("nll_loss", "columns_log_normalised", True),
        ("kl_div", "columns_log_normalised", False),
    ],
)
def test_scores_normalised_over_the_rows_are_named_without_a_leak_of_the_model(function, columns, mended):
    call = LossCall(
        function=function, inputs=tensor(8, 3), targets=tensor(8), at=None, softmax_at=LINE, **{columns: True}
    )
    [found] = run(crossed_samples, ForwardFacts(leaking_rows=0.0), SETUP, LossFacts(calls=(call,)))
    assert found.where == LINE and "8 rows" in found.message and (found.repair is not None) == mended


def test_leaks_within_rounding_are_none():
    assert run(crossed_samples, ForwardFacts(leaking_rows=0.01), SETUP, None)
    pairs = ForwardFacts(leaking_rows=0.01, output=TensorFacts(shape=(8, 8), dtype="float32"))
    assert not run(crossed_samples, pairs, SETUP, None), "a score for each pair of rows depends on both"
    assert not run(crossed_samples, ForwardFacts(leaking_rows=1e-4), SETUP, None)
    assert not run(crossed_samples, ForwardFacts(), SETUP, None)


def test_a_model_whose_loss_does_not_ask_for_the_next_token_may_look_ahead():
    assert run(future_leak, ForwardFacts(future_leak=0.3, predicts_next_token=True), SETUP)
    assert not run(future_leak, ForwardFacts(future_leak=0.3, causal=True), SETUP)
    assert not run(future_leak, ForwardFacts(future_leak=1e-5, predicts_next_token=True), SETUP)


def test_parts_of_a_checkpoint_in_evaluation_mode_are_on_purpose_the_whole_model_is_not():
    part = ForwardFacts(eval_modules=("body.drop",))
    loaded = replace(SETUP, loads_checkpoint=True)
    assert run(inactive_training_mode, part, SETUP)
    assert not run(inactive_training_mode, part, loaded)
    assert run(inactive_training_mode, replace(part, training=False), loaded)


def test_the_mended_batch_size_is_a_power_of_two_and_keeps_the_rows_of_an_update():
    memory = MemoryFacts(device="cuda", total_bytes=8 * 10**9, weights_bytes=10**9, gradients_bytes=10**9,
                         optimizer_bytes=2 * 10**9, activations_bytes=6 * 10**9, batch_rows=64, largest_rows=20)  # fmt: skip
    (finding,) = run(out_of_memory, ForwardFacts(memory=memory), replace(SETUP, accumulation=2))
    assert "per_device_train_batch_size=16 and gradient_accumulation_steps=8" in finding.fix.does
    assert "activations 6.00 GB" in finding.message
    assert "20 rows" in finding.message
    assert not run(out_of_memory, ForwardFacts(), SETUP)


@pytest.mark.parametrize(("probability", "learnt", "outcome", "found"), [(0.9, False, BETTER, 1), (0.9, True, BETTER, 0),
                                                                        (0.5, False, BETTER, 0), (0.9, False, SAME, 0)])  # fmt: skip
def test_dropout_is_extreme_where_a_batch_is_not_learnt_for_it(probability, learnt, outcome, found):
    drop = ModuleFacts(name="drop", kind="Dropout", dropout=probability)
    overfit = OverfitFacts(losses=(2.0, 1.9), rows=16, learnt=learnt, falling=False)
    assert len(run(extreme_dropout, ForwardFacts(modules=(drop,)), overfit, SETUP, outcome=outcome)) == found


def test_an_input_without_effect_is_named_unless_none_has_any():
    (finding,) = run(ignored_input, ForwardFacts(ignored_inputs=("image",)), SETUP)
    assert finding.measured["input"] == "image" and finding.severity == Severity.NOTE
    last = ForwardFacts(ignored_inputs=("image", "position_ids"), has_last_weights=True)
    assert [f.severity for f in run(ignored_input, last, SETUP)] == [Severity.WARNING, Severity.NOTE]
    constant = ForwardFacts(ignored_inputs=("image",), same_for_other_inputs=True, same_when_perturbed=True)
    assert not run(ignored_input, constant, SETUP)


def layer(name: str, *sizes: int) -> ModuleFacts:
    return ModuleFacts(name=name, kind="Linear", sizes=sizes, where=LINE)


@pytest.mark.parametrize(
    ("sizes", "affine", "named"),
    [
        (((2, 64), (64, 64), (64, 3)), True, True),
        (((8, 16), (16 * 9, 3)), True, True),  # flattened between them
        (((2, 64), (64, 3)), False, False),
        (((2, 64), (64, 3)), None, False),
        (((64, 3),), True, False),  # a linear model
        (((64, 8), (8, 64)), True, False),  # a bottleneck
        (((20, 1), (20, 1)), True, False),  # two heads of one input
    ],
)
def test_layers_without_an_activation_are_named_unless_they_are_meant_so(sizes, affine, named):
    forward = ForwardFacts(modules=tuple(layer(str(i), *s) for i, s in enumerate(sizes)), affine=affine)
    assert [f.where for f in linear_stack.function(forward, LossFacts(), SETUP)] == [LINE] * named
