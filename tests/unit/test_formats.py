"""Formats of other programs, on a stored report; `pytest tests/unit/test_formats.py --rewrite` stores them anew."""

import difflib
import json
import linecache
import re
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from report_schema import STORED, as_text, check_data
from trainwright.core import Failure, Finding, Fix, Place, Report, Severity, Shown, Stage, StageRun, Status, Verdict
from trainwright.core.report import from_dict, to_dict
from trainwright.errors import UsageError
from trainwright.output import FORMATS, check_targets, read_targets, write_all
from trainwright.report import github, junit, markdown, sarif
from trainwright.report.source import path_in_repository

GOLDEN = Path(__file__).parents[1] / "golden"
DATA = json.loads((GOLDEN / "report.json").read_text("utf-8"))
REPORT = from_dict(DATA)
SHOWN = Report(script="train.py", verdict=Verdict(shown=Shown.LEARNS, why="0.9 instead of 0.5"))
OPEN = replace(SHOWN, verdict=Verdict(shown=Shown.NOT_SHOWN, why="too few updates"))
IN_CELL = Finding(code="TW401", name="label-out-of-range", message="too many", where=Place("train.ipynb", 2, 3))


@pytest.fixture(autouse=True)
def beside_the_script(tmp_path, monkeypatch):
    shutil.copy(GOLDEN / "train.py", tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "json"])
def test_a_report_is_rendered_as_stored(name, request):
    """The version is that of a release."""
    file = (
        GOLDEN
        / {"sarif": "report.sarif", "github": "report.github", "junit": "report.xml", "markdown": "report.md"}[name]
    )
    text = import_module(f"trainwright.report.{name}").render(REPORT, 1)
    if request.config.getoption("--rewrite"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def results(*findings):
    return json.loads(sarif.render(replace(SHOWN, findings=findings), 1))["runs"][0]["results"]


def replaced(before, changes):
    """A file's lines with SARIF's replacements, made as the standard says."""
    lines = before
    for change in reversed(changes):
        region, text = change["deletedRegion"], change["insertedContent"]["text"]
        assert region["startColumn"] == 1
        if "endColumn" in region:
            assert region["endColumn"] == 1
            lines = lines[: region["startLine"] - 1] + text.splitlines() + lines[region["endLine"] - 1 :]
        else:
            lines = lines[: region["startLine"] - 1] + text.split("\n") + lines[region["endLine"] :]
    return lines


LINES = st.lists(st.sampled_from(["", "a", "- b", "++ c", "@@ d", "e"]), max_size=9)


@given(LINES, LINES, st.sampled_from([0, 1, 3]))
def test_a_fix_replaces_what_its_diff_does(before, after, context):
    rows = [[f"{line}\n" for line in lines] for lines in (before, after)]
    diff = "".join(difflib.unified_diff(*rows, "train.py", "train.py", n=context))
    (result,) = results(Finding(code="TW401", message="m", fix=Fix(does="edit", diff=diff or None)))
    changes = [one["replacements"] for fix in result["fixes"] for one in fix["artifactChanges"]]
    assert len(changes) == (before != after)
    assert replaced(before, changes[0] if changes else []) == after


def test_a_place_is_named_below_the_repository(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / "a b").mkdir()
    monkeypatch.chdir(tmp_path / "a b")
    assert path_in_repository("x.py") == "a b/x.py" and path_in_repository("../y.py") == "y.py"
    assert path_in_repository("/elsewhere/z.py") == "/elsewhere/z.py"
    (one,) = results(Finding(code="TW401", message="m", where=Place("x.py", 3)))
    assert one["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b/x.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 3, "endLine": 3},
    }


def test_a_cell_of_a_notebook_is_named_and_its_line_is_none_of_the_file():
    diff = "--- train.ipynb, cell 3\n+++ train.ipynb, cell 3\n@@ -2 +2 @@\n-a\n+b\n"
    (one,) = results(replace(IN_CELL, fix=Fix(does="write b", diff=diff)))
    assert one["locations"][0]["logicalLocations"] == [{"name": "cell 3", "fullyQualifiedName": "cell 3, line 2"}]
    assert one["message"]["text"].startswith("train.ipynb, cell 3, line 2: too many") and one["fixes"] == []
    command = github.render(replace(SHOWN, findings=(IN_CELL,)), 1).splitlines()[0]
    assert command == "::error file=train.ipynb,title=TW401 label-out-of-range::train.ipynb, cell 3, line 2: too many"


def test_a_fingerprint_is_that_of_the_line_wherever_it_stands(tmp_path):
    def prints(*lines):
        found = results(*(Finding(code="TW605", message="m", where=Place("train.py", line)) for line in lines))
        return [one["partialFingerprints"]["trainwright/v1"] for one in found]

    before = prints(8, 8, 5)
    assert len(set(before)) == 3
    (tmp_path / "train.py").write_text("\n" + (tmp_path / "train.py").read_text("utf-8"), "utf-8")
    linecache.checkcache()
    assert prints(9, 9, 6) == before


def test_a_command_holds_any_text_in_one_line():
    failure = Failure(type="a:b,c%", message="50 %\nof", where=Place("train.py", 5))
    told = github.render(Report(script="train.py", failure=failure), 1).splitlines()
    assert told[1] == "::error title=trainwright train.py::a:b,c%25: 50 %25%0Aof"
    odd = replace(IN_CELL, name="a:b,c%", where=None)
    assert "title=TW401 a%3Ab%2Cc%25::too many" in github.render(replace(SHOWN, findings=(odd,)), 1)


def test_a_check_that_fails_by_its_verdict_alone_says_so():
    """As with --require-learning."""
    assert github.render(OPEN, 1).startswith("::error title=trainwright train.py::Whether it learns was not shown")
    assert github.render(OPEN, 0).startswith("::notice ")
    failed, skipped = (ElementTree.fromstring(junit.render(OPEN, status))[0][0][0].tag for status in (1, 0))
    assert (failed, skipped) == ("failure", "skipped")
    run = json.loads(sarif.render(OPEN, 1))["runs"][0]
    assert run["invocations"][0]["exitCode"] == 1 and run["results"] == []


def test_the_cases_of_a_suite_are_counted():
    suite = ElementTree.fromstring(junit.render(REPORT, 1))[0]
    cases = {case.get("name"): [part.tag for part in case] for case in suite}
    assert list(cases)[:2] == ["verdict", "Trainwright"] and len(cases) == int(suite.get("tests"))
    for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(name)) == sum(parts == [kind] for parts in cases.values())
    assert cases["loss"] == ["failure"]  # although it was fixed in memory
    assert cases["batch"] == ["system-out"]  # a note


def test_what_xml_cannot_hold_is_replaced():
    run = StageRun(stage=Stage.SETUP, status=Status.FAILED, why="\x1b[31mred\x00 \ud800 <&>")
    document = ElementTree.fromstring(junit.render(replace(SHOWN, stages=(run,)), 1))
    assert document[0][1][0].get("message") == "\ufffd[31mred\ufffd \ufffd <&>"


def test_a_finding_without_a_place_has_one_where_there_is_a_file(tmp_path):
    """GitHub refuses a file with a result that has none."""
    whole = Finding(code="TW401", message="of the whole")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "train.py").touch()
    begins = Place("a.py", 7)
    for script, where in (("train.py", None), ("pkg.train", begins), ("Module", begins), ("Module", None)):
        run = json.loads(sarif.render(Report(script=script, findings=(whole,), begins=where), 1))["runs"][0]
        found = [one["locations"][0]["physicalLocation"] for one in run["results"]]
        told = [(one["artifactLocation"]["uri"], one["region"]["startLine"]) for one in found]
        assert told == {"train.py": [("train.py", 1)], "pkg.train": [("pkg/train.py", 1)]}.get(
            script, [("a.py", 7)] if where else []
        )
        notes = [one["message"]["text"] for one in run["invocations"][0]["toolExecutionNotifications"]]
        assert ("of the whole" in notes) == (not told)


def test_a_comment_fits_and_calls_nobody():
    fence = Fix(does="see `@tf.function` | #12", diff="--- a\n+++ a\n@@ -1 +1 @@\n-```\n+````\n" + "+x\n" * 40_000)
    many = [
        replace(IN_CELL, message="@user <b>| &lt; $x$\n" * 400, fix=fence, severity=Severity.WARNING)
        for _ in range(400)
    ]
    stages = tuple(StageRun(stage=stage, status=Status.PASSED, why="x" * 9000) for stage in Stage)
    text = markdown.render(replace(SHOWN, findings=tuple(many), stages=stages), 1)
    assert len(text) < 65_536 and "and 374 more" in text
    prose = text.partition("`````diff")[0] + text.rpartition("`````")[2]
    assert "@user" not in prose and "<b>" not in prose.replace("\\<b\\>", "") and "#12" not in prose
    assert not re.search(r"(?<!\\)[&$]", prose)
    assert "Stages" in text and "Stages" not in markdown.render(SHOWN, 0)
    rows = [line for line in text.splitlines() if line.startswith("| warning")]
    assert len(rows) == 25 and {row.replace("\\|", "").count("|") for row in rows} == {5}


def test_rows_of_the_data_are_in_no_comment():
    assert "fine" in json.dumps(DATA["sheet"]["samples"]) and "fine" not in markdown.render(REPORT, 1)


def test_standard_output_holds_one_format():
    given = read_targets(["github", "sarif=a.sarif", "text"], json="r.json", html=None)
    assert given == {"--json": "r.json", "--format github": "-", "--format sarif=a.sarif": "a.sarif"}
    check_targets(given)
    for formats, json_file in ((["json"], "-"), (["sarif", "github"], None)):
        with pytest.raises(UsageError, match="cannot both go to standard output"):
            check_targets(read_targets(formats, json=json_file))
    for word in ("xml", "text=a.txt", ""):
        with pytest.raises(UsageError, match=r"--format must be text, or json\[=FILE\], sarif.*; got"):
            read_targets([word])


def test_one_format_goes_to_several_places(capsys):
    write_all(read_targets(["junit", "junit=a b.xml", "json=r.json"]), SHOWN, 0)
    assert capsys.readouterr().out == Path("a b.xml").read_text("utf-8") == junit.render(SHOWN, 0)
    assert json.loads(Path("r.json").read_text("utf-8"))["script"] == "train.py"


def test_half_a_character_is_written():
    told = replace(SHOWN, message="a\ud83d, caf\udcc3\udca9")
    write_all(read_targets(["json=r.json"]), told, 0)
    assert json.loads(Path("r.json").read_text("utf-8"))["message"] == "a?, café"


def test_the_schema_is_that_of_the_report():
    """`scripts/report-schema` writes it anew."""
    assert STORED.read_text("utf-8") == as_text()
    jsonschema.Draft202012Validator.check_schema(json.loads(as_text()))
    jsonschema.validate(DATA, json.loads(as_text()), cls=jsonschema.Draft202012Validator)


def test_what_the_schema_does_not_name_is_not_written():
    check_data(DATA)
    check_data(to_dict(Report(script="train.py")))
    wrong = [{"more": 1}, {"seconds": "long"}, {"findings": [{}]}]
    wrong.append({"sheet": {**DATA["sheet"], "scores": [{**DATA["sheet"]["scores"][0], "scale": 1}]}})
    for change in wrong:
        with pytest.raises(AssertionError, match="not in the schema of a report"):
            check_data({**DATA, **change})
