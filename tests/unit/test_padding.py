"""A column of zeros and ones beside tokens is a mask only where it can be no other mark of tokens."""

import numpy as np
import pytest

from trainwright.rehearsal.readable import mask_of

IDS = np.arange(5, 10)
LAST_OUT = np.array([1, 1, 1, 1, 0])


@pytest.mark.parametrize(
    ("name", "padding", "is_mask"),
    [("is_upper", None, False), ("is_upper", 9, True), ("attention_mask", None, True), ("attn_mask", None, True)],
)
def test_one_place_that_is_left_out_is_padding_by_a_name_or_its_token(
    name: str, padding: int | None, is_mask: bool
) -> None:
    found = mask_of(IDS, [("ids", IDS), (name, LAST_OUT)], padding)
    assert (found is not None and found.tolist() == [True] * 4 + [False]) == is_mask


def test_several_places_with_one_token_are_padding() -> None:
    ids = np.array([5, 6, 7, 0, 0])
    found = mask_of(ids, [("ids", ids), ("read", np.array([1, 1, 1, 0, 0]))])
    assert found is not None and found.sum() == 3
