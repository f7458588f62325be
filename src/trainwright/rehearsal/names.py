"""What the script's variables say of its numbers: tokenizers, vocabularies, names of classes and columns, normalizations."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from trainwright.rehearsal.readable import Names, TokenDecoder
from trainwright.seams.source.places import is_users

# Objects that are looked at, how deep, and entries of a list or mapping; trainings at whose begin that is done.
MOST_OBJECTS, MOST_DEPTH, MOST_ENTRIES, MOST_TRAININGS = 4000, 5, 40, 3
# Fewer words are names of classes rather than a vocabulary.
FEWEST_WORDS = 10
# Names of variables that hold names of classes or of columns; any language model's default says nothing.
_OF_CLASSES = re.compile(r"class|label|categor|target", re.IGNORECASE)
_OF_COLUMNS = re.compile(r"feature|col|field|predictor", re.IGNORECASE)
_DEFAULT = re.compile(r"LABEL_\d+")
_PASSED_OVER = (str, bytes, int, float, complex, type, ModuleType, FunctionType, np.generic, np.dtype)


class NameSeeker:
    """Looks through the variables of the script's functions when a training begins."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._left = MOST_TRAININGS

    def __call__(self) -> None:
        """A training begins: the script's functions are on the stack."""
        if self._left > 0:
            self._left -= 1
            seek_names(self._names, _variables(sys._getframe(1)))


def _variables(frame: FrameType | None) -> Iterator[tuple[str, Any]]:
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield from list(frame.f_locals.items())
            if frame.f_locals is not frame.f_globals:
                yield from list(frame.f_globals.items())
        frame = frame.f_back


def seek_names(names: Names, variables: Iterable[tuple[str, Any]]) -> None:
    """Note what these variables, and what lies in them, say of the script's numbers."""
    todo = deque((name, value, 0) for name, value in variables if not name.startswith("__"))
    seen: set[int] = set()
    while todo and len(seen) < MOST_OBJECTS:
        name, value, depth = todo.popleft()
        if value is None or id(value) in seen or isinstance(value, _PASSED_OVER):
            continue
        seen.add(id(value))
        try:
            is_whole = _note(names, name, value)
        except Exception:  # the script's own object: it tells nothing
            continue
        if not is_whole and depth < MOST_DEPTH:
            todo.extend((inner, held, depth + 1) for inner, held in _inside(value))


def _inside(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(str(k), v) for k, v in list(value.items())[:MOST_ENTRIES]] if type(value) is dict else []
    if isinstance(value, (list, tuple)):
        return [("", v) for v in value[:MOST_ENTRIES]] if value and not isinstance(value[0], _PASSED_OVER) else []
    held = getattr(value, "__dict__", None)
    return list(held.items()) if isinstance(held, dict) else []


def _note(names: Names, name: str, value: Any) -> bool:
    """Note what a variable says; whether nothing inside it is looked at."""
    kind = type(value)
    if kind.__name__ == "DataFrame" and kind.__module__.startswith("pandas"):
        names.add_columns([str(one) for one in value.columns])
        return True
    if isinstance(value, np.ndarray) or hasattr(kind, "__array__"):
        if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "OU" and len(value) < 1000:
            _note_words(names, name, value.tolist())
        return True
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], str):
        _note_words(names, name, list(value))
        return True
    if isinstance(value, Mapping):
        return _note_mapping(names, name, value)
    if (decoder := _decoder(value)) is not None:
        names.decoders.append(decoder)
        return True
    held = getattr(value, "__dict__", None) or {}  # no attribute is asked for: a user's __getattr__ may do anything
    mean, deviation = (held.get(one) for one in _NORMALIZING.get(kind.__name__, ("image_mean", "image_std")))
    if mean is not None and deviation is not None:
        names.normalizations.append((np.asarray(mean, float).reshape(-1), np.asarray(deviation, float).reshape(-1)))
    return False


_NORMALIZING = {"Normalize": ("mean", "std")}


def _note_words(names: Names, name: str, words: list[Any]) -> None:
    if not all(isinstance(word, str) and word[:1] != "_" for word in words) or len(set(words)) < len(words):
        return  # what begins with an underscore are a library's attributes
    if _OF_COLUMNS.search(name):
        names.add_columns(words)
    elif _OF_CLASSES.search(name) or name == "names":
        names.add_classes(words)
    elif len(words) >= FEWEST_WORDS:
        names.decoders.append(TokenDecoder.of_words(words))


def _note_mapping(names: Names, name: str, value: Mapping[Any, Any]) -> bool:
    """Words by their numbers, or numbers by their words, from 0 on without a gap."""
    size = len(value)
    if size < 2:
        return False
    first, held = next(iter(value.items()))
    if isinstance(first, str) and isinstance(held, (int, np.integer)):
        pairs: dict[Any, Any] = {number: word for word, number in value.items()}
    elif isinstance(first, (int, np.integer)) and isinstance(held, str):
        pairs = dict(value)
    else:
        return False
    if len(pairs) == size and all(number in pairs and isinstance(pairs[number], str) for number in range(size)):
        words = [str(pairs[number]) for number in range(size)]
        if _OF_CLASSES.search(name):
            if not all(map(_DEFAULT.fullmatch, words)):
                names.add_classes(words)
        elif size >= FEWEST_WORDS:
            names.decoders.append(TokenDecoder.of_words(words))
    return True


def _decoder(value: Any) -> TokenDecoder | None:
    """A tokenizer, by what its class can do."""
    kind = type(value)
    if hasattr(kind, "convert_ids_to_tokens") and hasattr(kind, "all_special_ids"):
        return TokenDecoder(
            decode=lambda ids: value.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False),
            size=len(value),
            special=frozenset(value.all_special_ids),
            padding=value.pad_token_id,
        )
    if hasattr(kind, "id_to_token") and hasattr(kind, "get_vocab_size"):
        return TokenDecoder(
            decode=lambda ids: value.decode(ids, skip_special_tokens=False), size=value.get_vocab_size()
        )
    if hasattr(kind, "IdToPiece") and hasattr(kind, "GetPieceSize"):
        return TokenDecoder(decode=lambda ids: value.Decode(ids), size=value.GetPieceSize())
    if hasattr(kind, "decode_single_token_bytes") and hasattr(kind, "n_vocab"):
        return TokenDecoder(decode=value.decode, size=value.n_vocab)
    if hasattr(kind, "get_vocabulary"):
        words = [str(word) for word in value.get_vocabulary()]
        return TokenDecoder.of_words(words) if len(words) >= FEWEST_WORDS else None
    return None
