"""Standard streams that accept any text: characters that the encoding lacks are replaced instead of raising."""

from __future__ import annotations

import codecs
import sys
from functools import partial

# As wide as the characters they replace, so that boxes keep their shape; except the ellipsis, which must be readable.
_STAND_INS = {
    "✓": "+", "✗": "x", "·": ".", "…": "...", "•": "*", "×": "x", "→": ">", "←": "<", "≤": "<", "≥": ">", "≈": "~",
    "–": "-", "—": "-", "−": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "±": "~", "σ": "s", "µ": "u",
    "█": "#", "▌": "#", "░": ".", "▁": "_", "▂": "_", "▃": "-", "▄": "-", "▅": "=", "▆": "=", "▇": "#",
}  # fmt: skip
_LINES = {"│": "|", "┃": "|", "║": "|", "╎": "|", "─": "-", "━": "-", "═": "-", "╌": "-", "╸": "-", "╺": "-", "╴": "-", "╶": "-"}  # fmt: skip
_SURROGATES = range(0xDC80, 0xDD00)


def take_everything() -> None:
    """Make standard output and standard error accept any text in any encoding, and standard input any bytes."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            before = str(stream.errors)
            name = "trainwright.escaping" if before.endswith("escape") else "trainwright.plain"
            reconfigure(errors=name)
    if sys.stdin is not None and hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")


def plain(text: str) -> str:
    """Text in ASCII, with replacements for all other characters."""
    return "".join(_stand_in(c) for c in text)


def utf8(text: str) -> str:
    """Text that UTF-8 can encode: undecodable bytes of a file name are decoded as UTF-8, half a pair (surrogates) is "?"."""
    return text.encode("utf-8", "trainwright.escaping").decode("utf-8", "replace")


def _stand_in(character: str) -> str:
    if character.isascii():
        return character
    found = _STAND_INS.get(character) or _LINES.get(character)
    if found is None and "─" <= character <= "╿":  # corners and crossings
        return "+"
    if found is None and "\u2800" <= character <= "\u28ff":  # the dots of a spinner
        return "*"
    return found or "?"


def _encoded(error: UnicodeError, escaping: bool) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    character = error.object[error.start]
    if escaping and ord(character) in _SURROGATES:  # an undecodable byte of a file name
        return bytes([ord(character) - 0xDC00]), error.start + 1
    return plain(character), error.start + 1


codecs.register_error("trainwright.plain", partial(_encoded, escaping=False))
codecs.register_error("trainwright.escaping", partial(_encoded, escaping=True))
