"""Whether a script ended before training because it was told there is no GPU; then it runs with another answer."""

from __future__ import annotations

import ast
import linecache
import re
import traceback
from collections.abc import Iterator

from trainwright.seams.devices.precision import LAUNCHED
from trainwright.seams.devices.redirection import Redirection
from trainwright.seams.source.places import is_users
from trainwright.seams.source.written import syntax_tree

# torch's messages for a missing device, for requests that are not watched from the beginning.
_LACKING = re.compile(
    r"not compiled with CUDA|Found no NVIDIA driver|No CUDA GPUs are available|compiled without CUDA|requires CUDA"
    r"|not linked with support for (cuda|mps|xpu)|from the '(CUDA|MPS|XPU)' backend|ATen_cuda library"
    r"|Cannot access accelerator device|deserialize object on a|no attribute '_cuda_"
)
# Words for devices in a script's condition, message or failing line.
_SPOKEN_OF = re.compile(
    r"cuda|gpu|nvidia|\bmps\b|is_available|device_count|current_accelerator|list_physical_devices", re.IGNORECASE
)
# Names of functions that train.
_TRAINING = re.compile(r"train|^fit|^main$|^run|backward|launch", re.IGNORECASE)


def lacks_device(error: BaseException) -> bool:
    """Whether an exception says that a device is missing."""
    return any(_LACKING.search(str(e)) for e in _chain(error))


def lacks_launcher(error: BaseException) -> bool:
    """Whether a script needs variables that a launcher of several processes sets."""
    if isinstance(error, ValueError):  # torch's own: "environment variable RANK expected, but not set"
        return "environment variable" in str(error) and any(name in str(error) for name in LAUNCHED)
    return isinstance(error, KeyError) and any(name in LAUNCHED for name in error.args)


def ended_for_want(redirection: Redirection, error: BaseException | None) -> bool:
    """Whether the answer that there is no GPU explains why the script ended before training.

    Args:
        error: what ended it; None if it ran to its end.
    """
    if not redirection.questions:
        return False
    if error is None:
        return any(_trains_where_available(file) for file in redirection.questions.values())
    return bool(_SPOKEN_OF.search(str(error))) or any(_SPOKEN_OF.search(text) for text in _conditions(error))


def _trains_where_available(file: str) -> bool:
    """Whether a file has training code under a condition that mentions devices."""
    tree = syntax_tree(file)
    text = "".join(linecache.getlines(file))
    if "spawn(" in text and "device_count" in text:  # one process per device
        return True
    return any(
        isinstance(node, ast.If)
        and any(_SPOKEN_OF.search(t) for t in (ast.unparse(node.test), *_meaning(node.test, tree)))
        and any(_trains(inside) for part in (*node.body, *node.orelse) for inside in ast.walk(part))
        for node in (ast.walk(tree) if tree is not None else ())
    )


def _trains(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return bool(_TRAINING.search(name))
    return isinstance(node, (ast.For, ast.While))


def _conditions(error: BaseException) -> Iterator[str]:
    """The user's lines in an exception's traceback, and the conditions around them."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not is_users(file):
            continue
        yield linecache.getline(file, line)
        tree = syntax_tree(file)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, (ast.If, ast.Assert)) and node.lineno <= line <= (node.end_lineno or node.lineno):
                yield ast.unparse(node.test)
                yield from _meaning(node.test, tree)


def _meaning(test: ast.expr, tree: ast.Module | None) -> Iterator[str]:
    """The values assigned to the names in a condition."""
    names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets):
            yield ast.unparse(node.value)


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    for _ in range(8):
        if link is None:
            return
        yield link
        link = link.__cause__ or link.__context__
