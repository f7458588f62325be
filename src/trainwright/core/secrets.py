"""What is named like a secret, or looks like one, in what is shown or sent: `…` stands in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence

# An option of whose value nothing is told: `--api-key VALUE` or `--token=VALUE`.
_SECRET = re.compile(
    r"(-*[\w.-]*(?:(?<![a-z])key|token(?!s|iz)|secret|passw|\bpwd|credential|\bauth(?!or))[\w.-]*)(=.+)?",
    re.IGNORECASE | re.DOTALL,
)
# The forms that services give their tokens, wherever they stand; and the name and password of an address.
TOKEN = re.compile(
    r"\b(?:hf|gh[pousr])_(?:(?:oauth|jwt|refresh)_+)*(?:\d+_)?[^\W_]{20,}(?:\.[\w-]+){0,2}|\b(?:sk-(?=[\w-]*\d)|github_pat_|glpat-|AKIA|xox[abprs]-|AIza)[\w-]{8,}"
    r"|(?<![^\W_])eyJ[\w-]{10,}\.[\w-]+\.[\w-]+|\b[0-9a-f]{40}\b"
)
IN_ADDRESS = re.compile(r"(\w+://)[^/\s:@\"']+:[^/\s@\"']+@")


def without_secrets(words: Sequence[str]) -> list[str]:
    """The words of a command or of a line, with `…` in the place of what is named like a secret, or looks like one."""
    shown: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        is_value = before.startswith("-") and "=" not in before and not word.startswith("-")
        is_value |= before.endswith(":") and not before.endswith("Error:")
        found = _SECRET.fullmatch(word)
        hidden = (
            "…"
            if is_value and _SECRET.fullmatch(before.rstrip(":"))
            else f"{found[1]}=…"
            if found and found[2]
            else word
        )
        shown.append(IN_ADDRESS.sub(r"\1…@", TOKEN.sub("…", hidden)))
    return shown
