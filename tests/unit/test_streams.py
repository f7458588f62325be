"""What a script prints: its last line is kept, and what its console cannot show is its own error."""

import io
import subprocess
import sys

import pytest

from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.streams import MOST_KEPT, LastLine
from trainwright.rehearsal.watch.numbers import Tee
from trainwright.seams.failures.blame import describe_error, is_own


@pytest.mark.parametrize(
    ("printed", "last"),
    [
        ("one\ntwo\n", "two"),
        ("one\n\x1b[31mred\x1b[0m\n  \n", "red"),
        ("\r 10%|#  |\r 20%|## |", "20%|## |"),
        ("x" * 3 * MOST_KEPT + "\nlast\n", "last"),
        ("caf\udcc3\udca9", "café"),
        ("\x1b]0;title\x07\x1b[2K50%\x1b[1A\x01 done", "50% done"),
        (
            f"hf_multi_eval.py sk-learn-pipe hf_{'a' * 34} password=hunter2 secret: a",
            "hf_multi_eval.py sk-learn-pipe … password=… secret: …",
        ),
        ("KeyError: 'label'", "KeyError: 'label'"),
        ("", ""),
    ],
)
def test_the_last_line_is_kept(printed: str, last: str) -> None:
    code = f"import os\nos.write(1, {printed.encode('utf-8', 'surrogateescape')!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    kept = LastLine(process.stdout)
    process.wait()
    assert kept.find() == last


def test_what_the_console_cannot_show_is_the_scripts_error(monkeypatch) -> None:
    """Python raises it as well; the streams of a check only pass it on."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    with pytest.raises(UnicodeEncodeError) as raised:
        print("λ", file=Tee(Recorder(), sys.stdout))
    assert not is_own(raised.value)
    where = describe_error(raised.value).where
    assert where is not None and where.file.endswith("test_streams.py")
