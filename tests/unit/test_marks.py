"""What is marked on a sheet and said by no finding stands in the headline."""

from trainwright.core import Finding, Place, Severity
from trainwright.core.sheet import CLASSES, PIECES, SCORES, WEIGHTS, Row, Sheet
from trainwright.review.marks import tell_marks

WHERE = Place("train.py", 31)


def layer(name: str, mark: str = "no gradient") -> Row:
    return WEIGHTS.row(
        name=name, shape=(4,), trains=True, before=1.0, after=1.0, moved=False, gradient=False, mark=mark
    )


def sheet(**tables: object) -> Sheet:
    return Sheet(updates=100, **tables)  # type: ignore[arg-type]


def test_marks_of_one_kind_are_one_phrase_with_its_line() -> None:
    seen = sheet(layers=(layer("side.0.weight"), layer("side.0.bias"), layer("head.weight", "")))
    assert tell_marks(seen, (), WHERE) == ("2 tensors of side get no gradient (train.py:31)",)


def test_what_a_finding_says_is_not_said_again() -> None:
    seen = sheet(layers=(layer("side.weight"),))
    found = Finding(message="", measured={}, severity=Severity.WARNING, code="TW1003", name="weights-stand-still")
    assert tell_marks(seen, (found,)) == ()
    note = Finding(message="", measured={}, severity=Severity.NOTE, code="TW1003", name="weights-stand-still")
    assert tell_marks(seen, (note,)) == ("1 tensor, side.weight: no gradient",)


def test_each_table_has_a_phrase_and_the_rest_is_counted() -> None:
    score = SCORES.row(
        name="R2", output="", rows_of="held-out", rows=500, unit="rows", first=None, last=0.0, mark="like a constant"
    )
    classes = [
        CLASSES.row(label=str(i), output="", drawn=9, evaluated=20, right=0.0, mark="never found") for i in range(5)
    ]
    piece = PIECES.row(
        what="evaluated", times=3, first_update=1, last_update=9, how="", where=WHERE, mark="in training mode"
    )
    seen = sheet(scores=(score,), classes=tuple(classes), pieces=(piece,), layers=(layer("a"),))
    assert tell_marks(seen, ()) == (
        "500 held-out rows are answered like a constant",
        "1 tensor, a: no gradient",
        "evaluated: in training mode (train.py:31)",
        "1 more, marked below",
    )
