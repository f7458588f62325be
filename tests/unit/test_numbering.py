"""Which numbers stand for which names, and whether they are the same in both sets."""

import numpy as np
import pandas as pd
import pytest

from trainwright.adapters.data.numbering import find_renumbered
from trainwright.stages import Split

RNG = np.random.default_rng(0)
NAMES = np.array(["ash", "beech", "cedar", "elm", "fir"])
TRAIN, HELD = RNG.choice(NAMES, 200), RNG.choice(NAMES, 100)
RIGHT = {name: n for n, name in enumerate(NAMES)}
OTHER = {name: n for n, name in enumerate(NAMES[::-1])}


def split(numbers, name="train"):
    return Split(name=name, rows=len(numbers), columns={"tree": numbers}, read=len(numbers))


def numbers(names, coding):
    return np.array([coding[name] for name in names])


@pytest.mark.parametrize("kind", [list, np.array, pd.Series], ids=["list", "array", "series"])
def test_categories_with_other_numbers_are_found(kind):
    found = find_renumbered(
        split(numbers(TRAIN, RIGHT)), split(numbers(HELD, OTHER)), {"train": kind(TRAIN), "held": kind(HELD)}
    )
    assert found is not None and (found.column, found.feature, found.names, found.differing) == ("tree", 0, 5, 4)
    assert found.in_training == RIGHT[found.example] and found.in_evaluation == OTHER[found.example]


def test_the_names_may_be_in_the_table_that_both_sets_were_cut_from():
    whole = pd.DataFrame({"tree": [*TRAIN, *HELD], "height": RNG.random(300)}).sample(frac=1, random_state=0)
    train, held = whole.iloc[:200].copy(), whole.iloc[200:].copy()
    for part, coding in ((train, RIGHT), (held, OTHER)):
        part["tree"] = part["tree"].map(coding)
    found = find_renumbered(
        split(train["tree"].to_numpy()), split(held["tree"].to_numpy()), {"whole": whole, "train": train, "held": held}
    )
    assert found is not None and found.sources[1] == "whole['tree'] of the rows of held"


def test_one_numbering_for_both_is_none():
    scope = {"train": list(TRAIN), "held": list(HELD)}
    assert find_renumbered(split(numbers(TRAIN, RIGHT)), split(numbers(HELD, RIGHT)), scope) is None


def test_names_in_another_order_than_the_rows_prove_nothing():
    scope = {"train": list(RNG.permutation(TRAIN)), "held": list(HELD)}
    assert find_renumbered(split(numbers(TRAIN, RIGHT)), split(numbers(HELD, OTHER)), scope) is None


def test_a_name_for_each_row_is_no_category():
    names = [f"row {i}" for i in range(100)]
    left, right = np.arange(100), np.arange(100)[::-1]
    assert find_renumbered(split(left), split(right), {"train": names, "held": names}) is None


def test_words_are_compared_in_the_order_in_which_they_stand():
    words = [f"word{i}" for i in range(60)]
    texts = [" ".join(RNG.choice(words, 8)) for _ in range(150)]
    left = {w: i + 1 for i, w in enumerate(words)}
    right = {w: i + 1 for i, w in enumerate(RNG.permutation(words))}

    def ids(of, coding):
        rows = np.zeros((len(of), 12), dtype=np.int64)
        for row, text in zip(rows, of):
            row[:8] = [coding[w] for w in text.split()]
        return rows

    scope = {"train": texts[:100], "held": texts[100:]}
    found = find_renumbered(split(ids(texts[:100], left)), split(ids(texts[100:], right)), scope)
    assert found is not None and found.feature is None and found.differing > 40
    assert find_renumbered(split(ids(texts[:100], left)), split(ids(texts[100:], left)), scope) is None


class Awkward:
    """Looks like a frame and a column, and is neither."""

    columns, index, loc, iloc = ("a",), (), None, None

    def __len__(self):
        raise ValueError("no length")

    def to_numpy(self):
        raise ValueError("no numbers")


def test_objects_that_only_look_like_tables_do_no_harm():
    assert find_renumbered(split(numbers(TRAIN, RIGHT)), split(numbers(HELD, OTHER)), {"odd": Awkward()}) is None


def tables(left, right, first=0):
    """Two tables of names and numbers, the second one's rows labeled from `first` on."""
    train = pd.DataFrame({"tree": TRAIN, "code": numbers(TRAIN, left)})
    other = pd.DataFrame({"tree": TRAIN, "code": numbers(TRAIN, right)}, index=range(first, first + 200))
    return {"train": train, "other": other}


def test_without_known_evaluation_rows_tables_with_the_same_columns_are_compared():
    scope = tables(RIGHT, OTHER, first=1000)
    found = find_renumbered(split(scope["train"]["code"].to_numpy()), None, scope)
    assert found is not None and (found.column, found.table) == ("code", "other")
    assert (
        find_renumbered(split(scope["other"]["code"].to_numpy()[::-1]), None, scope) is None
    )  # the numbers of neither


def test_a_table_before_and_after_it_was_renumbered_is_one_set():
    scope = tables(RIGHT, OTHER)
    assert find_renumbered(split(scope["train"]["code"].to_numpy()), None, scope) is None
    assert find_renumbered(split(numbers(TRAIN, RIGHT)), None, tables(RIGHT, RIGHT, first=1000)) is None
