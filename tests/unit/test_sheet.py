"""What is seen in a run, as a sheet: from records written by hand to the terminal, a page, JSON and back."""

import io
import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from trainwright.core import Failure, Place, Report
from trainwright.core.report import from_dict, to_dict
from trainwright.core.sheet import CLASSES, WEIGHTS, Curve, Row, Sheet
from trainwright.rehearsal.record import (
    TOKEN_GROUPS,
    Answers,
    Best,
    Drawn,
    Ended,
    KeptWeights,
    LabelKind,
    Loaded,
    Number,
    Output,
    Parameter,
    Pass,
    Record,
    TrainedLabels,
    Training,
    Update,
)
from trainwright.report import html, terminal
from trainwright.report import json as as_json
from trainwright.report.charts import charts
from trainwright.report.curves import blocks
from trainwright.review.marks import tell_marks
from trainwright.review.sheet import sheet_of

DIGITS = Output(LabelKind.CLASSES, 3)
PRICES = Output(LabelKind.NUMBERS, 2)
TOKENS = Output(LabelKind.CLASSES, 2000)


def classified(rng: np.random.Generator, rows: int, update: int, *, trains: bool, data: int, skill: float) -> Answers:
    """Nine of ten rows are of classes 0 and 1; class 2 is answered with 1."""
    labels = rng.choice(3, rows, p=[0.6, 0.3, 0.1])
    guesses = np.where(rng.random(rows) < skill, labels, 0)
    guesses[labels == 2] = 1
    return Answers(
        output=DIGITS, update=update, trains=trains, labels=labels, guesses=guesses, data=data, total=rows,
        log_losses=np.where(guesses == labels, 0.1, 2.0), inputs=rng.normal(size=(rows, 4)),
    )  # fmt: skip


def classifier() -> Record:
    """1,000 updates of an imbalanced classifier; one of its layers never moves."""
    rng = np.random.default_rng(0)
    record = Record(updates=1000, seconds=14.2, isolation="kernel", kept_away=("3 files",))
    train = Place("train.py", 30)
    record.trainings = [Training(number=1, kind="loop", begins=0, ends=1000, planned=1000, where=train)]
    record.losses = [(i, 1.1 * np.exp(-i / 200) + 0.05) for i in range(1000)]
    record.looked_updates = [
        Update(number=i, optimizer=1, rate=1e-3 * (1 - i / 1001), gradient_norm=1 / i) for i in range(1, 1001, 10)
    ]
    for update in range(100, 1001, 100):
        skill = min(0.3 + update / 1000, 0.95)
        record.answers.append(classified(rng, 32, update - 1, trains=True, data=1, skill=skill))
        record.answers.append(classified(rng, 300, update, trains=False, data=2, skill=skill))
        record.numbers.append(
            Number(update=update, name="val_acc", value=skill - 0.1 * (update > 800), source="logged")
        )
        record.numbers.append(Number(update=update, name="epoch", value=update / 100, source="logged"))
        record.passes.append(
            Pass(number=update // 100, update=update, model=1, is_trained=True, weights=update, data=2, calls=4,
                 noisy_calls=4, where=Place("train.py", 41))
        )  # fmt: skip
        record.kept.append(
            KeptWeights(
                update=update, weights=update, how="saved", path="best.pt", tensors=6, where=Place("train.py", 44)
            )
        )
    record.loaded = [
        Loaded(update=1000, model=1, before=1000, after=300, missing=0, tensors=6, where=Place("train.py", 50))
    ]
    record.trained_labels = {DIGITS: TrainedLabels(classes=Counter({0: 19_200, 1: 9_600, 2: 3_200}))}
    inputs = rng.normal(size=(500, 4)) * [1, 1, 1, 2000]
    inputs[:, 1], inputs[:40, 2] = 5, np.nan
    record.trained_rows = {DIGITS: (inputs, rng.choice(3, 500), np.arange(500))}
    record.parameters = [
        parameter("body.weight", (64, 4)),
        parameter("body.bias", (64,)),
        replace(parameter("gate.weight", (64, 64)), has_moved=False, size_after=0.1),
        replace(parameter("head.weight", (3, 64)), had_gradient=False, has_moved=False),
        replace(parameter("head.bias", (3,)), size_after=0.0),
        replace(parameter("table.weight", (9, 4)), is_trainable=False, has_moved=False, size_after=0.1),
    ]
    record.drawn = [
        Drawn(data=1, size=1000, name="TensorDataset", trains=True, draws=Counter(dict.fromkeys(range(400), 64))),
        Drawn(data=2, size=300, name="TensorDataset", draws=Counter(dict.fromkeys(range(300), 10))),
    ]
    return record


def parameter(name: str, shape: tuple[int, ...]) -> Parameter:
    return Parameter(
        name=name, shape=shape, is_trainable=True, is_held=True, had_gradient=True, has_moved=True, steps=1000,
        size_before=0.1, size_after=0.25,
    )  # fmt: skip


def regression() -> Record:
    """The second of two numbers gets the same answer for all rows."""
    rng = np.random.default_rng(1)
    record = Record(updates=200, seconds=2.0)
    labels = rng.normal(size=(80, 2)) * [1, 30] + [0, 200]
    values = np.stack([labels[:, 0] + 0.1 * rng.normal(size=80), np.full(80, 200.0)], 1)
    record.answers = [
        Answers(output=PRICES, update=update, trains=False, labels=labels, values=values, total=80)
        for update in (100, 200)
    ]
    record.best = [Best(name="val_loss", higher_is_better=False, values=(3.0, 1.0, 2.0), kept=0)]
    return record


def language_model(cut: bool = False) -> Record:
    """2,000 tokens, each as frequent as the next."""
    rng = np.random.default_rng(2)
    record = Record(updates=300, seconds=60.0)
    record.trainings = [Training(number=1, kind="Trainer", begins=0, ends=300, planned=3000, is_cut=cut)]
    record.ended = Ended(update=300, is_cut=cut)
    record.losses = [(i, 7.6 - i / 100) for i in range(300)]
    labels = rng.integers(0, 2000, 512)
    record.trained_labels = {TOKENS: TrainedLabels(classes=Counter(rng.integers(0, 2000, 20_000).tolist()))}
    record.answers = [
        Answers(output=TOKENS, update=300, trains=False, labels=labels, log_losses=np.full(512, 4.6), total=900,
                guesses=np.where(np.arange(512) % 4 == 0, labels, 7))
    ]  # fmt: skip
    record.parameters = [parameter(f"block.{i}.weight", (64, 64)) for i in range(42)]
    return record


def shown(sheet: Sheet, width: int = 100) -> str:
    file = io.StringIO()
    terminal.show(Report(script="train.py", sheet=sheet), Console(file=file, width=width))
    return file.getvalue()


def read_back(sheet: Sheet) -> Sheet | None:
    return from_dict(json.loads(as_json.render(Report(script="train.py", sheet=sheet)))).sheet


@pytest.mark.parametrize(
    ("name", "values", "mark"),
    [
        ("val_r2", (0.5, -3.0, -2.0), "never better than a constant"),  # what is measured before training shows nothing
        ("val_r2", (-3.0, -3.0, 0.1), ""),
        ("train_r2", (-3.0, -3.0, -3.0), ""),
        ("val_mae", (-3.0, -3.0, -3.0), ""),
        ("val_r2_loss", (3.0, 2.0, 1.0), ""),
        ("val_baseline_r2", (-3.0, -3.0, -3.0), ""),
    ],
)
def test_a_number_of_the_scripts_own_that_guessing_reaches_is_marked(
    name: str, values: tuple[float, ...], mark: str
) -> None:
    numbers = [Number(name=name, value=value, update=100 * i, source="logged") for i, value in enumerate(values)]
    assert [row.mark for row in sheet_of(Record(updates=200, numbers=numbers)).own] == [mark]


def test_what_stands_out_in_a_classifier_is_marked() -> None:
    sheet = sheet_of(classifier())
    assert (sheet.updates, sheet.share, sheet.best_update, sheet.kept_update) == (1000, 1.0, 700, 300)
    rare = sheet.classes[0]
    assert (rare.label, rare.right, rare.taken_for, rare.mark) == ("2", 0.0, "1 (100%)", "never found")
    assert rare.drawn == 3200 and not sheet.classes[1].mark
    accuracy = sheet.scores[0]
    assert (accuracy.name, accuracy.rows_of, accuracy.rows) == ("accuracy", "held-out", 300)
    assert accuracy.first is not None and accuracy.last is not None and accuracy.constant is not None
    assert accuracy.first < accuracy.last and 0.5 < accuracy.constant < 0.7
    assert {row.name: row.mark for row in sheet.layers if row.mark} == {
        "gate.weight": "never moved",
        "head.weight": "no gradient",
    }
    assert {row.name: row.mark for row in sheet.columns if row.rows_of == "training" and row.mark} == {
        "column 2": "always the same",
        "column 3": "missing values",
        "column 4": "a far larger scale than the others",
    }
    assert [(row.name, row.mark) for row in sheet.own] == [("val_acc", "kept: update 300, not the best")]
    assert [row.never for row in sheet.drawn] == [600, 0]
    assert [row.mark for row in sheet.drawn] == ["60% never drawn", ""]
    assert [(row.what, row.times, row.mark) for row in sheet.pieces] == [
        ("evaluated", 10, "in training mode"),
        ("saved", 10, ""),
        ("loaded", 1, ""),
    ]
    assert sheet.pieces[2].how == "6 tensors, those of update 300"


def test_a_set_that_was_neither_trained_on_nor_evaluated_is_not_called_held_out() -> None:
    record = classifier()
    record.drawn.append(Drawn(data=99, size=100, name="Prompts", draws=Counter(range(100))))
    assert [row.rows_of for row in sheet_of(record).drawn] == ["training", "held-out", "a set"]


def test_a_terminal_shows_it_in_about_one_screen() -> None:
    text = shown(sheet_of(classifier()))
    part = text[text.index("What was seen") :].rstrip().split("\n")
    assert len(part) <= 28
    assert "1,000 of 1,000 updates, 14.2 s, isolated by the kernel" in part[0]
    assert "← never found" in text and "← never moved" in text and "6 tensors, 5 of them trained, 3 moved" in text
    assert "\x1b" not in text
    for width in (60, 100):
        assert max(map(len, shown(sheet_of(classifier()), width).split("\n"))) <= width


def test_a_page_has_tables_and_curves_of_its_own() -> None:
    page = html.render(Report(script="train.py", sheet=sheet_of(classifier())))
    assert page.count("<svg") == page.count("</svg>") == 4
    assert "gate.weight" in page and "64×64" in page and "never moved" in page
    assert "http" not in page
    assert ">best: 700<" in page and "kept: 300<" in page


def test_a_sheet_reads_back_the_same() -> None:
    for record in (classifier(), regression(), language_model(), language_model(cut=True), Record()):
        report = Report(script="train.py", sheet=sheet_of(record))
        data = to_dict(report)
        assert to_dict(from_dict(json.loads(json.dumps(data, allow_nan=False)))) == data
    sheet = replace(
        sheet_of(regression()),
        curves=(Curve(name="loss", updates=(1, 2), values=(0.5, float("inf"))),),
        layers=(WEIGHTS.row(name="nan", shape=(2, 3), trains=True, before=0.5, after=1, moved=True, gradient=True),),
        classes=(CLASSES.row(label="nan", output="", drawn=None, evaluated=0, right=None),),
        seconds=1.5,
    )
    read = read_back(sheet)
    assert read is not None
    assert (read.curves, read.layers, read.classes) == (sheet.curves, sheet.layers, sheet.classes)
    assert [row.where for row in read_back(sheet_of(classifier())).pieces] == [  # type: ignore[union-attr]
        Place("train.py", 41), Place("train.py", 44), Place("train.py", 50)
    ]  # fmt: skip


def test_numbers_are_shown_one_by_one() -> None:
    sheet = sheet_of(regression())
    assert [row.mark for row in sheet.outputs] == ["", "always the same answer"]
    assert [row.name for row in sheet.scores] == ["R2", "absolute error", "correlation"]
    assert (sheet.pieces[0].how, sheet.pieces[0].mark) == ("by val_loss: 3 at look 1 of 3", "the best was 1")
    text = shown(sheet)
    assert "answers 200 ± 0" in text and "← always the same answer" in text
    assert not sheet.classes and not sheet.curves


def test_inputs_as_wide_as_counts_of_tokens_may_be_any_numbers() -> None:
    """Large ones, whose power overflows (warnings are errors here), are no logarithms of counts."""
    rows = np.random.default_rng(0).normal(0.0, 1e5, (40, TOKEN_GROUPS)).astype(np.float32)
    counts = np.log1p(np.random.default_rng(0).integers(0, 4, (40, TOKEN_GROUPS))).astype(np.float32)
    for received, name in ((rows, "all 512 columns"), (counts, "512 counts of tokens")):
        record = Record(updates=10, trained_rows={DIGITS: (received, np.zeros(40), np.arange(40))})
        with np.errstate(all="raise"):
            assert [row.name for row in sheet_of(record).columns] == [name]


def test_a_language_model_has_no_table_of_tokens() -> None:
    sheet = sheet_of(language_model())
    assert not sheet.classes
    assert sheet.outputs[0].classes is not None and sheet.outputs[0].classes > 300
    assert {row.name for row in sheet.scores} == {"accuracy", "mean recall", "log loss"}
    assert not any(row.mark for row in sheet.scores)
    text = shown(sheet)
    assert "42 tensors, all moved" in text and "block.7" not in text
    assert "300 of 3,000 updates" in text


def test_tokens_are_positions_not_rows() -> None:
    record = language_model()
    record.answers = [
        replace(one, per_row=64, guesses=np.where(np.arange(len(one.labels)) % 3, 0, one.labels))
        for one in record.answers
    ]
    sheet = sheet_of(record)
    assert {row.unit for row in sheet.scores} == {"positions"}
    assert "held-out, 512 positions" in shown(sheet) and "512 rows" not in shown(sheet)
    again = read_back(sheet)
    assert again is not None and again.scores[0].unit == "positions"


def test_a_run_that_was_cut_says_at_which_share_of_its_plan() -> None:
    assert "300 of 3,000 updates, cut short at 10% of the plan, 60.0 s" in shown(sheet_of(language_model(cut=True)))
    assert "cut: 300" in html.render(Report(script="train.py", sheet=sheet_of(language_model(cut=True))))


def test_a_run_without_an_update_has_a_sheet() -> None:
    failed = Record(ended=Ended(failure=Failure(type="KeyError", message="'label'", where=Place("train.py", 3))))
    for record in (Record(), failed, Record(ended=Ended(status=-9))):
        sheet = sheet_of(record)
        assert "no update was seen" in shown(sheet)
        assert "no update was seen" in html.render(Report(script="train.py", sheet=sheet))
    assert "It ended by KeyError: 'label'" in shown(sheet_of(failed))
    assert "It ended by signal 9" in shown(sheet)


def test_curves_are_short_and_show_what_is_not_finite() -> None:
    record = Record(updates=5000)
    record.losses = [(i, 1.0 if i < 4000 else float("nan")) for i in range(5000)]
    (curve,) = sheet_of(record).curves
    assert len(curve.updates) == 60 and curve.mark == "not finite after update 4,000"
    assert re.fullmatch("[▁-█]+!+", blocks(curve, 5000))
    (chart,) = charts(sheet_of(record))
    assert len(chart.parts(curve)) == 1
    assert "← not finite after update 4,000" in shown(sheet_of(record))
    rising = Curve(name="a", updates=tuple(range(8)), values=tuple(map(float, range(8))))
    assert blocks(rising, 8) == "▁▁▁▁▂▂▂▂▃▃▃▃▄▄▄▄▅▅▅▅▆▆▆▆▇▇▇▇████"
    assert blocks(replace(rising, values=(2.0,) * 8), 16) == "▅" * 32


def test_without_a_rehearsal_there_is_no_sheet() -> None:
    report = Report(script="train.py")
    assert to_dict(report)["sheet"] is None
    assert "What was seen" not in html.render(report)


def test_a_curve_begins_at_its_first_point() -> None:
    late = Curve(name="a", updates=(500, 1000), values=(0.0, 1.0))
    assert blocks(late, 1000) == " " * 16 + "▁" * 15 + "█"
    (chart,) = charts(Sheet(updates=1000, curves=(late,)))
    assert [(chart.x(update), chart.y(value)) for (part,) in [chart.parts(late)] for update, value in part] == [
        (218, 188),
        (390, 30),
    ]


def test_a_simple_learner_that_is_far_better_stands_out() -> None:
    rng = np.random.default_rng(3)
    record = Record(updates=400)
    inputs, tested = rng.normal(size=(300, 4)), rng.normal(size=(200, 4))
    labels, truth = (rows.argmax(1) % 3 for rows in (inputs, tested))
    record.trained_labels = {DIGITS: TrainedLabels(classes=Counter(labels.tolist()))}
    record.trained_rows = {DIGITS: (inputs, labels, np.arange(300))}
    guesses = np.where(rng.random(200) < 0.3, truth, rng.integers(0, 3, 200))
    record.answers = [
        Answers(output=DIGITS, update=400, trains=False, labels=truth, guesses=guesses, inputs=tested, total=200)
    ]
    accuracy = sheet_of(record).scores[0]
    assert accuracy.simple is not None and accuracy.last is not None and accuracy.simple > accuracy.last + 0.2
    assert accuracy.mark in ("below a simple learner", "like a constant")
    assert "simple learner 0." in shown(sheet_of(record))
    assert "a simple learner" in html.render(Report(script="train.py", sheet=sheet_of(record)))


def test_one_constant_answer_is_no_better_than_a_constant() -> None:
    labels = np.random.default_rng(4).integers(0, 3, 200)
    record = Record(updates=400)
    record.answers = [
        Answers(output=DIGITS, update=400, trains=False, labels=labels, guesses=np.zeros(200, dtype=int), total=200)
    ]
    sheet = sheet_of(record)
    assert {row.mark for row in sheet.scores} == {"like a constant"}
    assert sheet.outputs[0].mark == "always the same answer"
    assert [row.mark for row in sheet.classes] == ["never found", "never found", ""]


def test_a_long_table_is_folded_up_unless_a_row_is_marked() -> None:
    sheet = sheet_of(language_model())
    page = html.render(Report(script="train.py", sheet=sheet))
    assert "<details>" in page and "42 rows" in page
    marked = replace(sheet, layers=(*sheet.layers, Row(**{**vars(sheet.layers[0]), "mark": "never moved"})))
    assert "<details open>" in html.render(Report(script="train.py", sheet=marked))
    many = html.render(Report(script="train.py", sheet=replace(sheet, layers=sheet.layers * 10)))
    assert "and 340 more" in many


def test_an_evaluated_set_of_one_class_has_a_row_of_it() -> None:
    labels = np.ones(50, dtype=int)
    record = Record(updates=400, trained_labels={DIGITS: TrainedLabels(classes=Counter({0: 100, 1: 90}))})
    record.answers = [Answers(output=DIGITS, update=400, trains=False, labels=labels, guesses=labels, total=50)]
    sheet = sheet_of(record)
    assert not sheet.scores
    assert [(row.label, row.evaluated, row.mark) for row in sheet.classes] == [("0", 0, "not evaluated"), ("1", 50, "")]


def test_the_models_of_folds_share_a_row_and_a_still_copy_stands_out() -> None:
    line = Place("train.py", 9)

    def passed(update: int, model: int, weights: float, is_trained: bool = True) -> Pass:
        return Pass(number=1, update=update, model=model, is_trained=is_trained, weights=weights, calls=1, where=line)

    folds = Record(updates=300, passes=[passed(i, i // 100, i) for i in range(10, 300, 10)])
    assert [(p.times, p.how, p.mark) for p in sheet_of(folds).pieces] == [(29, "3 models, as in evaluation mode", "")]
    still = Record(updates=300, passes=[passed(i, 7, 1.0, False) for i in range(0, 300, 30)])
    assert [p.mark for p in sheet_of(still).pieces] == ["the same weights each time"]
    teacher = Record(updates=300, passes=[passed(i, 7, 1.0, False) for i in range(300)])
    assert [p.mark for p in sheet_of(teacher).pieces] == [""]


def test_each_of_several_trainings_has_a_row_with_its_verdict() -> None:
    record = classifier()
    record.trainings = [
        Training(number=1, kind="loop", begins=0, ends=400, planned=400, where=Place("train.py", 30)),
        Training(number=2, kind="loop", begins=400, ends=1000, where=Place("train.py", 41)),
    ]
    sheet = sheet_of(record)
    assert [(row.number, row.begins, row.updates, row.planned) for row in sheet.trainings] == [
        (1, 0, 400, 400),
        (2, 400, 600, None),
    ]
    assert all(row.shown and row.why for row in sheet.trainings)
    report = Report(script="train.py", sheet=sheet)
    assert read_back(sheet) is not None and read_back(sheet).trainings == sheet.trainings
    assert "Trainings" in html.render(report) and "trainings" in shown(sheet)
    assert sheet_of(classifier()).trainings == ()


def test_classes_of_training_answers_are_not_called_evaluated() -> None:
    """Nothing was evaluated: a class without an answer among the last ones of training is no class left out."""
    labels = np.arange(40) % 2
    record = Record(updates=400, trained_labels={DIGITS: TrainedLabels(classes=Counter({0: 90, 1: 90, 2: 9}))})
    record.answers = [
        Answers(output=DIGITS, update=i, trains=True, labels=labels, guesses=1 - labels, total=40) for i in range(9)
    ]
    sheet = sheet_of(record)
    assert [(row.answered, row.evaluated, row.mark) for row in sheet.classes] == [
        (20, None, "never found"), (20, None, "never found"), (0, None, ""),
    ]  # fmt: skip
    assert sheet.outputs[0].evaluated is None
    assert "20 answers in training" in shown(sheet) and "evaluated" not in shown(sheet)
    assert tell_marks(sheet, ())[-1] == "classes 0, 1 are never answered rightly in training"


def test_a_class_that_a_sample_lacks_is_not_called_never_evaluated() -> None:
    labels = np.ones(50, dtype=int)
    record = Record(updates=400, trained_labels={DIGITS: TrainedLabels(classes=Counter({0: 100, 1: 90}))})
    record.answers = [Answers(output=DIGITS, update=400, trains=False, labels=labels, guesses=labels, total=4000)]
    assert {row.mark for row in sheet_of(record).classes} == {""}


def test_a_class_is_called_never_found_only_where_its_rows_are_enough() -> None:
    """Of eleven rows of a class none is right by chance, where the other classes are right at 0.3."""
    rng = np.random.default_rng(3)
    labels, other = np.repeat([0, 1, 2], [200, 200, 11]), np.arange(411) % 2
    for right, mark in ((0.3, ""), (0.9, "never found")):
        guesses = np.where(labels == 2, other, np.where(rng.random(411) < right, labels, 2))
        record = Record(updates=400)
        record.answers = [Answers(output=DIGITS, update=400, trains=False, labels=labels, guesses=guesses, total=411)]
        assert [row.mark for row in sheet_of(record).classes if row.label == "2"] == [mark]


def test_a_set_is_called_like_a_constant_only_where_that_is_sure() -> None:
    """An overfitted model has a low score on rows whose order it still answers: no constant answer."""
    rng = np.random.default_rng(4)
    labels = rng.standard_t(3, size=(300, 1))
    for noise, marks in ((1.05, {""}), (None, {"like a constant", ""})):
        values = labels + noise * rng.normal(size=labels.shape) if noise else np.full_like(labels, labels.mean())
        record = Record(updates=400)
        record.answers = [
            Answers(
                output=Output(LabelKind.NUMBERS, 1), update=400, trains=False, labels=labels, values=values, total=300
            )
        ]
        assert {row.mark for row in sheet_of(record).scores} <= marks
        assert ("like a constant" in {row.mark for row in sheet_of(record).scores}) == (noise is None)


def test_no_number_is_cut_and_sets_have_names() -> None:
    rng = np.random.default_rng(5)
    record = Record(updates=200)
    lines = {7: Place("train.py", 31), 8: Place("train.py", 32)}
    record.drawn = [
        Drawn(data=data, size=100, name="Subset", draws=Counter(range(100)), where=at) for data, at in lines.items()
    ]
    for data, skill in ((7, 0.298), (8, 0.4)):
        for update, noise in ((100, 1 - skill), (200, 0.3)):
            labels = rng.normal(size=(100 + data, 1))
            values = labels + noise * rng.normal(size=labels.shape)
            record.answers.append(
                Answers(output=Output(LabelKind.NUMBERS, 1), update=update, trains=False, data=data, labels=labels,
                        values=values, total=len(labels))
            )  # fmt: skip
    sheet = sheet_of(record)
    assert {row.output for row in sheet.scores} == {"train.py:31", "train.py:32"}
    file = io.StringIO()
    report = Report(script="train.py", sheet=sheet)
    terminal.show(report, Console(file=file, width=60), verbose=False)
    words = file.getvalue().split()
    first = sheet.scores[0]
    assert f"{first.first:.3g}" in words and f"{first.last:.3g}" in words
    assert max(map(len, file.getvalue().split("\n"))) <= 60
