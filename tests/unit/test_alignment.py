"""The probe tells labels of their rows from permuted ones, and does not speak of what it cannot see."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from trainwright.probes.labels.alignment import measure_alignment
from trainwright.rules.dataset.pairing import misaligned_labels
from trainwright.stages import Alignment, DatasetFacts, SetupFacts, SplitFacts, TextFacts

WORDS = np.asarray([f"{a}{b}" for a in "bcdfghklmnprst" for b in ("a", "e", "i", "o", "u", "an", "el", "os")])


def findings(train, evaluation=None, texts=None):
    split = SplitFacts(name="train", rows=1000)
    facts = DatasetFacts(train=split, alignment=train, evaluation_alignment=evaluation, texts=texts)
    return list(misaligned_labels.function(facts, SetupFacts()))


def texts(rows, seed=0):
    """Texts about one of three subjects, each with words of its own among common ones."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, rows)
    return [" ".join(random.choice(WORDS[: 60 + 20 * y][-40:], 12)) for y in labels], labels


@pytest.mark.parametrize("name", ["digits", "cancer", "diabetes"])
def test_shuffled_tables_are_told_from_right_ones(name):
    data = {"digits": load_digits, "cancer": load_breast_cancer, "diabetes": load_diabetes}[name]()
    kind = "real" if name == "diabetes" else "class"
    right = measure_alignment({"x": data.data, "y": data.target}, "y", kind)
    wrong = measure_alignment({"x": data.data, "y": np.random.default_rng(0).permutation(data.target)}, "y", kind)
    assert not findings(right) and findings(wrong)


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_texts_are_told_from_right_ones(seed):
    written, labels = texts(500, seed)
    assert not findings(measure_alignment({"text": written, "label": labels}, "label", "class"))
    wrong = np.random.default_rng(seed).permutation(labels)
    assert findings(measure_alignment({"text": written, "label": wrong}, "label", "class"))


@pytest.mark.parametrize(("unknown_share", "speaks"), [(0.1, True), (None, True), (0.8, False)])
def test_labels_of_texts_that_the_tokenizer_does_not_know_are_not_accused(unknown_share, speaks):
    """The words that tell the label may be among the unknown ones, which garbled-text says."""
    written, labels = texts(500)
    wrong = measure_alignment(
        {"text": written, "label": np.random.default_rng(0).permutation(labels)}, "label", "class"
    )
    decoded = TextFacts(rows=500, empty=0, distinct=500, unknown_share=unknown_share, longest=12)
    assert bool(findings(wrong, texts=decoded)) == speaks


def test_rows_of_numbers_of_unequal_lengths_are_read_as_tokens():
    written, labels = texts(500)
    rows = [[int(np.flatnonzero(word == WORDS)[0]) for word in t.split()[: 8 + n % 5]] for n, t in enumerate(written)]
    assert not findings(measure_alignment({"0": rows, "1": labels}, "1", "class"))
    wrong = np.random.default_rng(0).permutation(labels)
    assert findings(measure_alignment({"0": rows, "1": wrong}, "1", "class"))


def test_a_right_evaluation_set_proves_wrong_training_labels_even_of_pairs():
    written, labels = texts(900)
    joined = [f"{t[:30]} [SEP] {t[30:]}" for t in written]
    wrong = np.random.default_rng(0).permutation(labels[:500])
    train = measure_alignment({"text": joined[:500], "label": wrong}, "label", "class")
    evaluation = measure_alignment({"text": joined[500:], "label": labels[500:]}, "label", "class")
    assert not train.single and not findings(train) and findings(train, evaluation)


@pytest.mark.parametrize(("inputs", "count"), [(("tokens", "text"), 0), (("text", "tokens"), 0), (("text", "text"), 1)])
def test_a_set_of_texts_and_a_set_of_tokens_are_two_tasks(inputs, count):
    learned, not_learned = {"score": 9.0, "control_score": 0.0}, {"score": 1.0, "control_score": 0.0}
    for scores in ((learned, not_learned), (not_learned, learned)):
        train, evaluation = (Alignment(rows=400, inputs=kind, **s) for kind, s in zip(inputs, scores))
        assert len(findings(train, evaluation)) == count


def parity():
    bits = np.random.default_rng(0).integers(0, 2, (1000, 12))
    return {"x": bits.astype(np.float32), "y": bits.sum(axis=1) % 2}


def random_tokens():
    tokens = np.random.default_rng(0).integers(5, 80, (800, 16))
    return {"input_ids": tokens.tolist(), "y": (tokens[:, 3] > tokens[:, 9]).astype(int)}


def random_walk():
    check_script = np.cumsum(np.random.default_rng(0).standard_normal(1020))
    windows = np.lib.stride_tricks.sliding_window_view(check_script, 20)[:1000]
    return {"x": windows.astype(np.float32), "y": (check_script[20:] > windows[:, -1]).astype(int)}


def few():
    written, labels = texts(150)
    return {"text": written, "y": np.random.default_rng(0).permutation(labels)}


def rare():
    written, _ = texts(800)
    return {"text": written, "y": (np.arange(800) % 20 == 0).astype(int)}


@pytest.mark.parametrize("task", [parity, random_tokens, random_walk, few, rare])
def test_tasks_that_such_a_probe_cannot_judge_are_left_alone(task):
    assert not findings(measure_alignment(task(), "y", "class"))


def test_the_left_out_predictions_are_those_of_fits_without_the_row():
    from trainwright.probes.ridge import leave_one_out

    random = np.random.default_rng(0)
    table, targets = random.standard_normal((12, 3)), random.standard_normal((12, 2))
    kernel = table @ table.T
    penalty = np.mean(np.diag(kernel))
    quick = leave_one_out(kernel, targets)
    for row in range(12):
        others = np.delete(np.arange(12), row)
        fitted = np.linalg.solve(kernel[np.ix_(others, others)] + penalty * np.eye(11), targets[others])
        np.testing.assert_allclose(quick[row], kernel[row, others] @ fitted, rtol=1e-9)


def agreeing(rows, seed):
    """Sentences with an equal share of every word, right where subject and verb agree; and whether they do."""
    random = np.random.default_rng(seed)
    nouns, verbs = [f"n{i}" for i in range(12)], [f"v{i}" for i in range(12)]
    near, when = [f"p{i}" for i in range(6)], [f"w{i}" for i in range(8)]
    written, labels = [], []
    for _ in range(rows):
        subject, other, verb = random.integers(0, 2, 3)
        words = ("the", random.choice(nouns) + "s" * subject, random.choice(near), "the", random.choice(nouns) + "s" * other,
                 random.choice(verbs) + "s" * verb, random.choice(when))  # fmt: skip
        written.append(" ".join(words))
        labels.append(int(subject != verb))
    return written, np.asarray(labels)


@pytest.mark.parametrize("rows", [400, 600, 1500])
def test_sentences_that_are_right_by_the_agreement_of_two_words_are_left_alone(rows):
    """Linguists' sentences (CoLA) are of this kind: what is acceptable shows in no word."""
    for seed in range(2):
        written, labels = agreeing(rows, seed)
        assert not findings(measure_alignment({"text": written, "label": labels}, "label", "class"))


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({}, 1),
        ({"score": 3.5}, 0),
        ({"control_score": 6.0}, 0),
        ({"rows": 399}, 0),
        ({"single": False}, 0),
        ({"classes": 2, "likeness": 0.44}, 1),
        ({"classes": 2, "likeness": 0.45}, 0),
        ({"classes": 3, "likeness": 0.9}, 1),
        ({"classes": 2, "likeness": 0.9, "pair_control_score": 6.1}, 1),
    ],
)
def test_a_set_alone_is_judged_only_where_its_controls_are_learnt(changed, count):
    seen = Alignment(**{"rows": 400, "score": 3.0, "control_score": 6.1, **changed})
    assert len(findings(seen)) == count
