"""`explain` answers a name, a code, an error message, or words."""

import io

import pytest
from rich.console import Console

from trainwright.explain.answer import explain, mentioning, near
from trainwright.registry import knowing, load_rules


def answer(question: str) -> tuple[bool, str]:
    found, shown = explain(question)
    file = io.StringIO()
    Console(file=file, width=100).print(shown)
    return found, " ".join(file.getvalue().split())


def test_a_word_lists_the_rules_that_mention_it_those_named_for_it_first() -> None:
    names = [r.name for r in mentioning("padding")]
    assert names[0] == "unmasked-padding"
    assert "ragged-batch" in names
    found, text = answer("padding")
    assert found
    assert text.startswith(f"{len(names)} rules mention padding")
    assert "TW201 ragged-batch error batch" in text


def test_all_of_several_words_must_be_mentioned_in_whatever_form() -> None:
    first = [r.name for r in mentioning("Learning Rates")][:2]
    assert first == ["excessive-learning-rate", "negligible-learning-rate"]
    assert {r.code for r in mentioning("tw4")} == {r.code for r in load_rules() if r.code.startswith("TW4")}
    assert mentioning("padding spaghetti") == []


def test_a_word_that_one_rule_mentions_prints_its_page() -> None:
    only = [r for r in load_rules() if [r] == mentioning(r.name.replace("-", " "))]
    assert only
    found, text = answer(only[0].name.replace("-", " "))
    assert found
    assert "Why it matters" in text


def test_a_long_text_is_an_error_message_and_its_words_are_not_looked_for() -> None:
    assert mentioning("the loss of this batch with these labels and weights") == []


def test_a_name_that_is_misspelt_is_answered_with_those_near_to_it() -> None:
    assert near("raged batch") == ["ragged-batch"]
    found, text = answer("renamed-arguement")
    assert not found
    assert "Did you mean renamed-argument?" in text
    assert "Near" not in answer("zzz")[1]
    assert not answer("")[0]


# What Keras says on one of its backends, and a rule that knows the cause.
KERAS_ERRORS = {
    "ValueError: Argument(s) not recognized: {'lr': 0.01}": "renamed-argument",
    "ValueError: Unrecognized keyword arguments passed to Dense: {'init': 'normal'}": "renamed-argument",
    "AttributeError: 'Sequential' object has no attribute 'fit_generator'": "removed-api",
    "ModuleNotFoundError: No module named 'keras.preprocessing.text'": "removed-api",
    'ValueError: Input 0 of layer "dense" is incompatible with the layer: expected axis -1 of input shape to have value 8, '
    "but received input with shape (32, 7)": "layer-size-mismatch",
    "ValueError: Argument `output` must have rank (ndim) `target.ndim - 1`. Received: target.shape=(16, 3), "
    "output.shape=(16, 3)": "sparse-dense-mismatch",
    "Received a label value of 2 which is outside the valid range of [0, 2).": "label-out-of-range",
    "ValueError: y_true and y_pred have different structures.\ny_true: {'hue': '*'}\ny_pred: ['*', '*']": "unknown-output",
    "ValueError: Expected keys ['price', 'kind'] in loss dict, but found loss.keys()=['prices', 'kind']": "unknown-output",
    "ValueError: tf.function only supports singleton tf.Variables created on the first call.": "rebuilt-layers",
    "indices[0,5] = 1000 is not in [0, 1000)": "tokens-beyond-vocabulary",
    "{{function_node __wrapped__Sub_device_/job:localhost/replica:0}} required broadcastable shapes [Op:Sub]": "broadcast-loss",
    "KeyError: Unknown variable: <Variable path=dense/kernel>. This optimizer can only be called for the variables it was "
    "originally built with.": "unregistered-parameters",
    "ValueError: No gradients provided for any variable.": "no-gradient",
    "ValueError: Failed to convert a NumPy array to a Tensor (Unsupported object type list).": "ragged-batch",
}  # fmt: skip


@pytest.mark.parametrize(("message", "name"), KERAS_ERRORS.items(), ids=lambda text: text[:40])
def test_an_error_of_keras_is_known(message: str, name: str) -> None:
    assert name in [rule.name for rule in knowing(message)]


def test_a_quotation_may_hold_backticks() -> None:
    said = "ValueError: The `metric_for_best_model` training argument is set to 'f1', which is not found in the evaluation metrics"
    assert "unknown-best-metric" in [rule.name for rule in knowing(said)]
    assert not knowing("The layer has never been called.")


@pytest.mark.parametrize("quote", ["", "`"])
def test_backticks_in_a_message_do_not_matter(quote: str) -> None:
    said = f"ValueError: {quote}logits{quote} and {quote}labels{quote} must have the same shape, received ((2, 2) vs (2, 1))"
    assert {"wrong-head", "broadcast-loss"} <= {rule.name for rule in knowing(said)}
