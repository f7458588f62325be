"""The edges of the dataset rules' thresholds, on facts alone."""

from dataclasses import replace

import pytest

from trainwright.core import Failure, Outcome, Severity, Trial
from trainwright.rules.dataset.classes import imbalanced_classes, missing_classes
from trainwright.rules.dataset.label_values import destroyed_labels, string_labels
from trainwright.rules.dataset.lengths import empty_dataset
from trainwright.rules.dataset.pairing import misaligned_labels
from trainwright.rules.dataset.rows import duplicate_examples, non_finite_data
from trainwright.rules.dataset.sorted_rows import split_of_sorted_data
from trainwright.rules.dataset.texts import garbled_text, untokenized_dataset
from trainwright.rules.dataset.two_sets import train_eval_overlap
from trainwright.stages import (
    BatchFacts,
    ColumnFacts,
    Copies,
    DatasetFacts,
    EvaluatedLoss,
    LabelFacts,
    LabelSource,
    LearningFacts,
    Lookalike,
    LossCall,
    LossFacts,
    Repetition,
    SetupFacts,
    SplitFacts,
    TensorFacts,
    TextFacts,
    TokenizerFacts,
)
from trainwright.stages.describe import describe
from trainwright.stages.learning import MostAnswered

SETUP = SetupFacts()
_SCORES, _TARGETS = TensorFacts(shape=(8, 3), dtype="float32"), TensorFacts(shape=(8,), dtype="int64")


def _loss(function: str, *, labels: bool = True) -> LossFacts:
    call = LossCall(function=function, inputs=_SCORES, targets=_TARGETS, at=None)
    return LossFacts(function=function, classes=3, call=call, targets_are_labels=labels)


CLASSIFYING = _loss("cross_entropy")


def _labels(census, **kwargs) -> LabelFacts:
    return LabelFacts(
        column="label", kind=kwargs.pop("kind", "class"), census=census, counted=sum(census.values()), **kwargs
    )


def _split(census=None, name="train", **kwargs) -> SplitFacts:
    labels = kwargs.pop("labels", _labels(census) if census else None)
    rows = kwargs.pop("rows", labels.counted if labels else 100)
    return SplitFacts(name=name, rows=rows, labels=labels, labels_complete=True, **kwargs)


def _said(rule, *facts) -> list[str]:
    return [f.message for f in rule.function(*facts)]


def test_a_set_that_fills_a_batch_is_not_empty() -> None:
    for rows, drops, found in ((0, False, 1), (31, True, 1), (32, True, 0), (31, False, 0)):
        facts = DatasetFacts(train=_split(rows=rows), batch_size=32, drops_last=drops)
        assert len(_said(empty_dataset, facts, SETUP)) == found


def test_text_labels_that_the_collator_encodes_are_right() -> None:
    facts = DatasetFacts(train=_split(labels=_labels({"a": 5, "b": 5}, kind="text")))
    failed = BatchFacts(failure=Failure(type="ValueError", message="too many dimensions 'str'", where=None))
    formed = BatchFacts(label_key="labels", tensors={"labels": TensorFacts(shape=(8,), dtype="int64")})
    assert len(_said(string_labels, facts, failed, SETUP)) == 1
    assert not _said(string_labels, facts, formed, SETUP)


def test_constant_labels_without_a_source_are_left_alone() -> None:
    source = LabelSource(expression="stars", values={1: 5, 2: 5}, rows=10, own_column=True)
    facts = DatasetFacts(train=_split({0: 10}), sources=(source,))
    assert _said(destroyed_labels, facts, SETUP, CLASSIFYING) and _said(destroyed_labels, facts, SETUP, None)
    assert not _said(destroyed_labels, DatasetFacts(train=_split({0: 10})), SETUP, CLASSIFYING)


def test_labels_that_the_loss_does_not_use_may_be_constant() -> None:
    source = LabelSource(expression="stars", values={1: 5, 2: 5}, rows=10, own_column=True)
    facts = DatasetFacts(train=_split({0: 10}), sources=(source,))
    assert not _said(destroyed_labels, facts, SETUP, _loss("cross_entropy", labels=False))


def test_values_that_training_takes_are_left_alone() -> None:
    column = ColumnFacts(name="x", kind="numbers", non_finite=2, non_finite_rows=(4, 9), counted=50)
    for outcome, accepts, found in (
        ("the loss is nan", ("x",), 1),
        ("", ("x",), 0),
        ("the loss is nan", ("other",), 0),
    ):
        facts = DatasetFacts(
            train=_split({0: 50}, columns=(column,)), accepts=accepts, unusable_rows={"train": outcome}
        )
        assert len(_said(non_finite_data, facts, SETUP)) == found


@pytest.mark.parametrize(("held", "found"), [(7, 1), (6, 0), (0, 0)])
def test_a_rare_class_may_be_absent_by_chance(held: int, found: int) -> None:
    """Of 100 training rows 7 would be expected to hold a class that 7 of 100 evaluation rows hold."""
    evaluation = _split({0: 50, 1: 50 - held, 2: held} if held else {0: 50, 1: 50}, "evaluation")
    facts = DatasetFacts(train=_split({0: 50, 1: 50}), evaluation=evaluation)
    assert len(_said(missing_classes, facts, SETUP, CLASSIFYING)) == found


def test_unused_outputs_are_no_missing_class() -> None:
    """Labels from 1 to 2 with three outputs: class 0 is never used, and nobody misses it."""
    assert not _said(missing_classes, DatasetFacts(train=_split({1: 50, 2: 50})), SETUP, CLASSIFYING)


def test_classes_never_seen_are_usual_where_comparing_is_learnt() -> None:
    facts = DatasetFacts(train=_split({0: 50, 1: 50}), evaluation=_split({2: 50, 3: 50}, "evaluation"))
    assert not _said(missing_classes, facts, SETUP, _loss("triplet_margin_loss"))


@pytest.mark.parametrize(("run", "tail", "found"), [(50.0, {1: 40}, 1), (2.0, {1: 40}, 0), (50.0, {0: 20, 1: 20}, 0)])
def test_a_sorted_split_needs_runs_and_other_classes(run: float, tail: dict, found: int) -> None:
    train = _split(labels=_labels({0: 100, 1: 60}, mean_run=run, expected_run=1.9))
    held = _split(labels=_labels(tail, mean_run=20.0, expected_run=1.9), name="evaluation")
    assert len(_said(split_of_sorted_data, DatasetFacts(train=train, evaluation=held), SETUP, None)) == found


def test_rows_without_labels_that_repeat_are_a_note() -> None:
    """Generated points are compared with the training points themselves."""
    facts = _overlapping(30, 0, 80)
    points = (ColumnFacts(name="0", kind="numbers", dtype="float32", shape=(2,)),)
    assert facts.evaluation is not None
    facts = replace(
        facts,
        train=replace(facts.train, labels=None, columns=points),
        evaluation=replace(facts.evaluation, labels=None, columns=points),
    )
    found = list(train_eval_overlap.function(facts, SETUP))
    assert [f.severity for f in found] == [Severity.NOTE]


def _overlapping(shared: int, own: int, length: float) -> DatasetFacts:
    """100 evaluation rows of which some are in training, where some of 1,000 rows repeat."""
    text = ColumnFacts(name="text", kind="text", median_length=length)
    train = tuple(range(1000 - own // 2)) + tuple(range(own // 2))
    held = tuple(range(500, 500 + shared)) + tuple(range(5000, 5000 + 100 - shared))
    rows = tuple((i, 500 + i) for i in range(shared))
    return DatasetFacts(
        train=_split({0: 1000}, columns=(text,), row_hashes=train, hash_rows=range(1000)),
        evaluation=_split({0: 100}, "evaluation", columns=(text,), row_hashes=held, hash_rows=range(100)),
        overlap=shared, overlap_rows=rows,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shared", "own", "length", "found"),
    [(5, 0, 80, 1), (4, 0, 80, 0), (30, 300, 80, 0), (30, 300, 8, 0), (30, 100, 8, 1)],
)
def test_short_rows_may_repeat_as_often_as_within_training(shared: int, own: int, length: float, found: int) -> None:
    assert len(_said(train_eval_overlap, _overlapping(shared, own, length), SETUP)) == found


@pytest.mark.parametrize(("kinds", "found"), [(10, 0), (99, 1), (100, 1)])
def test_evaluation_rows_of_few_kinds_are_among_those_of_training(kinds: int, found: int) -> None:
    """All 100 of them are, while of the training rows 30 % repeat."""
    facts = _overlapping(100, 300, 8)
    held = replace(facts.evaluation, row_hashes=tuple(500 + i % kinds for i in range(100)))
    assert len(_said(train_eval_overlap, replace(facts, evaluation=held), SETUP)) == found


@pytest.mark.parametrize(
    ("differing", "labels", "inputs", "found"), [(4, 1.0, 30, 1), (3, 1.0, 30, 0), (10, 0.9, 30, 0), (10, 1.0, 7, 0)]
)
def test_rows_that_repeat_within_training_may_be_copies(
    differing: float, labels: float, inputs: int, found: int
) -> None:
    """Thirty evaluation rows of so many different inputs, which 300 of 1,000 training rows repeat."""
    facts = _overlapping(30, 300, 8)
    few = tuple(500 + i % inputs for i in range(30))
    held = replace(facts.evaluation, row_hashes=few + facts.evaluation.row_hashes[30:])
    copies = Copies(same_label_share=labels, nearest_differing=differing)
    facts = replace(facts, evaluation=held, copies=copies)
    assert len(_said(train_eval_overlap, facts, SETUP)) == found


@pytest.mark.parametrize(
    ("share", "different", "held", "read", "found"),
    [
        (1.0, 32, 800, 800, 1),
        (0.75, 32, 800, 800, 1),
        (0.74, 32, 800, 800, 0),
        (1.0, 32, 63, 800, 0),
        (1.0, 32, 800, 95, 0),
    ],
)
def test_duplicates_come_at_one_distance_and_leave_rows_out(
    share: float, different: int, held: int, read: int, found: int
) -> None:
    seen = Repetition(read=read, different=different, every=32, share=share, held=held, expression="self.x", where=None)
    facts = DatasetFacts(train=_split({0: 50, 1: 50}), repetition=seen)
    assert len(_said(duplicate_examples, facts, SETUP)) == found


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ({"empty": 51, "distinct": 50, "unknown_share": 0.0, "longest": 2}, 1),
        ({"empty": 50, "distinct": 50, "unknown_share": 0.0, "longest": 2}, 0),
        ({"empty": 0, "distinct": 90, "unknown_share": 0.51, "longest": 30}, 1),
        ({"empty": 0, "distinct": 90, "unknown_share": 0.5, "longest": 30}, 0),
        (
            {
                "empty": 0,
                "distinct": 19,
                "unknown_share": 0.0,
                "longest": 3,
                "source_distinct": 100,
                "source_tokens": 20,
            },
            1,
        ),
        (
            {
                "empty": 0,
                "distinct": 21,
                "unknown_share": 0.0,
                "longest": 3,
                "source_distinct": 100,
                "source_tokens": 20,
            },
            0,
        ),
        (
            {
                "empty": 0,
                "distinct": 19,
                "unknown_share": 0.0,
                "longest": 30,
                "source_distinct": 100,
                "source_tokens": 20,
            },
            0,
        ),
    ],
)
def test_garbled_texts(texts: dict, found: int) -> None:
    facts = DatasetFacts(train=_split({0: 100}), texts=TextFacts(rows=100, **texts))
    assert len(_said(garbled_text, facts, SETUP)) == found


@pytest.mark.parametrize(
    ("unknown", "longest", "fix"), [(1.0, 163, "tokenizer that"), (0.0, 3, "max_length to"), (0.0, 163, "only special")]
)
def test_texts_that_decode_to_nothing_were_not_always_cut(unknown: float, longest: int, fix: str) -> None:
    texts = TextFacts(
        rows=100, empty=100, distinct=1, unknown_share=unknown, longest=longest, source_distinct=100, source_tokens=12
    )
    (found,) = garbled_text.function(DatasetFacts(train=_split({0: 100}), texts=texts), SETUP)
    assert found.fix is not None and fix in found.fix.does


@pytest.mark.parametrize(
    ("train", "held", "found", "mended"),
    [
        (("a", "b", "c"), ("a", "b", "c"), False, False),
        (("a", "b", "c"), ("a", "c", "b"), True, True),
        (("a", "b", "c"), ("b", "c"), True, True),
        (("a", "b"), ("a", "b", "c"), False, False),
        (("a", "b"), ("c", "a"), True, False),
        (("a", "b"), ("x", "y"), False, False),  # other words for the same classes, for all that is known
        (("a", "b"), (), False, False),
        (("a", "b", "c", "d"), ("a", "b", "d", "c"), False, False),  # no row holds them
    ],
)
def test_one_number_for_two_classes_is_found_by_the_names_that_both_sets_declare(train, held, found, mended):
    sets = [
        SplitFacts(name=n, rows=9, labels=LabelFacts(column="label", kind="class", census={0: 5, 1: 4}, class_names=c))
        for n, c in (("train", train), ("evaluation", held))
    ]
    seen = list(misaligned_labels.function(DatasetFacts(train=sets[0], evaluation=sets[1]), SetupFacts()))
    assert [f.repair is not None for f in seen] == ([mended] if found else [])


WEIGHTED = Outcome(changed="", before=(0.5, 0.5, 0.5), after=(0.1, 0.1, 0.1), steps=48)


def imbalanced(outcome=WEIGHTED, share=0.9, weighted=0, learning=None, answered=1.0):
    """The findings for a set of two classes, of a training that answers one of them for these rows that it was trained on."""
    rows = round(1000 * share)
    labels = LabelFacts(column="label", kind="class", census={0: rows, 1: 1000 - rows})
    call = LossCall(
        function="cross_entropy",
        inputs=TensorFacts(shape=(8, 2), dtype="float32"),
        targets=TensorFacts(shape=(8,), dtype="int64"),
        at=None,
        options={"has_weight": weighted},
    )
    most = MostAnswered(answer=0, share=answered, of_labels=share)
    look = EvaluatedLoss(updates=20, loss=0.3, constant=0.3, most_answered=most)
    answer, found, sent = (
        imbalanced_classes.function(
            DatasetFacts(train=SplitFacts(name="train", rows=1000, labels=labels)),
            LossFacts(call=call, calls=(call,), classes=2, targets_are_labels=True),
            SetupFacts(),
            learning or LearningFacts(trained=look),
        ),
        [],
        None,
    )
    while True:
        try:
            item = answer.send(sent) if sent is not None else next(answer)
        except StopIteration:
            return found
        sent = outcome if isinstance(item, Trial) else None
        found += [] if isinstance(item, Trial) else [item]


@pytest.mark.parametrize(
    ("changed", "severities"),
    [
        ({}, [Severity.WARNING]),
        ({"share": 0.8}, [Severity.WARNING]),
        ({"share": 0.79}, []),
        ({"weighted": 1}, []),
        ({"answered": 0.95}, []),
        ({"outcome": replace(WEIGHTED, after=(0.1, 0.1, 0.31))}, [Severity.NOTE]),
        ({"outcome": replace(WEIGHTED, before=(0.5, 0.5, 0.44))}, [Severity.NOTE]),
        ({"outcome": Outcome(changed="", before=(), after=(), cut_off=True)}, [Severity.NOTE]),
    ],
)
def test_a_dominating_class_is_a_warning_where_weights_tell_the_classes_apart(changed, severities):
    assert [f.severity for f in imbalanced(**changed)] == severities


def trained(answer=0, share=0.97, of_labels=0.34, updates=49, loss=1.4):
    """A planned training of 49 updates, looked at on held-out rows."""
    begin = EvaluatedLoss(updates=0, loss=1.5, constant=1.1)
    most = MostAnswered(answer=answer, share=share, of_labels=of_labels)
    end = EvaluatedLoss(updates=updates, loss=loss, constant=1.1, most_answered=most)
    return LearningFacts(held_out="evaluation", rows=300, planned=49, evaluations=(begin, end))


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({}, 1),
        ({"answer": 1}, 0),
        ({"share": 0.85}, 0),
        ({"of_labels": 0.9}, 0),  # the held-out rows are as uneven: nothing shows that it is wrong
        ({"updates": 16}, 0),
        ({"loss": 0.9}, 0),  # it learns
    ],
)
def test_a_dominating_class_that_is_answered_for_rows_of_others_is_a_note(changed, count):
    found = imbalanced(learning=trained(**changed))
    assert [f.severity for f in found] == [Severity.NOTE] * count
    assert all("90.0% of 1,000 training labels are 0" in f.message and "97% of 300 rows" in f.message for f in found)
    assert not imbalanced(learning=trained(**changed), share=0.7)


@pytest.mark.parametrize(("share", "told"), [(0.9, ", 90.0% of them 0"), (0.7, "")])
def test_the_row_of_the_data_names_the_most_frequent_of_uneven_labels(share, told):
    labels = LabelFacts(
        column="y", kind="class", census={0: round(1000 * share), 1: round(1000 - 1000 * share)}, rows_read=1000
    )
    said = describe(DatasetFacts(train=SplitFacts(name="train", rows=1000, labels=labels)))
    assert said == f"train 1,000 rows, 2 label values over 1,000 rows{told}"


FILES = (
    ColumnFacts(name="repo_name", kind="text", median_length=9, values={"me/repo": 120}),
    ColumnFacts(name="path", kind="text", median_length=40),
    ColumnFacts(name="content", kind="text", median_length=3000),
)
PAIRS = (
    ColumnFacts(name="source", kind="text", median_length=9, values={"news": 60, "fiction": 40}),
    ColumnFacts(name="premise", kind="text", median_length=80),
    ColumnFacts(name="hypothesis", kind="text", median_length=20),
    ColumnFacts(name="label", kind="integer"),
)
CHUNKS = Lookalike(expression='chunks["train"]', columns=("input_ids",), split="train", same_rows=False)


@pytest.mark.parametrize(
    ("split", "like", "fix"),
    [
        (_split(columns=FILES), (), 'tokenizer(rows["content"], truncation'),
        (_split({0: 60, 1: 40}, columns=PAIRS), (), 'tokenizer(rows["premise"], rows["hypothesis"], truncation'),
        (_split(columns=FILES), (CHUNKS,), 'pass train_dataset=chunks["train"]'),
        (_split(columns=FILES), (CHUNKS, replace(CHUNKS, expression='b["train"]')), 'tokenizer(rows["content"]'),
        (
            _split(columns=FILES),
            (CHUNKS, replace(CHUNKS, expression="rows", same_rows=True)),
            "pass train_dataset=rows",
        ),
    ],
)
def test_what_is_tokenized_is_a_text_and_not_a_name_or_a_category(split, like, fix) -> None:
    facts = DatasetFacts(
        train=split,
        accepts=("input_ids",),
        lookalikes=like,
        tokenizer=TokenizerFacts(expression="tokenizer", pad_id=0, longest_input=512),
    )
    (found,) = untokenized_dataset.function(facts, SETUP, None)
    assert found.fix is not None and fix in found.fix.does
