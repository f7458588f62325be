"""Licences: their names, their texts, and expressions of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus import MIT, write
from trainwright_lm.corpus.licences import PERMISSIVE, allows, of_folder, of_text, spdx


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("mit", "MIT"), ("MIT License", "MIT"), ("Apache License, Version 2.0", "Apache-2.0"), ("bsd-3-clause", "BSD-3-Clause"),
        ("gpl-3.0", "GPL-3.0"), ("GPL-3.0-or-later", "GPL-3.0"), ("BSD", "LicenseRef-BSD"), ("nonsense", None), ("", None),
        (None, None), ("MIT OR Apache-2.0", "MIT OR Apache-2.0"), ("cecill-2.1", "CECILL-2.1"), ("USE AT OWN RISK, OR NOT", None), ("Mozilla Public License 2.0 (MPL 2.0)", "MPL-2.0"),
    ],
)  # fmt: skip
def test_names_of_licences_become_identifiers(name: str | None, identifier: str | None) -> None:
    assert spdx(name) == identifier


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True), ("GPL-3.0", False), ("MIT OR GPL-3.0", True), ("MIT AND GPL-3.0", False),
        ("MIT AND (GPL-2.0 OR Apache-2.0)", True), ("MPL-2.0 AND (Apache-2.0 OR MIT)", False),
        ("Apache-2.0 WITH LLVM-exception AND MIT", True), ("(MIT", False), ("", False), ("MIT MIT", False), ("MIT OR", False),
        ("Nonsense-1.0 OR mit", True), ("GPL-2.0-only WITH Classpath-exception-2.0 OR BSD-3-Clause AND ISC", True),
    ],
)  # fmt: skip
def test_expressions_are_met_or_not(expression: str, allowed: bool) -> None:
    assert allows(expression, PERMISSIVE) is allowed


@given(st.lists(st.sampled_from(["MIT", "OR", "AND", "WITH", "(", ")", "+", ",", "é", "GPL-2.0+", "\n"])).map(" ".join))
def test_any_words_are_an_expression_or_none(text: str) -> None:
    assert allows(text, PERMISSIVE) in (True, False) and spdx(text) in (text, "MIT", "GPL-2.0", None)


def test_an_expression_without_end_is_none() -> None:
    assert not allows("MIT" + " AND (MIT" * 2000 + ")" * 2000, PERMISSIVE)


def test_an_allowed_licence_is_allowed_in_later_versions() -> None:
    for expression in ("GPL-3.0", "GPL-3.0-only", "GPL-3.0-or-later", "gpl-3.0+"):
        assert allows(expression, ["GPL-3.0"]) and not allows(expression, ["GPL-2.0"])


def test_a_licence_file_is_known_by_what_it_begins_with(tmp_path: Path) -> None:
    bundled = "Redistribution and use in source and binary forms ... endorse or promote ...\n\nGNU General Public License Version 3"
    assert of_text(bundled) == "BSD-3-Clause"
    assert of_text("GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007") == "GPL-3.0"
    assert of_text("All rights reserved.") is None
    assert of_folder(write(tmp_path, {"LICENSE.md": MIT, "license_notes.py": "x"})) == "MIT"
    assert of_folder(write(tmp_path / "none", {"a.py": ""})) is None
