"""A misspelt name: when it counts as one, what the fix writes, and what the copy holds."""

import pytest

from trainwright.core import Failure, Place, Report
from trainwright.core.misspelt import is_slip, mend
from trainwright.fixes.rewriting import apply
from trainwright.report.words import unexplained
from trainwright.seams.failures.blame import describe_error
from trainwright.seams.source.going_past import go_past
from trainwright.seams.source.renaming import rename_in_text

AT = Place("train.py", 2)
UNKNOWN = "name 'tokenized_dataset' is not defined. Did you mean: 'tokenized_datasets'?"


def stop(message: str, kind: str = "NameError", where: Place = AT) -> Failure:
    return Failure(type=kind, message=message, where=where, trace=(f"{where} in <module>: …",))


@pytest.mark.parametrize(
    ("written", "meant", "is_one"),
    [
        ("tokenized_dataset", "tokenized_datasets", True),
        ("save_modle", "save_model", True),
        ("traindataset", "train_dataset", True),
        ("inputs", "input", False),  # a variable that is missing, not the built-in function
        ("x_train", "y_train", False),
        ("train_x", "train_y", False),
        ("model1", "model2", False),
        ("Dataset", "dataset", False),  # a class that was not imported
        ("batch_encode_plus", "batch_decode", False),
        ("enumrate", "enumerate", True),
        ("netD", "netG", False),
        ("optimizerD", "optimizerG", False),
        ("trainX", "trainY", False),
        ("test_loader", "text_loader", False),
        ("epochs", "epoch", False),  # the number of them, and one of them
        ("trian_loader", "train_loader", True),
    ],
)
def test_a_slip_is_told_from_another_name(written: str, meant: str, is_one: bool) -> None:
    assert is_slip(written, meant) is is_one


def test_the_fix_writes_the_suggested_name() -> None:
    fix = mend(stop(UNKNOWN))
    assert fix.does == "write tokenized_datasets for tokenized_dataset"
    text = "tokenized_datasets = {}\ntokenized_dataset.get(1)\nprint(tokenized_dataset)\n"
    expected = "tokenized_datasets = {}\ntokenized_datasets.get(1)\nprint(tokenized_datasets)\n"
    assert apply(text, fix.edits) == expected


def test_the_copy_has_it_too() -> None:
    text = "tokenized_datasets = {}\ntokenized_dataset.get(1)\n"
    passed = go_past(stop(UNKNOWN), lambda file: text)
    assert passed is not None and passed.text == text.replace("dataset.get", "datasets.get")
    assert passed.said == "line 2: tokenized_datasets for tokenized_dataset"


def test_a_method_is_corrected_on_its_line_only() -> None:
    message = "'Trainer' object has no attribute 'save_modle'. Did you mean: 'save_model'?"
    text = "x = 1\ntrainer.save_modle('é'); other = 'save_modle'\nother.save_modle()\n"
    passed = go_past(stop(message, "AttributeError"), lambda file: text)
    assert passed is not None
    assert passed.text == "x = 1\ntrainer.save_model('é'); other = 'save_modle'\nother.save_modle()\n"


def test_a_name_that_is_set_later_is_not_misspelt() -> None:
    assert rename_in_text("rows = []\nprint(row)\nrow = 1\n", 2, "row", "rows") is None
    assert rename_in_text("totals = 0\ntotal += 1\n", 2, "total", "totals") == "totals = 0\ntotals += 1\n"


def test_a_name_of_a_function_is_corrected_on_its_line_only() -> None:
    text = "def f(rows):\n    return rowz\ndef g():\n    return rowz\n"
    assert rename_in_text(text, 2, "rowz", "rows") == text.replace("rowz", "rows", 1)


def test_a_doubtful_suggestion_is_only_said() -> None:
    fix = mend(stop("name 'x_train' is not defined. Did you mean: 'y_train'?"))
    assert not fix.edits and fix.does == "set x_train before this line, or write y_train if that is meant"


def test_names_that_are_as_near_are_both_suggested() -> None:
    names = {"train_lossa": 1, "train_lossb": 1}
    with pytest.raises(NameError) as raised:
        exec(compile("train_loss", __file__, "eval"), names)
    assert describe_error(raised.value).message.endswith(
        "Did you mean: 'train_lossa' or 'train_lossb'?"
    ) or describe_error(raised.value).message.endswith("Did you mean: 'train_lossb' or 'train_lossa'?")


def test_the_remark_speaks_of_no_missing_package() -> None:
    report = Report(script="train.py", failure=stop(UNKNOWN))
    assert "package" not in unexplained(report) and "notebook" not in unexplained(report)
