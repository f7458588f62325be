"""Licenses by SPDX identifier, read from package metadata, from a license file's text or from a table column."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from importlib.metadata import PackageMetadata
from pathlib import Path
from typing import Any

# Licenses that require little more than attribution: the Blue Oak Council's list (March 2024, Lead or better), plus
# the licenses of Python itself and its oldest libraries.
PERMISSIVE = (
    "0BSD", "AFL-3.0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-3-Clause-Clear", "BSL-1.0", "BlueOak-1.0.0",
    "CC0-1.0", "CNRI-Python", "HPND", "ISC", "LicenseRef-BSD", "MIT", "MIT-0", "MIT-CMU", "NCSA", "PSF-2.0",
    "PostgreSQL", "Python-2.0", "Unlicense", "WTFPL", "X11", "ZPL-2.1", "Zlib",
)  # fmt: skip

# Free-text names from packages' "License" fields and trove classifiers, in lower case, without "license" and "the".
_NAMES = {
    "apache": "Apache-2.0", "apache 2": "Apache-2.0", "apache 2.0": "Apache-2.0", "apache software": "Apache-2.0",
    "apache version 2.0": "Apache-2.0", "asl 2.0": "Apache-2.0",
    "bsd": "LicenseRef-BSD", "new bsd": "BSD-3-Clause", "modified bsd": "BSD-3-Clause", "3-clause bsd": "BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause", "bsd 3 clause": "BSD-3-Clause", "bsd-3": "BSD-3-Clause",
    "simplified bsd": "BSD-2-Clause", "2-clause bsd": "BSD-2-Clause", "bsd 2-clause": "BSD-2-Clause",
    "expat": "MIT", "mit no attribution": "MIT-0", "isc (iscl)": "ISC", "iscl": "ISC", "historical permission notice and disclaimer (hpnd)": "HPND",
    "psf": "PSF-2.0", "psfl": "PSF-2.0", "python software foundation": "PSF-2.0", "unlicense (unlicense)": "Unlicense",
    "public domain": "LicenseRef-Public-Domain", "zope public": "ZPL-2.1", "zlib/libpng": "Zlib",
    "mozilla public 2.0 (mpl 2.0)": "MPL-2.0", "mpl 2.0": "MPL-2.0",
    "gpl": "GPL-3.0", "gplv2": "GPL-2.0", "gplv3": "GPL-3.0", "gnu general public v2 (gplv2)": "GPL-2.0",
    "gnu general public (gpl)": "GPL-3.0", "gnu general public v3 (gplv3)": "GPL-3.0",
    "gnu general public v3 or later (gplv3+)": "GPL-3.0", "gnu general public v2 or later (gplv2+)": "GPL-2.0",
    "lgpl": "LGPL-3.0", "gnu lesser general public v3 (lgplv3)": "LGPL-3.0",
    "gnu lesser general public v2 or later (lgplv2+)": "LGPL-2.1",
    "gnu library or lesser general public (lgpl)": "LGPL-2.1", "gnu affero general public v3": "AGPL-3.0",
    "gnu affero general public v3 or later (agplv3+)": "AGPL-3.0", "other/proprietary": "LicenseRef-Proprietary",
}  # fmt: skip

# Words that occur only in a particular license. A file may contain several licenses, its own first, then those of
# bundled code: the earliest match wins, and for matches at the same position, the first in this list.
_TEXTS = (
    ("AGPL-3.0", ("gnu affero general public license",)),
    ("LGPL-3.0", ("gnu lesser general public license", "version 3")),
    ("LGPL-2.1", ("gnu lesser general public license",)),
    ("GPL-3.0", ("gnu general public license", "version 3")),
    ("GPL-2.0", ("gnu general public license", "version 2")),
    ("MPL-2.0", ("mozilla public license version 2.0",)),
    ("MPL-2.0", ("mozilla public license, version 2.0",)),
    ("EPL-2.0", ("eclipse public license - v 2.0",)),
    ("Apache-2.0", ("apache license", "version 2.0")),
    ("BSD-3-Clause", ("redistribution and use in source and binary forms", "endorse or promote")),
    ("BSD-2-Clause", ("redistribution and use in source and binary forms",)),
    ("Unlicense", ("free and unencumbered software released into the public domain",)),
    ("CC0-1.0", ("cc0 1.0 universal",)),
    ("BSL-1.0", ("boost software license - version 1.0",)),
    ("PSF-2.0", ("python software foundation license version 2",)),
    ("MIT", ("permission is hereby granted, free of charge, to any person obtaining a copy",)),
    ("ISC", ("permission to use, copy, modify, and", "distribute this software for any purpose")),
    ("MIT", ("mit license",)),
    ("Apache-2.0", ("apache.org/licenses/license-2.0",)),
)

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
    found = [(low.find(words[0]), name) for name, words in _TEXTS if all(word in low for word in words)]
    return min(found, key=lambda place: place[0])[1] if found else None


def of_folder(folder: Path) -> str | None:
    """The license in a folder's LICENSE or COPYING files; None if there is none or it is unknown."""
    try:
        files = sorted(f for f in folder.iterdir() if _FILE.match(f.name) and f.is_file())
        texts = [f.read_text(encoding="utf-8", errors="replace") for f in files]
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
