"""An exception in words: what Python would suggest below a traceback."""

from collections.abc import Callable

import pytest

from trainwright.seams.failures.blame import describe_error


class Trainer:
    def save_model(self) -> None: ...


tokenized_datasets = {"train": [1]}


@pytest.mark.parametrize(
    ("wrong", "end"),
    [
        (lambda: tokenized_dataset, "Did you mean: 'tokenized_datasets'?"),  # noqa: F821
        (lambda: Trainer().save_modle(), "Did you mean: 'save_model'?"),  # type: ignore[attr-defined]
        (lambda: samples_per_step, "'samples_per_step' is not defined"),  # noqa: F821
        (lambda: Trainer().fit(), "has no attribute 'fit'"),  # type: ignore[attr-defined]
        (lambda: {}["tokenized_dataset"], "'tokenized_dataset'"),
    ],
)
def test_a_misspelled_name_is_told_with_the_one_that_is_like_it(wrong: Callable[[], object], end: str) -> None:
    with pytest.raises((NameError, AttributeError, KeyError)) as raised:
        wrong()
    assert describe_error(raised.value).message.endswith(end)


def test_an_error_that_keras_wraps_in_a_key_error_is_told_as_it_was() -> None:
    wrapped = KeyError(
        "Exception encountered when calling Model.call().\n\n\x1b[1mattention_mask\x1b[0m\n\nArguments …"
    )
    assert describe_error(wrapped).message == "attention_mask"
    assert describe_error(KeyError("attention_mask")).message == "'attention_mask'"
