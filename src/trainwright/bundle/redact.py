"""Takes private words out of a text (secrets, the user's and the machine's name, absolute paths), and longer quoted texts."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# The forms that services give their tokens.
_TOKENS = re.compile(
    r"\bhf_[A-Za-z0-9]{8,}|\bsk-[A-Za-z0-9_\-]{8,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bAKIA[0-9A-Z]{12,}"
    r"|\bglpat-[\w\-]{16,}|\bxox[abprs]-[\w\-]{10,}|\bAIza[\w\-]{30,}|\beyJ[\w\-]{10,}\.[\w\-]+\.[\w\-]+|\b[0-9a-f]{40}\b"
)
# What is written as `password = "…"`, `token: …` or `https://name:password@host`.
_ASSIGNED = re.compile(
    r"(?i)(\b\w*(?:api_?key|access_?key|secret|passw(?:or)?d|(?<![a-z])token|auth_?token|credentials?)[\"']?\s*[=:]\s*)"
    r"([\"'])([^\"'\n]{4,})\2"
)
_IN_ADDRESS = re.compile(r"(\w+://)[^/\s:@\"']+:[^/\s@\"']+@")
_MAIL = re.compile(r"\b[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)+\b")
_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential|auth")
# A path from a root that people's or jobs' files lie under; `https://…` is none.
_PATH = re.compile(r"(?<![\w:/.<>\-])(?:~|[A-Za-z]:)?[/\\](?:[\w.@+\-]+[/\\])+([\w.@+\-]*)")
_LIBRARY = re.compile(r"(?<![\w.])[\w./\\:~+@\-]*?(?:site|dist)-packages[/\\]")
# Shorter values are ordinary words ("1", "true", "cpu"), which a secret is not.
_SHORTEST_SECRET = 6
_SHORTEST_NAME = 3
# Names that say nothing of a person, and are words of ordinary texts.
_COMMON_NAMES = frozenset(
    {"root", "user", "users", "home", "ubuntu", "admin", "localhost", "runner", "jovyan", "train", "test"}
)
# Quoted texts of at least so many characters may be data.
_SHORTEST = 25
_CLOSING = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»"}
# Letters that Python writes before a text.
_PREFIX = re.compile(r"(?<![\w\"'])[fFrRbBuU]{1,2}$")
# A triple quotation mark is Python's.
_TRIPLE = 3


@dataclass(frozen=True, kw_only=True)
class Redactor:
    """Knows what is private on this machine."""

    folder: Path
    """Paths under it are named from here."""
    home: Path = field(default_factory=Path.home)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    user: str = field(default_factory=lambda: _user())
    host: str = field(default_factory=socket.gethostname)

    def redact(self, text: str) -> str:
        """The text without what is private."""
        for secret in sorted(set(self._secrets()), key=len, reverse=True):
            text = text.replace(secret, "<secret>")
        text = _TOKENS.sub("<token>", text)
        text = _ASSIGNED.sub(r"\1\2<secret>\2", text)
        text = _IN_ADDRESS.sub(r"\1<secret>@", text)
        text = _MAIL.sub("<mail>", text)
        text = _LIBRARY.sub("<packages>/", text)
        for place, shown in ((self.folder, ""), (self.folder.resolve(), ""), (self.home, "~/")):
            if len(place.parts) > 1:
                text = text.replace(f"{place}{os.sep}", shown)
        text = _PATH.sub(lambda found: f"<path>/{found[1]}" if found[1] else "<path>", text)
        for name, shown in ((self.user, "<user>"), (self.host, "<host>"), (self.host.partition(".")[0], "<host>")):
            if len(name) >= _SHORTEST_NAME and name.lower() not in _COMMON_NAMES:
                text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", shown, text)
        return text

    def _secrets(self) -> Iterator[str]:
        for name, value in self.environment.items():
            if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET:
                yield value
        for folder in (self.folder, Path.cwd()):
            for file in sorted(folder.glob(".env*")):
                yield from _values(file)


def _values(file: Path) -> Iterator[str]:
    """The values of a `.env` file."""
    try:
        lines = file.read_text("utf-8", errors="replace").splitlines() if file.is_file() else []
    except OSError:
        return
    for line in lines:
        value = line.partition("=")[2].strip().strip("\"'")
        if not line.lstrip().startswith("#") and len(value) >= _SHORTEST_SECRET:
            yield value


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""


def without_quoted(text: str) -> str:
    """The text, with the length of each longer quoted text in its place."""
    return "".join(
        f"{opening}<text of {len(inner)} characters>{closing}" if opening and len(inner) >= _SHORTEST else whole
        for whole, opening, inner, closing in _parts(text)
    )


def _parts(text: str) -> Iterator[tuple[str, str, str, str]]:
    """The text in pieces: each as it is, and for a quoted one its opening mark, what is inside, and its closing mark."""
    at = plain = 0
    while at < len(text):
        end = _end(text, at) if _opens(text, at) else None
        if end is None:
            at += 1
            continue
        yield text[plain:at], "", "", ""
        size = len(_mark(text, at))
        first, last = at + size, end - size if end > at else len(text)
        plain = at = max(end, first) if end > at else len(text)
        yield text[first - size : plain], text[first - size : first], text[first:last], text[last:plain]
    yield text[plain:], "", "", ""


def _mark(text: str, at: int) -> str:
    one = text[at]
    return one * _TRIPLE if one in "\"'" and text.startswith(one * _TRIPLE, at) else one


def _opens(text: str, at: int) -> bool:
    """Whether a quoted text begins here: a mark behind a letter or a digit closes one, or is an apostrophe."""
    if _PREFIX.search(text[max(0, at - 3) : at]) and text[at] in "\"'":
        return True
    before = text[at - 1] if at else " "
    if text[at] not in _CLOSING:
        return False
    return not (before.isalnum() or before in "_\\") or text[at] in "“«"


def _end(text: str, at: int) -> int | None:
    """Where the quoted text that begins here ends, behind its mark; `at` itself if no mark closes it; None: it is no text."""
    mark = _mark(text, at)
    closing = mark if len(mark) == _TRIPLE else _CLOSING[mark]
    place = at + len(mark)
    while place < len(text):
        if text[place] == "\\":
            place += 2
            continue
        if text.startswith(closing, place) and _closes(text, place, closing):
            return place + len(closing)
        place += 1
    return None if mark in ("'", "‘") else at


def _closes(text: str, place: int, closing: str) -> bool:
    """Whether a mark closes a text: before a letter, a single one is an apostrophe."""
    behind = text[place + len(closing) : place + len(closing) + 1]
    return closing not in ("'", "’") or not behind.isalnum()
