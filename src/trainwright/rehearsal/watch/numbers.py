"""Numbers that a script prints or logs, each named by the words before it."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterable
from typing import Any

from trainwright.rehearsal.recorder import Recorder
from trainwright.seams.failures.blame import passed_on
from trainwright.seams.listening.doors import watch_door

_NUMBER = re.compile(
    r"(?<![\w.@])([-+]?(?:\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?|nan|inf))(?![\w.]*\w)(\s?%)?", re.IGNORECASE
)
# Around a whole number that is part of a word: "5-NN", "top-5".
_JOINED = re.compile(r"[a-z]-\0|\0-[a-z]", re.IGNORECASE)
# What stands before a spread, which is no number of its own.
_SPREAD = re.compile(r"(\+-|±|\+/-)\s*$")
# What counts the way or sets it, and says nothing of the training.
_COUNTS = re.compile(
    r"\bparam(?:eter)?s\b|\b(epoch|epochs|step|steps|iter|iteration|fold|seed|batch|second|runtime|seconds|time|trial)$"
)
_WORD = re.compile(r"[^a-z0-9@ ]+")
# A number with its name behind it, alone between brackets or commas: "(0.7 real_err, 0.6 fake_err)".
_NAMED_BEHIND = re.compile(
    r"(?:^|[(;|]|,(?=\s))\s*(?P<number>[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s?%?\s+(?P<name>[a-z]\w*(?: [a-z]\w*){0,2})\s*(?=[,;)|]|$)",
    re.IGNORECASE,
)
# Between cells of a table, whose numbers have their names in another line.
_CELLS = re.compile(r"[|┃│]")
# A name before a number that says more of the next one: "accuracy with 150 trees: 0.9", "loss at step 10: 0.4".
_WITHIN = re.compile(
    r"^(.*?\w)\s+(?:with|of|in|after|for|at|on|from|over|by)\b(?:.*\b(?:with|of|on|for))?( the| step| epoch| iter| iteration)?$"
)
# Sets that a line can be about; the name says so where its words do not.
_SETS = re.compile(r"\b(train|val(?!ue)|valid|validation|test|eval|dev|held)\w*")
# Longer lines are texts or tables, as a model's layers are; a progress bar's line says nothing that the next one does not.
MOST_CHARACTERS = 400
_BAR = re.compile(r"\d+%\||it/s|s/it|/step|^\d+\s+\|[^|]*\|[^|]*\|")
# Words of a name; and those that are none of it.
WORDS, FILLING = 3, frozenset({"the", "a", "of", "on", "in", "for", "at", "is", "was", "and", "with", "set", "its"})
# Numbers that are printed, of a run.
MOST_PRINTED = 5000


class Tee:
    """A stream that reads the numbers in what passes through it."""

    def __init__(self, recorder: Recorder, stream: Any) -> None:
        self._stream = stream
        self._line = ""
        self._printed = 0
        self._recorder = recorder
        self._note = recorder.watching(self._find)

    def write(self, text: str) -> Any:
        """Pass the text on, and read the lines that it ends."""
        written = passed_on(self._stream.write, text)  # a text that the console's encoding lacks is the script's error
        self._line += text
        if "\n" in self._line or "\r" in self._line:
            *lines, self._line = re.split(r"[\n\r]", self._line)
            for line in lines:
                self.read(line)
        self._line = self._line[-MOST_CHARACTERS - 1 :]
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several."""
        for line in lines:
            self.write(line)

    def read(self, line: str) -> None:
        """Note the numbers of a line."""
        if len(line) <= MOST_CHARACTERS and self._printed < MOST_PRINTED:
            self._note(line)

    def _find(self, line: str) -> None:
        if _BAR.search(line):
            return
        for name, value in numbers_in(line):
            self._printed += 1
            self._recorder.add_number(name, value, "printed")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return iter(self._stream)


def numbers_in(line: str) -> list[tuple[str, float]]:
    """The numbers of a line with their names; those without words are left out."""
    found, at, last, within = [], 0, "", ""
    behind = {one.start("number"): one["name"] for one in _NAMED_BEHIND.finditer(line)}
    behind = behind if len({*behind.values()}) > 1 else {}
    for match in _NUMBER.finditer(line):
        if match[1].isdigit() and _JOINED.search(f"{line[: match.start()][-2:]}\0{line[match.end() :][:2]}"):
            continue
        before = line[at : match.start()].replace("tensor(", "")
        at = match.end()
        if _SPREAD.search(before):
            continue
        *_, cell = cells = _CELLS.split(before)
        words = _WORD.sub(" ", cell.lower().replace("_", " ")).split()
        if named := behind.get(match.start()):
            words, within = _WORD.sub(" ", named.lower().replace("_", " ")).split(), ""
        elif whole := _WITHIN.match(" ".join(words)):
            within = _name_of(whole[1].split())
            continue
        name = within or _name_of(words) or (last if len(cells) == 1 else "")
        within = ""
        sets = _SETS.findall(line[: match.start()].lower())
        if name and sets and not _SETS.search(name):
            name = f"{sets[-1]} {name}"
        last = name
        value = float(match.group(1).replace(",", "."))
        is_fraction = before.rstrip().endswith("/") or line[at:].lstrip().startswith("/")  # "9800/10000"
        if name and not is_fraction and not _COUNTS.search(name):
            found.append((name, value / 100 if match.group(2) else value))
    return found


def _name_of(words: list[str]) -> str:
    return " ".join([one for one in words if one not in FILLING][-WORDS:])


def watch_logging(recorder: Recorder) -> None:
    """Read the numbers of what is logged. No handler is added: the root logger's first one decides what `basicConfig` does. A
    filter has returned before the handlers are called, which find the callers that they find without us."""
    reader = Tee(recorder, io.StringIO())
    read = recorder.watching(logging.LogRecord.getMessage)

    def passed_on(go_on: Any, self: Any, record: Any) -> Any:
        passed = go_on(self, record)
        if passed and record.levelno >= logging.INFO and not recorder.busy:
            for line in (read(record) or "").split("\n"):
                reader.read(line)
        return passed

    watch_door(logging.Logger, "filter", passed_on)
