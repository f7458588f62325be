"""Extracts the relevant part of an exception's message, which frameworks may bury in pages of text."""

from __future__ import annotations

import re

from trainwright.core.quotations import plain

# Keras puts a layer's exception in bold type, among the layer's arguments. Others set single words in it.
_OF_A_LAYER = "Exception encountered when calling"
_BOLD = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)
# TensorFlow begins with the operation and the lines that led to it; the message comes last.
_IN_GRAPH = "Graph execution error:"
_NODE = re.compile(r"\s*\[\[\{\{node .*|\s*\[Op:.*", re.DOTALL)
# The kernel and device, before and after the message.
_KERNEL = re.compile(r"^\{\{function_node [^}]*\}\} | \[Op:\w+\]( name: .*)?$")
# The original code's lines, if TensorFlow ran a copy.
_COPIED = re.compile(r'File "(.+?)", line (\d+), in (\S+)')


def telling(message: str) -> str:
    """The part of a message that says what is wrong; all of it if no such part is found."""
    if _OF_A_LAYER in message and (found := _BOLD.search(message)):
        return found.group(1).strip()
    message = plain(message)
    if message.startswith(_IN_GRAPH):
        said = _NODE.sub("", message).rstrip()
        return said.rpartition("\n")[2].strip()
    return _KERNEL.sub("", message)


def copied_lines(message: str) -> list[tuple[str, int, str]]:
    """File, line and function of the code that TensorFlow ran a copy of, if a message names them."""
    if not message.startswith("in user code:"):
        return []
    return [(file, int(line), name) for file, line, name in _COPIED.findall(message)]
