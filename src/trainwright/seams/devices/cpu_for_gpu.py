"""The entry point: while a script is checked, the CPU stands in for missing devices that it asks for."""

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

# Environment variables that hide GPUs from the frameworks if set before import.
_HIDING = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
# Our modules that compare torch functions by identity, and need the originals.
_KNOWING = ("trainwright.seams.torch.watch", "trainwright.seams.torch.graph", "trainwright.seams.torch.evaluation")
NOT_FOR_REAL = (
    "It asks for a GPU, and there is none here: `run` trains for real, on the script's own device; "
    "`trainwright check` walks it on the CPU."
)


class Devices:
    """What a script is told about devices, and whether its answers must differ from the truth.

    Args:
        redirects: whether the CPU may stand in; not if the script trains for real.
        forced: do not use existing devices.
    """

    def __init__(self, *, redirects: bool, forced: bool = False) -> None:
        self.redirection = Redirection(forced=forced) if redirects else None
        self._modules = set(sys.modules)
        self._argv, self._folder = [*sys.argv], Path.cwd()

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Give scripts these answers while the context lasts."""
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
        """For the report: the missing devices that the script asks for."""
        return self.redirection.seen if self.redirection is not None else None

    @property
    def own_error(self) -> Exception | None:
        """An exception in this code that is not the script's fault."""
        return self.redirection.own_error if self.redirection is not None else None

    def remarks(self, error: BaseException) -> list[str]:
        """Remarks about devices if an exception ended the script before training."""
        if self.redirection is not None:
            return list(dict.fromkeys(self.redirection.remarks))
        return [NOT_FOR_REAL] if lacks_device(error) else []

    def starts_anew(self, error: BaseException | None) -> bool:
        """Whether a script that ended before training should run once more with a different answer."""
        redirection = self.redirection
        if redirection is None:
            return False
        if error is not None and lacks_device(error):
            if redirection.begun or not redirection.absent:  # nothing more can be done
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


_patches = Patches()


@functools.cache
def _install() -> None:
    wrapt.register_post_import_hook(_patch_torch, "torch")
    for module, patch in PATCHES:
        wrapt.register_post_import_hook(patch, module)


def _patch_torch(torch: Any) -> None:
    """Patch everything in torch, for missing devices. Errors in this code are recorded as our own."""
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
    """A missing device was requested: from now on, any function may request it."""
    patch_factories(torch, _patches)
    patch_losses(torch, _patches)
    stance: Callable[[str], Any] | None = getattr(torch.compiler, "set_stance", None)
    if stance is not None:  # compiling for a CPU takes minutes and is not what would run
        stance("force_eager")
        _patches.later(lambda: stance("default"))


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
