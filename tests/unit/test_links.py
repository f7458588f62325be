"""Places are links in a terminal, and nowhere else."""

import io
import re
import socket

import pytest
from rich.console import Console
from rich.text import Text

from trainwright.core import Finding, Place, Report
from trainwright.report import terminal
from trainwright.report.links import with_links


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(file: io.StringIO, monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", **environment}.items():
        monkeypatch.setenv(name, value)
    fault = Finding(code="TW401", name="label-out-of-range", message="two outputs", where=Place("train.py", 1))
    terminal.show(Report(script="train.py", findings=(fault,)), Console(file=file, width=60))
    return file.getvalue()


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("model = 1\n")


def test_a_place_is_a_link_to_its_line_and_takes_no_room(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = printed(Terminal(), monkeypatch)
    assert f";file://{socket.gethostname()}{tmp_path}/train.py#1\x1b\\" in shown
    plain = re.sub(r"\x1b\]8;.*?\x1b\\|\x1b\[[0-9;]*m", "", shown)
    assert plain == printed(io.StringIO(), monkeypatch)


@pytest.mark.parametrize(
    ("file", "environment"),
    [
        (Terminal, {"NO_COLOR": "1"}),
        (Terminal, {"TERM": "dumb"}),
        (io.StringIO, {}),
        (io.StringIO, {"FORCE_COLOR": "1"}),  # a pipe whose colours are wanted
    ],
)
def test_no_link_where_none_is_followed(file, environment, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "train.py:1" in (shown := printed(file(), monkeypatch, **environment))
    assert "\x1b]8" not in shown


def test_what_names_no_file_is_no_link() -> None:
    text = with_links(Text(f"other.py:3, train.py:no, labels 0:16, {'a' * 5000}.py:1, train.py:12"))
    (span,) = text.spans
    assert text.plain[span.start : span.end] == "train.py:12"
