"""The report as SARIF 2.1.0 (an OASIS standard), which code hosts and editors show beside the lines."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trainwright import __version__
from trainwright.core import Finding, Place, Report, Rule
from trainwright.core.report import to_dict
from trainwright.registry import load_rules
from trainwright.report import words
from trainwright.report.source import excerpt, path_in_repository

# Of JSON, what SARIF has no place for.
_OF_RUN = ("script", "framework", "versions", "seconds", "verdict", "stages")
_OF_FINDING = ("stage", "measured", "proof", "repair", "fix", "after_repair", "warned")
_FILE = re.compile(r"^--- (.+)\n\+\+\+ .+\n(?=@@ )", re.MULTILINE)
_HUNK = re.compile(r"^@@ -(\d+)(,0)?.*\n", re.MULTILINE)


def render(report: Report, status: int) -> str:
    """The report, of a check with this exit status, as a SARIF log with the pages of the rules that found something."""
    data, codes, seen = to_dict(report), {finding.code for finding in report.findings}, Counter[str]()
    rules = [_rule(rule) for rule in load_rules() if rule.code in codes]
    notes = [{"level": level, "message": {"text": text}} for level, text in words.notes(report, status)]
    files = (report.script, f"{report.script.replace('.', '/')}.py")  # of a module
    elsewhere = next((Place(file, 1) for file in files if Path(file).is_file()), report.begins)
    results = []
    for finding, told in zip(report.findings, data["findings"]):
        if (place := finding.where or elsewhere) is None:  # GitHub refuses a result without a line
            notes.append({"level": str(finding.severity), "message": {"text": words.whole(finding)}})
        else:
            of = {key: told[key] for key in _OF_FINDING}
            results.append({**_result(finding, place, seen), "properties": of})
    run = {
        "tool": {"driver": {"name": "trainwright", "version": __version__, "rules": rules}},
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The repository, or the folder of the check."}}},
        "invocations": [
            {"executionSuccessful": status in (0, 1), "exitCode": status, "toolExecutionNotifications": notes}
        ],
        "results": results,
        "properties": {key: data[key] for key in _OF_RUN},
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.markdown.split("\n\n")[1][:1024]},  # as much as GitHub takes
        "help": {"text": rule.page, "markdown": rule.markdown},
        "defaultConfiguration": {"level": str(rule.severity)},
        "properties": {"tags": [rule.stage.label]},
    }


def _result(finding: Finding, place: Place, seen: Counter[str]) -> dict[str, Any]:
    place, told, known, named = place.in_cell(), words.whole(finding), f"{finding.code}  ", {}
    line = place.line if place.cell is None else 1  # a cell's lines are none of the notebook's file
    if finding.where is not None:
        source = " ".join(one.text for one in excerpt(place, around=0))
        known = f"{finding.code} {path_in_repository(place.file)} {source}"
    if place.cell is not None:
        told, (cell, _, at) = f"{place}: {told}", f"cell {place.cell}, line {place.line}".partition(",")
        named = {"logicalLocations": [{"name": cell, "fullyQualifiedName": f"{cell},{at}"}]}
    physical = {"artifactLocation": _artifact(place.file), "region": {"startLine": line, "endLine": line}}
    seen[known] += 1  # the same however lines move; equal ones are told apart by their order
    digest = hashlib.sha256(f"{known} {seen[known]}".encode("utf-8", "replace")).hexdigest()
    return {
        "ruleId": finding.code,
        "level": str(finding.severity),
        "message": {"text": told},
        "locations": [{"physicalLocation": physical, **named}],
        "partialFingerprints": {"trainwright/v1": digest[:32]},
        "fixes": list(_fixes(finding)),
    }


def _artifact(file: str) -> dict[str, str]:
    path = Path(path_in_repository(file))
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(path.as_posix(), errors="surrogateescape"), "uriBaseId": "%SRCROOT%"}


def _fixes(finding: Finding) -> Iterator[dict[str, Any]]:
    """The fix with its diff as replacements; none for a notebook, whose file is not the text of its cells."""
    if finding.fix is not None and finding.fix.diff:
        _, *parts = _FILE.split(finding.fix.diff)
        changes = [
            {"artifactLocation": _artifact(name), "replacements": list(_replacements(hunks))}
            for name, hunks in zip(parts[::2], parts[1::2])
        ]
        if changes and not any(re.search(r", cell \d+$", name) for name in parts[::2]):
            yield {"description": {"text": finding.fix.does}, "artifactChanges": changes}


def _replacements(hunks: str) -> Iterator[dict[str, Any]]:
    """What the hunks of a unified diff change in one file, by whole lines."""
    _, *parts = _HUNK.split(hunks)
    for start, is_empty, body in zip(parts[::3], parts[1::3], parts[2::3]):
        lines = [text for text in body.split("\n") if text and not text.startswith("\\")]
        changed = [number for number, text in enumerate(lines) if not text.startswith(" ")]
        line = int(start) + bool(is_empty) + changed[0]  # of an empty range, the line before is named
        old, new = ([one[1:] for one in lines[changed[0] : changed[-1] + 1] if one[0] != sign] for sign in "+-")
        text, after = "".join(f"{one}\n" for one in new), line + len(old)
        region = {"startLine": line, "startColumn": 1, "endLine": after, "endColumn": 1}
        if new and old:  # to the end of the last line, whose line break stays
            text, region = text[:-1], {"startLine": line, "startColumn": 1, "endLine": after - 1}
        yield {"deletedRegion": region, "insertedContent": {"text": text}}
