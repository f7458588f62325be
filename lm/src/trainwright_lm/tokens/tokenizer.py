"""Text to token ids and back: byte-level BPE, trained and saved by `tokenizers`, applied by the faster `tiktoken`."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tiktoken
import tokenizers
from numpy.typing import NDArray
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers

from trainwright.errors import ReadError
from trainwright_lm.atomic import replacing

END = "<|endoftext|>"
"""The end of a document, spelled as in GPT-2; as in GPT-2, its id is the vocabulary's last."""

_LETTER = r"[^\x00-@\[-`{-\x7f]"
"""ASCII letters and all non-ASCII characters, so that letters do not depend on an engine's Unicode version."""

PIECES = "|".join(
    (
        # Newlines and the indentation after them form one piece: one token per line instead of two, and a line's first
        # word is the same token at every depth.
        r"[\r\n]+[ \t]*",
        # A word with the space or underscores before it: `read_csv` is `read` and `_csv`, which takes 6 % fewer tokens
        # than GPT-2's pieces on Python files at 50,000 entries (4 % at 8,192). Other characters stay separate from
        # words: after `plt.`, the model has seen every name as a token of its own.
        rf" ?_*{_LETTER}+",
        # Digits in groups of up to three, so that long numbers do not fill the vocabulary.
        r" ?[0-9]{1,3}",
        r" ?[!-/:-@\[-^`{-~]+",
        r" ?_+",
        r"[ \t]+",
        r"[\x00-\x1f\x7f]",
    )
)
"""The pieces into which text is cut before BPE merges. It avoids GPT-2's lookahead, so tiktoken can run it in its regex
engine for regular languages, at twice the speed; `tokenizers` and `re` read it too and cut at the same places."""

_GPT2_PIECES = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"  # for a ByteLevel with use_regex
)
_LEAST_FREQUENCY = 2  # a pair seen once says nothing about other text
_PART_CHARACTERS = 1 << 16  # per text given to the trainer, to bound memory use
_SAMPLED_TOKENS = 4096  # appended to the sample on which both encoders must agree; takes about 10 ms
_SAMPLE = (
    "import numpy as np\r\n\r\nclass Größe(_Base):\n\t'''naïve 漢字 🙂 \u00a0\u3000 <|endoftext|>'''\n\n\n"
    "    def __init__(self, x=1_000.25, *args):  # don't\n        self._x_y  = [x  **2]\n   \n \x00\x0c\r"
)


class Tokenizer:
    """Byte-level BPE with a token for each byte, so it encodes any text; see `load_tokenizer` and `train_tokenizer`.

    A lone surrogate, which UTF-8 cannot represent, is encoded as U+FFFD, a surrogate pair as its character.
    """

    def __init__(
        self, backend: tokenizers.Tokenizer, token_bytes: list[bytes], encoding: tiktoken.Encoding | None
    ) -> None:
        """`encoding` must have the backend's pieces and merges; if it is None, the backend encodes."""
        self._backend = backend
        self._bytes = token_bytes
        self._encoding = encoding
        self.vocabulary_size = len(token_bytes)
        self.end_id: int = backend.token_to_id(END) or 0

    def encode(self, text: str) -> list[int]:
        """The text's ids, never `end_id`: a literal control token in the text is encoded as ordinary text."""
        ids: list[int] = self.encode_array(text).tolist()
        return ids

    def encode_array(self, text: str) -> NDArray[np.uint32]:
        """The same ids as an array, without an intermediate list."""
        if self._encoding is None:
            found = self._backend.encode(_without_surrogates(text), add_special_tokens=False)
            return np.array(found.ids, dtype=np.uint32)
        ids: NDArray[np.uint32]
        try:
            ids = self._encoding.encode_to_numpy(text, disallowed_special=())
        except UnicodeEncodeError:
            return self.encode_array(_without_surrogates(text))
        except ValueError:
            # If pieces use lookahead, as GPT-2's do, a run of a million spaces overflows the stack of tiktoken's engine
            # and makes tokenizers panic, so such a text is encoded in parts.
            return np.concatenate([self.encode_array(part) for part in _parts(text)])
        return ids

    def encode_arrays(self, texts: Sequence[str], *, threads: int = 1) -> list[NDArray[np.uint32]]:
        """`encode_array` for each text, on this many threads; used for packing."""
        with ThreadPoolExecutor(threads) as pool:  # both encoders release the GIL
            return list(pool.map(self.encode_array, texts))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; invalid UTF-8, such as an incomplete character, becomes U+FFFD."""
        return self.decode_bytes(ids).decode(errors="replace")

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """The bytes of the ids; `end_id` has none."""
        return b"".join(self.token_bytes(id) for id in ids)

    def token_bytes(self, id: int) -> bytes:
        """One token's bytes; empty for `end_id`."""
        return self._bytes[id]

    def save(self, file: Path) -> None:
        """Write tokenizer.json, which transformers can also open; an existing file is replaced atomically."""
        with replacing(file) as stream:
            stream.write(self._backend.to_str(pretty=True).encode())


def train_tokenizer(texts: Iterable[str], *, vocabulary_size: int, byte_budget: int) -> Tokenizer:
    """Train a tokenizer on the first `byte_budget` bytes (of UTF-8) of the texts; reading stops there.

    Texts are used in input order, so the caller must mix them: sorted by package, the budget would cover only the first
    packages. If the texts have too few repeated pairs, the vocabulary is smaller than requested; see the result's
    `vocabulary_size`.

    Args:
        vocabulary_size: The 256 bytes, the end token and the merges together; at least 257.
    """
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size - 1,
        min_frequency=_LEAST_FREQUENCY,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    read = 0

    def within_budget() -> Iterator[str]:
        nonlocal read
        for part in itertools.chain.from_iterable(map(_parts, texts)):
            encoded = _without_surrogates(part).encode()[: byte_budget - read]
            read += len(encoded)
            yield encoded.decode(errors="ignore")
            if read == byte_budget:
                return

    backend.train_from_iterator(within_budget(), trainer)
    backend.add_special_tokens([END])
    return _made(backend, PIECES)


def load_tokenizer(file: Path) -> Tokenizer:
    """Load a tokenizer.json: ours, or another byte-level BPE that has our end token, such as GPT-2's.

    Raises:
        ReadError: if the file is missing, damaged, or another kind of tokenizer.
    """
    try:
        text = file.read_text(encoding="utf-8")
        layout = json.loads(text)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ReadError(f"{file} must be a readable tokenizer.json: {error}") from error
    fault = _fault(layout)
    if fault is None:
        try:
            backend = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # tokenizers raises plain Exception
            fault = f"tokenizers cannot read it ({error})"
        else:
            return _made(backend, _pieces(layout["pre_tokenizer"]) or "")
    raise ReadError(f'{file} must be a byte-level BPE tokenizer with the token "{END}"; {fault}.')


def _made(backend: tokenizers.Tokenizer, pieces: str) -> Tokenizer:
    """A tokenizer that uses tiktoken if it gives the same ids; a literal control token is text either way."""
    backend.encode_special_tokens = True
    backend.no_truncation()
    backend.no_padding()
    token_bytes = _token_bytes(backend)
    encoding = _encoding(backend, token_bytes, pieces)
    plain, fast = Tokenizer(backend, token_bytes, None), Tokenizer(backend, token_bytes, encoding)
    sample = _SAMPLE + plain.decode(_spread(plain.vocabulary_size))
    if encoding is not None and fast.encode(sample) == plain.encode(sample):
        return fast
    warnings.warn(
        "tiktoken gives different ids than this tokenizer's file, so tokenizers is used instead, several times slower.",
        stacklevel=3,
    )
    return plain


def _spread(vocabulary_size: int) -> list[int]:
    """Ids from all over the vocabulary; consecutive ones are far apart."""
    return [i * 7919 % vocabulary_size for i in range(min(vocabulary_size, _SAMPLED_TOKENS))]


def _encoding(backend: tokenizers.Tokenizer, token_bytes: list[bytes], pieces: str) -> tiktoken.Encoding | None:
    """A tiktoken encoding with the backend's pieces and merges; None if tiktoken cannot represent them."""
    added = backend.get_added_tokens_decoder()
    if not all(token.special for token in added.values()):
        return None  # added tokens are searched for before text is cut, which tiktoken does not do
    try:
        return tiktoken.Encoding(
            "trainwright",
            pat_str=pieces,
            mergeable_ranks={token: id for id, token in enumerate(token_bytes) if token and id not in added},
            # With the end token registered, the search for control tokens is one pass; none is ever allowed.
            special_tokens={END: backend.token_to_id(END) or 0},
        )
    except ValueError:
        return None


def _fault(layout: Any) -> str | None:
    """Why this module does not support a tokenizer.json; None if it does."""
    if not isinstance(layout, dict) or not isinstance(layout.get("model"), dict):
        return "it has no model"
    model, added = layout["model"], layout.get("added_tokens") or []
    if model.get("type") != "BPE" or not isinstance(model.get("vocab"), dict):
        return f"its model is {model.get('type')}"
    for option in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(option):
            return f"its model has {option}"
    if layout.get("normalizer") is not None:
        return "it changes text before encoding (normalizer)"
    if _pieces(layout.get("pre_tokenizer")) is None:
        return "it does not split text by a single regular expression into bytes"
    contents = {token.get("content") for token in added if isinstance(token, dict)}
    if END not in contents:
        return "it has no such token"
    letters = set(_byte_of_letter())
    if not letters <= set(model["vocab"]):
        return "it lacks single-byte tokens"
    if any(not letters.issuperset(token) for token in model["vocab"] if token not in contents):
        return "its tokens are not written as bytes"
    return None


def _pieces(cutter: Any) -> str | None:
    """The regular expression that a byte-level tokenizer.json's pre_tokenizer splits by."""
    match cutter:
        case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}:
            return _GPT2_PIECES
        case {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            ],
        }:
            return pattern
    return None


def _byte_of_letter() -> dict[str, int]:
    """Maps each letter of byte-level BPE to its byte, as published with GPT-2: itself, or one from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def _token_bytes(backend: tokenizers.Tokenizer) -> list[bytes]:
    """Each id's bytes: an added token's are its text; the end token and missing ids have none."""
    to_byte = str.maketrans({letter: chr(byte) for letter, byte in _byte_of_letter().items()})
    added = backend.get_added_tokens_decoder()
    vocabulary = backend.get_vocab(with_added_tokens=True)
    found = [b""] * (max(vocabulary.values()) + 1)
    for token, id in vocabulary.items():
        if token != END:
            found[id] = token.encode() if id in added else token.translate(to_byte).encode("latin-1")
    return found


def _parts(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PART_CHARACTERS):
        yield text[start : start + _PART_CHARACTERS]


def _without_surrogates(text: str) -> str:
    """Replace surrogate pairs with their character and lone surrogates with U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
