"""What in an exception's message says what is wrong, where a framework puts it in the midst of a page."""

from __future__ import annotations

import re

# Keras writes what a layer raised between these, among what the layer was given.
_BOLD = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)
# TensorFlow names the operation first, with the lines that led to it, and what it said last.
_IN_GRAPH = "Graph execution error:"
_NODE = re.compile(r"\s*\[\[\{\{node .*|\s*\[Op:.*", re.DOTALL)
# Which kernel on which device it was, before and after what it said.
_KERNEL = re.compile(r"^\{\{function_node [^}]*\}\} | \[Op:\w+\]( name: .*)?$")
# The lines of the original code, where TensorFlow ran a copy.
_COPIED = re.compile(r'File "(.+?)", line (\d+), in (\S+)')


def telling(message: str) -> str:
    """The part of a message that says what is wrong; all of it, where it says nothing else."""
    if found := _BOLD.search(message):
        return found.group(1).strip()
    if message.startswith(_IN_GRAPH):
        said = _NODE.sub("", message).rstrip()
        return said.rpartition("\n")[2].strip()
    return _KERNEL.sub("", message)


def copied_lines(message: str) -> list[tuple[str, int, str]]:
    """File, line and function of the code that TensorFlow ran a copy of, where a message names them."""
    if not message.startswith("in user code:"):
        return []
    return [(file, int(line), name) for file, line, name in _COPIED.findall(message)]
