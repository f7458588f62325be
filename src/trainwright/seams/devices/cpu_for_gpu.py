"""The one seam: while a script is checked, the CPU stands in for devices that it asks for and that are not here."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import wrapt

from trainwright.core.report import Redirected
from trainwright.seams.devices.cuda import patch_cuda, patch_questions
from trainwright.seams.devices.endings import ended_for_want, lacks_device, lacks_launcher
from trainwright.seams.devices.frameworks import PATCHES
from trainwright.seams.devices.mixed import patch_losses, patch_mixed
from trainwright.seams.devices.patching import Patches
from trainwright.seams.devices.precision import LAUNCHED, patch_parallel, patch_precision
from trainwright.seams.devices.redirection import KINDS, Redirection, current, going_on
from trainwright.seams.devices.tensors import patch_factories, patch_tensors
from trainwright.seams.source.places import is_users

# What hides a machine's GPUs from the frameworks, where it is set before they are imported.
_HIDING = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
# Ours that know functions of torch by identity: they are to know them as they are.
_KNOWING = ("trainwright.seams.torch.watch", "trainwright.seams.torch.graph", "trainwright.seams.torch.evaluation")
NOT_FOR_REAL = (
    "It asks for a GPU, and there is none here: `run` trains for real, on the script's own device; "
    "`trainwright check` walks it on the CPU."
)


class Devices:
    """What a script is told of devices, and whether it has to be told something else.

    Args:
        redirects: the CPU may stand in: not where the script trains for real.
        forced: devices that are here are not to be used.
    """

    def __init__(self, *, redirects: bool, forced: bool = False) -> None:
        self.redirection = Redirection(forced=forced) if redirects else None
        self._patches = Patches()
        self._modules = set(sys.modules)
        self._argv, self._folder = [*sys.argv], Path.cwd()

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """While it lasts, scripts are told so."""
        if self.redirection is None:
            yield
            return
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
            _patches.put_back()
            if self.redirection.forced or self.redirection.alone:
                for name in (*_HIDING, *LAUNCHED):
                    os.environ.pop(name, None)
                    if name in kept:
                        os.environ[name] = kept[name]

    @property
    def seen(self) -> Redirected | None:
        """For the report: what the script asks for that is not here."""
        return self.redirection.seen if self.redirection is not None else None

    @property
    def own_error(self) -> Exception | None:
        """What failed here, and is no fault of the script's."""
        return self.redirection.own_error if self.redirection is not None else None

    def remarks(self, error: BaseException) -> list[str]:
        """What is to be said of devices where an exception ended the script before training."""
        if self.redirection is not None:
            return list(dict.fromkeys(self.redirection.remarks))
        return [NOT_FOR_REAL] if lacks_device(error) else []

    def starts_anew(self, error: BaseException | None) -> bool:
        """Whether a script that ended before training is to be run once more, with what it is told from now on."""
        redirection = self.redirection
        if redirection is None:
            return False
        if error is not None and lacks_device(error):
            if redirection.begun or not redirection.absent:  # everything was done that can be
                return False
            redirection._begin()
        elif error is not None and lacks_launcher(error):
            redirection.alone = True
            redirection.ask_for("torchrun")
            os.environ.update({k: v for k, v in LAUNCHED.items() if k not in os.environ})
        elif ended_for_want(redirection, error):
            redirection.pretends = frozenset(list(redirection.questions)[:1])
            redirection.questions.clear()
        else:
            return False
        self._forget_script()
        return True

    def _forget_script(self) -> None:
        """Let the user's modules be imported anew, and frameworks choose their device anew, from where it began."""
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


_patches = Patches()


@functools.cache
def _install() -> None:
    wrapt.register_post_import_hook(_patch_torch, "torch")
    for module, patch in PATCHES:
        wrapt.register_post_import_hook(patch, module)


def _patch_torch(torch: Any) -> None:
    """Everything of torch's, where a device is not here. An error is ours, and kept as such."""
    redirection = current()
    if redirection is None or redirection.absent & set(KINDS):
        return
    try:
        _patch_all(torch, redirection)
    except Exception as error:
        redirection.own_error = error
        raise


def _patch_all(torch: Any, redirection: Redirection) -> None:
    redirection.absent |= _absent(torch, redirection.forced)
    if not redirection.absent:
        return
    for module in _KNOWING:
        importlib.import_module(module)
    for patch in (patch_tensors, patch_cuda, patch_questions, patch_precision, patch_parallel, patch_mixed):
        patch(torch, _patches)
    redirection.first_asked.append(lambda: _begun(torch))


def _begun(torch: Any) -> None:
    """A device was asked for that is not here: from now on it may be by any function."""
    patch_factories(torch, _patches)
    patch_losses(torch, _patches)
    stance: Callable[[str], Any] | None = getattr(torch.compiler, "set_stance", None)
    if stance is not None:  # code for a CPU takes minutes to compile, and is not what would run
        stance("force_eager")
        _patches.later(lambda: stance("default"))


def _absent(torch: Any, forced: bool) -> frozenset[str]:
    if forced:
        return frozenset(KINDS)
    if torch.cuda.device_count() > 0:  # asks the driver's library, which does not keep a process from forking
        return frozenset()
    here = {
        "cuda": False,
        "mps": torch.backends.mps.is_available(),
        "xpu": hasattr(torch, "xpu") and torch.xpu.is_available(),
    }
    return frozenset(kind for kind, found in here.items() if not found)
