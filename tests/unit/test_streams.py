"""Where a report begins: on a line of its own, also behind a progress bar."""

import io
import sys

import pytest

from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.streams import watching_lines
from trainwright.rehearsal.watch.numbers import Tee
from trainwright.seams.failures.blame import describe_error, is_own


class File(io.StringIO):
    """A stream of Python's own kind, without a file."""


@pytest.mark.parametrize(
    ("written", "is_open"),
    [
        (["done\n"], False),
        (["\r  0%|     | 0/384 [00:00<?, ?it/s]"], True),
        (["half", " a line"], True),
        (["half", " a line\n"], False),
        (["\r 50%|##  |", "\r          ", "\r"], False),
        (["⠋ checking", "\x1b[2K\r"], False),
        (["\x1b[31mred\x1b[0m"], True),
        (["text\n\x1b[0m"], False),
        (["loading 100%", "\r"], True),  # it still stands there
        ([], False),
    ],
)
def test_a_line_that_is_not_ended_is_known(monkeypatch, written: list[str], is_open: bool) -> None:
    stream = File()
    monkeypatch.setattr(sys, "stderr", stream)
    with watching_lines() as lines:
        for text in written:
            print(text, end="", file=sys.stderr)
        assert lines.is_open(stream) is is_open
        lines.end(stream)
    assert stream.getvalue() == "".join(written) + ("\n" if is_open else "")
    assert "write" not in vars(stream), "the stream is as it was"


def test_a_write_of_the_scripts_own_comes_back(monkeypatch) -> None:
    stream = File()
    own = stream.write = lambda text: len(text)  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    with watching_lines():
        assert stream.write is not own
    assert stream.write is own


def test_both_streams_into_one_file_have_one_line(tmp_path, monkeypatch) -> None:
    with (
        (tmp_path / "log").open("w") as out,
        (tmp_path / "log").open("w") as err,
        (tmp_path / "other").open("w") as other,
    ):
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        with watching_lines() as lines:
            print("  0%|   |", end="", file=sys.stderr)
            assert lines.is_open(out) and not lines.is_open(other)


def test_what_the_console_cannot_show_is_the_scripts_error(monkeypatch) -> None:
    """Python raises it as well; the streams of a check only pass it on."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    with watching_lines(), pytest.raises(UnicodeEncodeError) as raised:
        print("λ", file=Tee(Recorder(), sys.stdout))
    assert not is_own(raised.value)
    where = describe_error(raised.value).where
    assert where is not None and where.file.endswith("test_streams.py")
