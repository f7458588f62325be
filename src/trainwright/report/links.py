"""Places as links, which many terminals follow (OSC 8): `file://host/path#line`."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

_PLACE = re.compile(r"[^\s:,;()'\"]+\.(?:pyw?|ipynb):(\d+)\b")


def with_links(text: Text) -> Text:
    """The text, each `file:line` of an existing file in it linked; the file's path is the one from the working folder."""
    for found in _PLACE.finditer(text.plain):
        path = Path(found[0].rpartition(":")[0]).absolute()
        if path.is_file():
            text.stylize(Style(link=f"{path.as_uri().replace('//', f'//{_host()}', 1)}#{found[1]}"), *found.span())
    return text


def follows_links(console: Console) -> bool:
    """Whether links may be written: to a terminal in which codes are neither unknown nor unwanted."""
    is_terminal = console.file.isatty() and not console.is_dumb_terminal
    return is_terminal and not console.no_color and os.environ.get("TERM") != "linux"


def _host() -> str:
    """The machine's name, by which a terminal knows another one's files; Windows would look for it in the network."""
    return "" if os.name == "nt" else socket.gethostname()


@dataclass(frozen=True)
class WithoutLinks:
    """A renderable as it is but for its links."""

    shown: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self.shown, options):
            yield Segment(text, style.update_link(None) if style is not None and style.link else style, control)
