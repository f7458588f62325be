"""The entry point: while a script is checked, the CPU stands in for missing devices that it asks for.

A script that ended before its training because it was told that there is no GPU runs with another answer.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import wrapt

from trainwright.core import Redirected
from trainwright.seams.devices.frameworks import PATCHES
from trainwright.seams.devices.redirection import KINDS, Redirection, current, going_on
from trainwright.seams.failures.blame import chain_of
from trainwright.seams.listening.doors import standing, take_away
from trainwright.seams.source.places import is_users
from trainwright.seams.source.written import syntax_tree

# Environment variables that hide GPUs from the frameworks if set before import.
_HIDING = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
# The variables that torchrun sets for single-process training.
LAUNCHED = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}  # fmt: skip
# Our modules that compare torch functions by identity, and need the originals.
_KNOWING = ("trainwright.seams.torch.observer", "trainwright.seams.torch.graph", "trainwright.look.evaluation")
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


class Devices:
    """What a script is told about devices, and whether its answers must differ from the truth.

    Args:
        forced: do not use existing devices.
    """

    def __init__(self, *, forced: bool = False) -> None:
        self.redirection = Redirection(forced=forced)
        self._modules = set(sys.modules)
        self._argv, self._folder = [*sys.argv], Path.cwd()

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Give scripts these answers while the context lasts."""
        kept = dict(os.environ)
        self._argv, self._folder = [*sys.argv], Path.cwd()
        if self.redirection.forced:
            os.environ.update(_HIDING)
        try:
            with going_on(self.redirection):
                _install()
                if "torch" in sys.modules:
                    _patch_torch(sys.modules["torch"])
                yield
        finally:
            _replaced.close()
            if self.redirection.forced or self.redirection.alone:
                for name in (*_HIDING, *LAUNCHED):
                    os.environ.pop(name, None)
                    if name in kept:
                        os.environ[name] = kept[name]

    @property
    def seen(self) -> Redirected | None:
        """For the report: the missing devices that the script asks for."""
        return self.redirection.seen

    @property
    def remarks(self) -> list[str]:
        """Remarks about devices if an exception ended the script before training."""
        return list(dict.fromkeys(self.redirection.remarks))

    def starts_anew(self, error: BaseException | None) -> bool:
        """Whether a script that ended before training should run once more with a different answer."""
        redirection = self.redirection
        if error is not None and any(_LACKING.search(str(one)) for one in chain_of(error)):
            if redirection.begun or not redirection.absent:  # nothing more can be done
                return False
            redirection._begin()
        elif error is not None and _lacks_launcher(error):
            redirection.alone = True
            redirection.ask_for("torchrun")
            os.environ.update({k: v for k, v in LAUNCHED.items() if k not in os.environ})
        elif ended_for_want(redirection, error):
            redirection.pretends = frozenset(list(redirection.questions)[:1])
            redirection.questions.clear()
        else:
            return False
        self.forget_script()
        return True

    def forget_script(self) -> None:
        """Make user modules import again, and frameworks choose their device again, from the original state."""
        sys.argv = self._argv
        os.chdir(self._folder)
        for name in set(sys.modules) - self._modules:
            if is_users(getattr(sys.modules[name], "__file__", None) or "<"):
                del sys.modules[name]
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            distributed.destroy_process_group()
        if state := sys.modules.get("accelerate.state"):
            state.AcceleratorState._reset_state(reset_partial_state=True)
            state.GradientState._reset_state()


_replaced = contextlib.ExitStack()


@functools.cache
def _install() -> None:
    wrapt.register_post_import_hook(_patch_torch, "torch")
    for module, patch in PATCHES.items():
        wrapt.register_post_import_hook(patch, module)


def _patch_torch(torch: Any) -> None:
    """Patch everything in torch, for missing devices."""
    redirection = current()
    if redirection is None or redirection.absent & set(KINDS):
        return
    redirection.absent |= _absent(torch, redirection.forced)
    if not redirection.absent:
        return
    for name in _KNOWING:
        importlib.import_module(name)
    # These import torch.
    from trainwright.seams.devices import cuda, mixed, precision, tensors

    with standing(_replaced):
        for module in (tensors, cuda, precision, mixed):
            module.patch()

    def begun() -> None:
        """A missing device was requested: from now on, any function may request it."""
        with standing(_replaced):
            tensors.patch_factories()
            mixed.patch_layers()
            _run_eagerly(torch)

    redirection.first_asked.append(begun)


def _run_eagerly(torch: Any) -> None:
    stance: Callable[[str], Any] | None = getattr(torch.compiler, "set_stance", None)
    if stance is not None:  # compiling for a CPU takes minutes and is not what would run
        stance("force_eager")
        take_away(lambda: stance("default"))


def _absent(torch: Any, forced: bool) -> frozenset[str]:
    if forced:
        return frozenset(KINDS)
    if torch.cuda.device_count() > 0:  # queries the driver's library, so the process can still fork
        return frozenset()
    here = {
        "cuda": False,
        "mps": torch.backends.mps.is_available(),
        "xpu": hasattr(torch, "xpu") and torch.xpu.is_available(),
    }
    return frozenset(kind for kind, found in here.items() if not found)


def _lacks_launcher(error: BaseException) -> bool:
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
