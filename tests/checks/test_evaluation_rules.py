"""Edges of the evaluation's rules, on facts without a framework."""

from collections.abc import Iterator

import numpy as np
import pytest
from test_bad_input import training

from checks import check_script
from trainwright.core import Failure, Finding, Place, Stage, Status
from trainwright.fixes.rewriting import apply
from trainwright.probes.metrics import others, undone
from trainwright.rules.evaluation.best_metric import undirected_metric, unknown_best_metric, wrong_metric_direction
from trainwright.rules.evaluation.metric_functions import crashing_metrics, metrics_on_logits, mismatched_metric
from trainwright.rules.evaluation.metric_shapes import argmax_of_one_column, broadcast_metric
from trainwright.rules.evaluation.passes import retained_logits
from trainwright.stages import EvaluationFacts, SetupFacts, SubstitutePredictions, TensorFacts, Watcher

pytestmark = pytest.mark.slow

SETUP = SetupFacts(places={"metrics": Place("train.py", 3), "arguments": Place("train.py", 1)})
RULES = (metrics_on_logits, crashing_metrics, argmax_of_one_column, broadcast_metric, mismatched_metric)
RANDOM = np.random.default_rng(0)
CLASSES = RANDOM.integers(0, 3, 32)
BITS = RANDOM.integers(0, 2, 32)
REALS = RANDOM.normal(size=32)


def facts(metrics, scores: np.ndarray, labels: np.ndarray, **more) -> EvaluationFacts:
    """What the evaluation stage would measure of a metric function."""

    def tried(predictions):
        try:
            return {k: float(v) for k, v in metrics(predictions, labels).items()}
        except Exception as error:
            return str(error)

    now = tried(scores)
    return EvaluationFacts(
        predictions=(TensorFacts(shape=scores.shape, dtype="float32"),),
        labels=TensorFacts(shape=labels.shape, dtype=str(labels.dtype), minimum=-2.0, maximum=2.0),
        label_values=tuple(np.unique(labels)) if len(np.unique(labels)) <= 32 else (),
        continuous_labels=labels.dtype.kind == "f" and bool((labels % 1 != 0).any()),
        returned=now if isinstance(now, dict) else {},
        metrics_failure=Failure(type="ValueError", message=now, where=Place("train.py", 4)) if isinstance(now, str) else None,
        metrics_when={g: tried(p) for g, p in others(scores, labels).items()},
        **more,
    )  # fmt: skip


def said(evaluation: EvaluationFacts) -> list[str]:
    return [f.name for rule in RULES for f in findings(rule.function(evaluation, SETUP), rule.name)]


def findings(given: Iterator[Finding], name: str) -> list[Finding]:
    return [Finding(message=f.message, name=name) for f in given]


HEALTHY = {
    "accuracy of the argmax": (lambda p, t: {"accuracy": (p.argmax(-1) == t).mean()}, RANDOM.normal(size=(32, 3)), CLASSES),
    "error rate of the argmax": (lambda p, t: {"error": (p.argmax(-1) != t).mean()}, RANDOM.normal(size=(32, 3)), CLASSES),
    "classes made before": (lambda p, t: {"accuracy": (p == t).mean()}, RANDOM.integers(0, 3, 32), CLASSES),
    "two best": (lambda p, t: {"top2": np.mean([x in np.argsort(r)[-2:] for r, x in zip(p, t)])}, RANDOM.normal(size=(32, 3)), CLASSES),
    "mean score": (lambda p, t: {"confidence": p.max(-1).mean()}, RANDOM.normal(size=(32, 3)), CLASSES),
    "one logit": (lambda p, t: {"accuracy": ((p[:, 0] > 0) == t).mean()}, RANDOM.normal(size=(32, 1)), BITS),
    "one probability": (lambda p, t: {"accuracy": ((p.ravel() > 0.5) == t).mean()}, RANDOM.random((32, 1)), BITS),
    "several labels": (lambda p, t: {"accuracy": ((p > 0) == t).mean()}, RANDOM.normal(size=(32, 4)), RANDOM.integers(0, 2, (32, 4))),
    "squared error": (lambda p, t: {"mse": ((p.squeeze() - t) ** 2).mean()}, RANDOM.normal(size=(32, 1)), REALS),
    "correlation": (lambda p, t: {"r": np.corrcoef(p.squeeze(), t)[0, 1]}, RANDOM.normal(size=(32, 1)), REALS),
    "near enough": (lambda p, t: {"accuracy": (abs(p.squeeze() - t) < 0.1).mean()}, RANDOM.normal(size=(32, 1)), REALS),
    "tokens": (lambda p, t: {"accuracy": (p.argmax(-1) == t)[t != -100].mean()}, RANDOM.normal(size=(8, 4, 3)),
               np.where(RANDOM.random((8, 4)) < 0.3, -100, RANDOM.integers(0, 3, (8, 4)))),
    "rounded stars": (lambda p, t: {"accuracy": (p.round().ravel() == t).mean()}, 5 * RANDOM.random((32, 1)), CLASSES.astype(float)),
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_metrics_that_are_right_are_not_spoken_of(name: str) -> None:
    assert said(facts(*HEALTHY[name])) == []


FAULTY = {
    "metrics-on-logits": (
        lambda p, t: {"accuracy": np.mean([np.array_equal(a, b) for a, b in zip(p, t)])},
        (32, 3),
        CLASSES,
    ),
    "argmax-of-one-column": (
        lambda p, t: {"accuracy": (p.argmax(1) == t).mean(), "share": (t == 0).mean()},
        (32, 1),
        BITS,
    ),
    "broadcast-metric": (lambda p, t: {"accuracy": ((p > 0) == t).mean()}, (32, 1), BITS),
    "mismatched-metric": (lambda p, t: {"accuracy": (p.ravel() == t).mean()}, (32, 1), REALS),
    "crashing-metrics": (lambda p, t: {"accuracy": t["labels"]}, (32, 3), CLASSES),
}


@pytest.mark.parametrize("name", FAULTY)
def test_metrics_that_are_wrong_are_named_once(name: str) -> None:
    function, shape, labels = FAULTY[name]
    assert said(facts(function, RANDOM.normal(size=shape), labels)) == [name]


def test_the_accuracy_of_a_regression_by_its_argmax_is_a_mismatch() -> None:
    assert said(facts(lambda p, t: {"accuracy": (p.argmax(-1) == t).mean()}, RANDOM.normal(size=(32, 1)), REALS)) == [
        "mismatched-metric"
    ]


def test_predictions_are_kept_up_to_half_of_the_memory() -> None:
    base = {
        "keeps_predictions": True,
        "memory_bytes": 8000,
        "predictions": (TensorFacts(shape=(2, 10), dtype="float32"),),
    }
    assert not list(retained_logits.function(EvaluationFacts(rows=100, **base), SETUP))
    assert list(retained_logits.function(EvaluationFacts(rows=101, **base), SETUP))
    assert not list(retained_logits.function(EvaluationFacts(rows=101, **{**base, "keeps_predictions": False}), SETUP))


@pytest.mark.parametrize(("metric", "greater", "sets", "speaks"), [
    ("accuracy", True, (), False), ("eval_accuracy", True, (), False), ("loss", False, (), False), ("eval_loss", False, (), False),
    ("f1", True, (), True), ("accuracy", False, (), True), ("loss", True, (), True),
    ("test_accuracy", True, ("test", "far"), False), ("accuracy", True, ("test", "far"), True),
])  # fmt: skip
def test_the_best_metric_is_one_that_is_returned_in_its_direction(metric, greater, sets, speaks) -> None:
    evaluation = EvaluationFacts(
        best_metric=metric, best_greater=greater, metrics={"eval_loss": 1.1, "eval_accuracy": 0.4, "eval_runtime": 1.0},
        returned={"accuracy": 0.4}, metrics_when={SubstitutePredictions.PERFECT: {"accuracy": 1.0}}, set_names=sets,
    )  # fmt: skip
    family = (unknown_best_metric, wrong_metric_direction)
    assert any(list(rule.function(SETUP, evaluation)) for rule in family) == speaks


@pytest.mark.parametrize(("metric", "watcher", "severity"), [
    ("val_loss", {"greater": False}, None), ("val_loss", {"greater": True}, "error"), ("loss", {"greater": False}, None),
    ("val_accuracy", {"greater": True}, None), ("val_accuracy", {"greater": False}, "error"),
    ("val_own", {"greater": True}, None),  # nothing tells its direction
    ("val_own", {"greater": True, "usual": False}, "error"),
    ("val_accuracy", {"greater": False, "usual": False}, None),  # what was measured and the framework do not agree
    ("val_acc", {"greater": True}, "warning"), ("val_acc", {"greater": True, "purpose": "keep the best weights"}, "error"),
    ("val_own", {"failure": Failure(type="ValueError", message="", where=None)}, "error"),
])  # fmt: skip
def test_a_callback_watches_a_metric_that_is_logged_in_its_direction(metric, watcher, severity) -> None:
    told = {"kind": "EarlyStopping", "purpose": "stop the training", "position": 0, **watcher}
    evaluation = EvaluationFacts(
        watchers=(Watcher(metric=metric, **told),), logged=("accuracy", "loss", "val_accuracy", "val_loss", "val_own"),
        returned={"accuracy": 0.4, "own": 0.2}, metrics_when={SubstitutePredictions.PERFECT: {"accuracy": 1.0}},
    )  # fmt: skip
    family = (unknown_best_metric, wrong_metric_direction, undirected_metric)
    found = [f for rule in family for f in rule.function(SETUP, evaluation)]
    assert [f.severity for f in found] == ([severity] if severity else [])
    if metric == "val_acc":
        assert found[0].fix.does == 'write monitor="val_accuracy"'


def test_a_metric_that_names_files_too_is_not_changed_in_one_place() -> None:
    watcher = Watcher(kind="ModelCheckpoint", purpose="keep the best weights", metric="val_acc", position=1,
                      in_file_name=True, where=Place("train.py", 1))  # fmt: skip
    evaluation = EvaluationFacts(watchers=(watcher,), logged=("loss", "val_accuracy", "val_loss"))
    (found,) = unknown_best_metric.function(SETUP, evaluation)
    assert found.fix.does == 'write monitor="val_accuracy" and {val_accuracy} in the file name'
    assert not found.fix.edits


def test_a_direction_that_was_given_by_its_position_is_changed_there() -> None:
    watcher = Watcher(
        kind="EarlyStopping", purpose="stop the training", metric="val_accuracy", position=0, mode_position=4, greater=False,
        where=Place("train.py", 1),
    )  # fmt: skip
    evaluation = EvaluationFacts(
        watchers=(watcher,), returned={"accuracy": 0.4}, metrics_when={SubstitutePredictions.PERFECT: {"accuracy": 1.0}}
    )
    (found,) = wrong_metric_direction.function(SETUP, evaluation)
    source = 'stop = EarlyStopping("val_accuracy", 0, 5, 0, {})\n'
    assert apply(source.format('"min"'), found.fix.edits) == source.format('"max"')


def test_what_a_metric_function_writes_to_is_put_back() -> None:
    history, counts = [1], {"a": 1}

    def metrics():
        history.append(2)
        counts["b"] = 2
        print("not seen")

    with undone(metrics):
        metrics()
    assert (history, counts) == ([1], {"a": 1})


def test_of_several_sets_the_report_says_which_was_read(tmp_path) -> None:
    sets = 'eval_dataset={"train part": Digits(), "short": Digits(), "long": Digits()}'
    script = tmp_path / "train.py"
    script.write_text(training().replace("train_dataset=Digits()", f"train_dataset=Digits(), {sets}"))
    run = check_script(script).stages[Stage.EVALUATION]
    assert run.status == Status.PASSED
    assert run.why.endswith('(on the set "short"; train part, long not read)')
