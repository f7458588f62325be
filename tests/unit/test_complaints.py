"""Complaints in words lead to rules that fit, and to the check."""

import io

import pytest
from rich.console import Console

from trainwright.explain.answer import closest, explain
from trainwright.explain.complaints import COMPLAINTS, QUESTIONS, complaint_of
from trainwright.registry import load_rules

# What people write, and a rule that must be among those named.
SAID = {
    "my loss does not decrease": "uncleared-gradients",
    "training loss doesn't go down": "unstepped-optimizer",
    "the loss isnt decreasing at all": "excessive-learning-rate",
    "Why is my model not learning anything?": "negligible-learning-rate",
    "loss is constant": "frozen-model",
    "loss is nan": "non-finite-loss",
    "the loss is NaN": "label-out-of-range",
    "the model cannot overfit one batch": "unstepped-optimizer",
    "loss becomes NaN after a few steps": "excessive-learning-rate",
    "I get inf in the gradients": "non-finite-gradients",
    "accuracy stuck at chance": "misaligned-labels",
    "accuracy does not improve": "metrics-on-logits",
    "my accuracy is always 50%": "argmax-of-one-column",
    "model predicts only one class": "imbalanced-classes",
    "the network always outputs the same value": "constant-output",
    "all predictions are the same": "held-out-at-constant",
    "F1 score is 0": "imbalanced-classes",
    "validation loss rises while the training loss falls": "differently-scaled-sets",
    "my model overfits": "wrong-mode",
    "good train accuracy but bad test accuracy": "differently-scaled-sets",
    "validation accuracy is too good to be true": "train-eval-overlap",
    "training is very slow": "endless-epoch",
    "out of memory": "out-of-memory",
    "gpu memory keeps growing": "retained-logits",
    "loss stays at 0.693": "constant-output",
    "loss stuck at 2.303": "severed-graph",
    "loss is 0 from the first step": "all-labels-masked",
    "loss explodes": "exploding-gradients",
    "loss increases": "excessive-learning-rate",
    "loss fluctuates a lot": "sorted-without-shuffle",
    "weights do not change": "unstepped-optimizer",
    "gradients are all None": "severed-graph",
    "eval_loss is missing": "missing-evaluation-labels",
    "early stopping does not work": "unknown-best-metric",
    "overfit one batch": "unlearnable-batch",
    "train on a TPU": "ranks-see-different-data",
    "TPU": "ranks-see-different-data",
    "CUDA out of memory": "out-of-memory",
    "n_ctx": "index-beyond-embedding",
    "push_to_hub": "removed-api",
    "nvidia-smi": "accelerator-held-by-others",
    "notebook still holds GPU memory": "accelerator-held-by-others",
    "how much memory does my model need": "out-of-memory",
    "compare learning rates": "excessive-learning-rate",
    "which learning rate should I use?": "negligible-learning-rate",
}


def answer(question: str) -> tuple[bool, str]:
    found, shown = explain(question)
    file = io.StringIO()
    Console(file=file, width=120).print(shown)
    return found, " ".join(file.getvalue().split())


@pytest.mark.parametrize(("said", "rule"), SAID.items(), ids=list(SAID))
def test_a_complaint_leads_to_the_check_and_to_rules(said: str, rule: str) -> None:
    found, text = answer(said)
    assert found
    assert "`trainwright check SCRIPT`" in text
    assert f" {rule} " in text


def test_every_complaint_is_made_by_someone_and_names_rules_that_exist() -> None:
    names = {rule.name for rule in load_rules()}
    assert all(set(one.rules) <= names for one in (*COMPLAINTS, *QUESTIONS))
    kinds = [one for one in (*COMPLAINTS, *QUESTIONS) if one.rules]
    assert {id(complaint_of(said)) for said in SAID} == {id(one) for one in kinds}


def test_questions_have_answers_of_their_own() -> None:
    assert "halve the batch size and accumulate" in answer("CUDA out of memory")[1]
    assert "trainwright bundle SCRIPT" in answer("ask for help")[1]
    assert "16 bytes with AdamW" in answer("how much memory does my model need")[1]
    assert "n_positions" in answer("n_ctx")[1]


@pytest.mark.parametrize(
    "text", ["padding", "learning rate", "", "loss", "a word " * 40, "hello there", "batch norm momentum"]
)
def test_what_is_no_complaint_is_not_answered_as_one(text: str) -> None:
    assert complaint_of(text) is None


def test_an_error_message_is_never_a_complaint() -> None:
    text = answer("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB")[1]
    assert "halve the batch size and accumulate" not in text
    assert "Halve the batch size" in text
    assert not answer("FrobnicationError: loss is nan")[0]


def test_unknown_words_name_rules_that_share_some() -> None:
    found, text = answer("my labels of text rows are somehow shifted by the collator twice")
    assert not found
    assert "labels-shifted-twice" in text
    assert closest("labels shifted twice")[0].name == "labels-shifted-twice"
    assert closest("quantum chromodynamics of spaghetti") == []
