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
    """The text, in which each `file:line` is a link, if there is such a file."""
    for found in _PLACE.finditer(text.plain):
        path = Path(found[0].rpartition(":")[0]).absolute()
        # Of Path, a name that is too long raises. The host tells a terminal another machine's files from its own.
        if os.path.isfile(path):  # noqa: PTH113
            link = path.as_uri().replace("//", f"//{socket.gethostname()}", 1)
            text.stylize(Style(link=f"{link}#{found[1]}"), *found.span())
    return text


@dataclass(frozen=True)
class Linked:
    """A renderable with its links on a terminal, and without them elsewhere, and where no codes are wanted."""

    shown: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        follows = console.file.isatty() and not console.no_color
        for text, style, control in console.render(self.shown, options):
            yield Segment(text, style.update_link(None) if style and style.link and not follows else style, control)
