"""The gates of the rules about what an evaluation counts and chooses by, on facts alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainwright.core import Place
from trainwright.rules.evaluation.best_metric import right_direction
from trainwright.rules.evaluation.counts import wrong_divisor
from trainwright.rules.metrics import greater_by_name
from trainwright.stages import EvaluationFacts, Quotient, Watcher

HERE = Place("train.py", 1)
SUM_BY_BATCHES = Quotient(
    name="correct",
    written="correct += equal.sum()",
    quotient="correct / len(loader)",
    by_rows=False,
    added=True,
    mean=False,
    compared=((20, 32), (10, 32)),
    batches=2,
    where=HERE,
    divided_at=HERE,
)


def found(quotient: Quotient) -> int:
    return len(list(wrong_divisor.function(EvaluationFacts(quotients=(quotient,)))))


def test_a_sum_of_rows_divided_by_batches_is_named_and_one_divided_by_rows_is_not() -> None:
    assert found(SUM_BY_BATCHES) == 1
    assert found(replace(SUM_BY_BATCHES, by_rows=True)) == 0


def test_a_quotient_that_can_be_a_share_is_not_named() -> None:
    assert found(replace(SUM_BY_BATCHES, compared=((1, 1), (1, 1)))) == 0
    assert found(replace(SUM_BY_BATCHES, mean=True)) == 0
    assert found(replace(SUM_BY_BATCHES, mean=True, by_rows=True, compared=((1, 1), (0, 1)))) == 0
    assert found(replace(SUM_BY_BATCHES, mean=None, by_rows=True)) == 0


def test_a_sum_of_means_divided_by_rows_is_named() -> None:
    assert found(replace(SUM_BY_BATCHES, mean=True, by_rows=True)) == 1


@pytest.mark.parametrize(
    ("name", "greater"),
    [
        ("val_loss", False),
        ("valid/loss_epoch", False),
        ("val_acc", True),
        ("val_f1", True),
        ("Val/Accuracy", True),
        ("acc_top5", True),
        ("val_dice_loss", False),
        ("val_neg_loss", None),
        ("accuracy_drop", None),
        ("val_score", None),
        ("epoch", None),
    ],
)
def test_a_metrics_name_says_its_direction_or_nothing(name: str, greater: bool | None) -> None:
    assert greater_by_name(name) is greater


@pytest.mark.parametrize(("value", "right"), [(2.3, False), (None, False), (-2.3, None)])
def test_a_loss_below_zero_may_be_a_negated_score(value: float | None, right: bool | None) -> None:
    watcher = Watcher(kind="ModelCheckpoint", purpose="keep", metric="val_loss_epoch", position=2, value=value)
    assert right_direction(watcher, EvaluationFacts()) is right
