"""Facts from two sources are compared class by class, down to the value that differs."""

from compared_facts import compare_facts
from trainwright.core import Place
from trainwright.stages import ForwardFacts, GradientFacts, ModuleFacts, TensorFacts


def forward(folder: str = "", **of_output) -> ForwardFacts:
    output = TensorFacts(**{"shape": (4, 2), "dtype": "float32", "mean": 0.5, **of_output})
    return ForwardFacts(
        modules=(ModuleFacts(name="head", kind="Linear", where=Place(f"{folder}train.py", 7), output=output),)
    )


def test_equal_facts_differ_in_nothing() -> None:
    (one,) = compare_facts([forward()], [forward("/home/me/", mean=0.500001)])
    assert not one.differ
    assert str(one) == f"ForwardFacts: {one.fields} of {one.fields} fields equal"


def test_a_difference_is_named_down_to_its_value() -> None:
    (one,) = compare_facts([forward()], [forward(mean=0.7, shape=(4, 3))])
    assert set(one.differ) == {"modules[0].output.mean: 0.5, 0.7", "modules[0].output.shape[1]: 2, 3"}
    assert str(one).startswith(f"ForwardFacts: {one.fields - 1} of {one.fields} fields equal")


def test_no_number_equals_no_number_and_nothing_else() -> None:
    assert not next(compare_facts([forward(mean=float("nan"))], [forward(mean=float("nan"))])).differ
    assert next(compare_facts([forward(mean=float("nan"))], [forward(mean=None)])).differ


def test_facts_that_one_side_lacks_differ_as_a_whole() -> None:
    forwards, gradients = compare_facts([forward(), GradientFacts()], [forward()])
    assert not forwards.differ
    assert str(gradients).startswith(f"GradientFacts: 0 of {gradients.fields} fields equal")
