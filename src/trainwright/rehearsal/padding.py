"""Which places of a row of tokens hold padding, by what a model is given beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.bool_]
Beside = Iterable[tuple[str, NDArray[Any]]]


def read_places(ids: NDArray[Any], beside: Beside, padding: int | None = None) -> Places | None:
    """Which tokens of each row are read, by a mask among the inputs; None: none of them is one.

    Zeros and ones beside tokens may also be the types of tokens, of which sentence each is. So what a mask leaves out must be one
    token, at the ends of rows; one that is called an attention mask is taken at its word.

    Args:
        ids: (rows, length).
        beside: inputs by their names, those that are `ids` and of other shapes included.
        padding: the tokenizer's token for it, if known.
    """
    same = [
        (str(name).lower(), values)
        for name, values in beside
        if values is not ids and values.shape == ids.shape and values.dtype.kind in "iufb" and _is_binary(values)
    ]
    for name, values in sorted(same, key=lambda one: ("mask" not in one[0], "attention_mask" not in one[0])):
        read: Places = values != 0
        if name.endswith("attention_mask") and "global" not in name and read.any():
            return read
        is_named = any(part in name for part in ("attention", "attn", "pad"))
        if _leaves_padding_out(ids, read, padding, is_named):
            return read
        is_of_padding = "pad" in name or values.dtype.kind == "b"  # true where padding is, as in torch's attention
        if is_of_padding and not read.all() and read.any() and _leaves_padding_out(ids, ~read, padding, is_named):
            return ~read
    return None


def _is_binary(values: NDArray[Any]) -> bool:
    return bool(((values == 0) | (values == 1)).all())


def _leaves_padding_out(ids: NDArray[Any], read: Places, padding: int | None, is_named: bool) -> bool:
    """Whether each row is read from its first to its last such place, and all that is left out is the same token.

    One place is always the same token: it has to be the tokenizer's padding, or the mask named as one.
    """
    left_out = ids[~read]
    if not read.any(1).all() or len(np.unique(left_out)) > 1:
        return False
    if len(left_out) == 1 and left_out[0] != padding and not is_named:
        return False
    first, last = np.argmax(read, 1), read.shape[1] - np.argmax(read[:, ::-1], 1)
    return bool((last - first == read.sum(1)).all())
