"""What guessing would give by a script's own metric function."""

from types import SimpleNamespace

import numpy as np
import pytest

from trainwright.core.guess import Guess
from trainwright.probes.metrics import score_guesses
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.guessing import watch_trainer_metrics
from trainwright.stages import EvaluationFacts
from trainwright.stages.describe import describe

LABELS = np.array([0] * 30 + [1] * 10)


def accuracy_of(labels):
    return lambda scores: {"accuracy": float((scores.argmax(-1) == labels).mean())}


def test_a_constant_answer_is_the_most_frequent_class_and_a_random_one_keeps_the_shares() -> None:
    guess = score_guesses(np.random.default_rng(1).normal(size=(40, 2)), LABELS, accuracy_of(LABELS))["accuracy"]
    assert guess.constant == 0.75
    assert guess.random == pytest.approx(0.75**2 + 0.25**2, abs=0.08)


def test_the_function_gets_the_form_that_it_gets_of_the_model() -> None:
    def of_classes(answers):
        assert answers.shape == LABELS.shape and answers.dtype == np.int64
        return {"accuracy": float((answers == LABELS).mean())}

    assert score_guesses(np.zeros(40, dtype=np.int64), LABELS, of_classes)["accuracy"].constant == 0.75

    def of_pair(answers):
        return accuracy_of(LABELS)(answers[0]) if len(answers) == 2 else {}

    assert score_guesses((np.zeros((40, 2)), np.ones(3)), LABELS, of_pair)["accuracy"].constant == 0.75

    def of_tokens(scores):
        live = tokens != -100
        return {"accuracy": float((scores.argmax(-1) == tokens)[live].mean())}

    tokens = np.where(np.arange(40).reshape(8, 5) % 5 == 4, -100, LABELS.reshape(8, 5))
    assert score_guesses(np.zeros((8, 5, 3)), tokens, of_tokens)["accuracy"].constant == 0.75


def test_numbers_and_several_labels_have_guesses_too() -> None:
    aims = np.linspace(-1, 1, 50).astype(np.float32)

    def explained(values):
        return {"r2": float(1 - ((values - aims) ** 2).sum() / (aims**2).sum())}

    guess = score_guesses(np.ones(50, dtype=np.float32), aims, explained)["r2"]
    assert guess.constant == pytest.approx(0, abs=1e-6) and guess.random is not None and guess.random < -0.5
    several = np.array([[1, 0], [1, 0], [1, 1], [0, 0]])
    guess = score_guesses(np.full((4, 2), 3.0), several, lambda v: {"exact": float(((v > 0) == several).mean())})[
        "exact"
    ]
    assert guess.constant == 0.75


def test_where_the_function_takes_no_guess_nothing_is_said() -> None:
    def raises(answers):
        raise KeyError("the file's name")

    assert score_guesses(np.zeros((40, 2)), LABELS, raises) == {}
    assert score_guesses(np.zeros((40, 2)), np.full(40, -1), accuracy_of(LABELS)) == {}
    assert score_guesses(np.zeros((40, 7, 2)), LABELS, accuracy_of(LABELS)) == {}
    # How wrong a random answer is that is sure depends on how sure: only a constant has a log loss.
    assert score_guesses(np.zeros((40, 2)), LABELS, lambda scores: {"log_loss": 0.5})["log_loss"] == Guess(constant=0.5)


def test_a_stage_says_what_guessing_gives_beside_the_metric() -> None:
    facts = EvaluationFacts(
        metrics={"eval_loss": 1.1, "eval_accuracy": 0.4}, guesses={"accuracy": Guess(constant=0.5, random=0.25)}
    )
    assert describe(facts) == "eval_loss 1.1, eval_accuracy 0.4; guessing gives accuracy 0.5 (constant), 0.25 (random)"


def test_a_trainer_s_metrics_are_asked_only_after_the_run() -> None:
    calls = []

    def compute_metrics(given):
        calls.append(given.predictions)
        labels = given.label_ids
        labels[labels == 1] = 1  # in place, as many do
        return {"accuracy": float((given.predictions.argmax(-1) == labels).mean())}

    class Given:
        def __init__(self, predictions, label_ids) -> None:
            self.predictions, self.label_ids = predictions, label_ids

    class Trainer:
        args = SimpleNamespace(batch_eval_metrics=False)

        def evaluation_loop(self, loader, description, metric_key_prefix="eval"):
            return self.compute_metrics(Given(np.eye(2)[LABELS], LABELS.copy()))

    recorder = Recorder()
    watch_trainer_metrics(recorder, Trainer)
    trainer = Trainer()
    trainer.compute_metrics = compute_metrics
    assert trainer.evaluation_loop(None, "") == {"accuracy": 1.0}
    assert len(calls) == 1 and trainer.compute_metrics is compute_metrics
    for part in recorder.on_finish:
        part()
    assert recorder.record.guesses["eval_accuracy"].constant == 0.75
