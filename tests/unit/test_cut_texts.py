"""What truncation has left of texts that the script still has."""

from typing import Any

from trainwright.adapters.data.texts import cut_texts


class Letters:
    """A tokenizer of letters: each is a token, and 0 and 1 stand before and behind a text."""

    all_special_ids = (0, 1)

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}


class Table(list[dict[str, Any]]):
    """Rows that are dictionaries, as a data set has them."""

    @property
    def column_names(self) -> list[str]:
        return list(self[0])


RAW = Table({"name": str(n), "content": f"{n:02} is this text of the files"} for n in range(20))


def rows(first: int, last: int) -> Table:
    return Table({"input_ids": [0, *map(ord, row["content"][first:last]), 1]} for row in RAW)


def test_beginnings_of_texts_are_cut_off() -> None:
    found = cut_texts(rows(0, 6), Letters(), {"raw": {"train": RAW}})
    assert found is not None and found.expression == 'raw["train"]["content"]'
    assert (found.rows, found.compared, found.cut, found.longest) == (20, 20, 20, 8)
    assert 0.7 < found.lost_share < 0.8


def test_ends_of_texts_are_cut_off_too() -> None:
    found = cut_texts(rows(10, 100), Letters(), {"raw": RAW})
    assert found is not None and found.cut == 20


def test_whole_texts_lose_nothing() -> None:
    found = cut_texts(rows(0, 100), Letters(), {"raw": RAW})
    assert found is not None and found.lost_share == 0.0 and found.cut == 0


def test_texts_of_other_rows_say_nothing() -> None:
    assert cut_texts(rows(0, 6), Letters(), {"raw": Table(reversed(RAW)), "fewer": Table(RAW[:15])}) is None
    assert cut_texts(rows(3, 9), Letters(), {"raw": RAW}) is None
    assert cut_texts(rows(0, 6), None, {"raw": RAW}) is None
