"""Licenses by SPDX identifier, read from package metadata, from a license file's text or from a table column.

What is known of them is in licences.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Sequence
from functools import cache
from importlib.metadata import PackageMetadata
from importlib.resources import files
from pathlib import Path
from typing import Any

_KNOWN = tomllib.loads(files("trainwright_lm.corpus").joinpath("licences.toml").read_text("utf-8"))
PERMISSIVE, HUB_NAMES = tuple[str, ...](_KNOWN["permissive"]), tuple[str, ...](_KNOWN["hub"])
_NAMES = {name: identifier for identifier, names in _KNOWN["names"].items() for name in names}

_VERSIONS = re.compile(r"-(only|or-later)$", re.IGNORECASE)
_FILE = re.compile(r"^(licen[cs]e|copying|unlicense)([-._].*)?$", re.IGNORECASE)
# Maximum length of an expression: some packages bundle twenty licenses, but a very long text is not an expression.
_EXPRESSION_LENGTH = 1000
# How much of a license file to search, in characters: even the longest known one (GPL 3) is named at its beginning.
_TEXT_LENGTH = 20_000


def spdx(name: str | None) -> str | None:
    """The SPDX identifier or expression for a name; None if it is unknown.

    "mit" is MIT, "gpl-3.0-or-later" GPL-3.0, "Apache License, Version 2.0" Apache-2.0; expressions stay as they are.
    """
    plain = (name or "").strip()
    low, known = _VERSIONS.sub("", plain.lower()), _identifiers()
    if low in known:
        return known[low]
    words = re.sub(r"\b(the|licen[cs]e|osi approved)\b|[,:]", " ", low)
    words = re.sub(r"\s+", " ", words).strip()
    found = _NAMES.get(words) or known.get(words) or known.get(words.replace(" ", "-"))
    if found or not re.search(r"\s(AND|OR|WITH)\s", plain):
        return found
    return plain if _parsed(plain) is not None else None


def of_text(text: str) -> str | None:
    """The license at the beginning of a license file, recognized by words that only its text contains."""
    low = re.sub(r"\s+", " ", text[:_TEXT_LENGTH].lower())
    found = [(low.find(words[0]), name) for name, *words in _KNOWN["texts"] if all(word in low for word in words)]
    return min(found, key=lambda place: place[0])[1] if found else None


def of_folder(folder: Path) -> str | None:
    """The license in a folder's LICENSE or COPYING files; None if there is none or it is unknown."""
    try:
        named = sorted(f for f in folder.iterdir() if _FILE.match(f.name) and f.is_file())
        texts = [f.read_text(encoding="utf-8", errors="replace") for f in named]
    except OSError:
        return None
    found = list(dict.fromkeys(of_text(text) for text in texts))
    known = [name for name in found if name is not None]
    return " OR ".join(known) or None


def of_metadata(metadata: PackageMetadata, texts: Sequence[str] = ()) -> str | None:
    """The license of an installed package.

    Args:
        texts: The texts of its license files, which resolve an ambiguous "BSD".
    """
    named = spdx(_field(metadata, "License-Expression")) or spdx(_field(metadata, "License"))
    if named and named != "LicenseRef-BSD":
        return named
    classifiers = [c for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
    classified = [spdx(c.rpartition("::")[2]) for c in classifiers]
    known = list(dict.fromkeys(name for name in classified if name))
    if known and known != ["LicenseRef-BSD"]:
        return " OR ".join(known)
    written = [of_text(text) for text in (_field(metadata, "License"), *texts)]
    return next((name for name in written if name), None) or named or (known[0] if known else None)


def _field(metadata: PackageMetadata, name: str) -> str:
    return str(metadata[name]) if name in metadata else ""


def allows(expression: str, allowed: Collection[str]) -> bool:
    """Whether allowed licenses alone satisfy an SPDX expression: either side of OR, both sides of AND.

    An exception (WITH) only adds permissions, so it is ignored. An invalid expression is never satisfied.
    """
    names, parsed, algebra = {name.lower() for name in allowed}, _parsed(expression), _algebra()
    if parsed is None:
        return False
    values = {}
    for symbol in parsed.symbols:
        low = next(symbol.decompose()).key.lower()
        values[symbol] = algebra.TRUE if {low, _VERSIONS.sub("", low)} & names else algebra.FALSE
    return bool(parsed.subs(values).simplify() == algebra.TRUE)


@cache
def _parsed(expression: str) -> Any:
    """The expression in terms of SPDX identifiers; None if it is invalid."""
    from license_expression import ExpressionError, ExpressionParseError

    try:
        return _algebra().parse(expression) if len(expression) <= _EXPRESSION_LENGTH else None
    except (ExpressionError, ExpressionParseError, AssertionError, IndexError):
        # boolean.py 5.0 raises the last two if an operator or ")" follows "(".
        return None


@cache
def _identifiers() -> dict[str, str]:
    """SPDX identifiers by lower-case name; "-only" and "-or-later" variants map to the version itself."""
    symbols = _algebra().known_symbols.items()
    names = [_VERSIONS.sub("", name) for name, symbol in symbols if not symbol.is_exception]
    return {name.lower(): name for name in [*names, *PERMISSIVE]}


@cache
def _algebra() -> Any:
    from license_expression import get_spdx_licensing

    return get_spdx_licensing()
