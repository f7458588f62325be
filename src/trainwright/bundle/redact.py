"""Takes private words out of a text (secrets, the user's and the machine's name, absolute paths), and longer quoted texts."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainwright.core.secrets import IN_ADDRESS, TOKEN

# What is written as `password = "…"` or `token: …`.
_ASSIGNED = re.compile(
    r"(?i)(\b\w*(?:api_?key|access_?key|secret|passw(?:or)?d|(?<![a-z])token|auth_?token|credentials?)[\"']?\s*[=:]\s*)"
    r"([\"'])([^\"'\n]{4,})\2"
)
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
# Marks that open a quoted text and close it. Behind a letter, a mark closes one or is an apostrophe; a single one is closed only
# where no letter follows. Before those of Python there may be letters, as in `f"…"`; what they open may end with the text.
_PYTHON = r"(?<![\w\\])[fFrRbBuU]{0,2}"
_MARKS = (
    (_PYTHON + '"""', r'"""|\Z'),
    (_PYTHON + "'''", r"'''|\Z"),
    (_PYTHON + '"', r'"|\Z'),
    (_PYTHON + "'", r"'(?!\w)"),
    ("“", r"”|\Z"),
    ("«", r"»|\Z"),
    (r"(?<![\w\\])‘", r"’(?!\w)"),
)
_QUOTED = re.compile("|".join(rf"({mark})((?:\\(?:.|\Z)|(?!{end})[^\\])*)({end})" for mark, end in _MARKS), re.DOTALL)


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
        text = TOKEN.sub("<token>", text)
        text = _ASSIGNED.sub(r"\1\2<secret>\2", text)
        text = IN_ADDRESS.sub(r"\1<secret>@", text)
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

    def told(found: re.Match[str]) -> str:
        opening, inside, closing = (part for part in found.groups() if part is not None)
        is_long = len(inside) >= _SHORTEST
        return f"{opening}<text of {len(inside)} characters>{closing}" if is_long else found[0]

    return _QUOTED.sub(told, text)
