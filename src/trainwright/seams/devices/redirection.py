"""Which missing devices a script asks for, what it is told about them, and on which of them
tensors' memory would be, as far as that is certain."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from trainwright.core import Redirected
from trainwright.seams.listening.doors import put_in
from trainwright.seams.source.places import is_users

# The kinds of devices that the CPU can stand in for, by torch's names.
KINDS = ("cuda", "mps", "xpu")
_HALVES = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16"}
_NO_GPU = "there is no GPU here"
_KEPT_AWAY = "--device cpu keeps to the CPU"

_current: list[Redirection] = []
GPU, HOST = "cuda:0", "cpu"
# Keep this many entries before dropping those of freed memory.
_SWEPT_AT = 4096


class Storages:
    """A record by storage, which views, detached tensors and parameters share with their source."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, str]] = {}
        self.moved = False
        """Whether a module was moved to the GPU."""
        self.unsure = False
        """Whether tensors may be on the GPU unobserved: through a library, a file, or a default."""

    def put(self, tensor: Any, device: str) -> Any:
        """Record the tensor's device and return the tensor."""
        storage = _storage(tensor)
        if storage is not None:
            if len(self._kept) > _SWEPT_AT:
                self._kept = {k: kept for k, kept in self._kept.items() if not kept[0].expired()}
            weak = importlib.import_module("torch.multiprocessing.reductions").StorageWeakRef
            self._kept[storage._cdata] = (weak(storage), device)
        return tensor

    def forget(self, tensor: Any) -> None:
        """Mark a tensor's device as unknown."""
        storage = _storage(tensor)
        if storage is not None:
            self._kept.pop(storage._cdata, None)

    def device(self, tensor: Any) -> str | None:
        """The device where a tensor would be; None if unknown."""
        storage = _storage(tensor)
        kept = self._kept.get(storage._cdata) if storage is not None else None
        return kept[1] if kept is not None and not kept[0].expired() else None

    def on_gpu(self, tensor: Any) -> bool:
        """Whether a tensor would certainly be on the GPU."""
        return self.device(tensor) == GPU


def _storage(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse, meta, or a tracer's tensor
        return None


@dataclass
class Redirection:
    """The devices of one check: which are missing, what was requested, and what was answered.

    Args:
        forced: do not use existing devices.
    """

    forced: bool = False
    absent: frozenset[str] = frozenset()
    """Missing kinds among `KINDS`, once torch is imported."""
    asked: dict[str, None] = field(default_factory=dict)
    """Devices that the script needs, by name."""
    halved: dict[str, None] = field(default_factory=dict)
    """fp16, bf16: the precision that the script would use on such a device."""
    further: dict[str, None] = field(default_factory=dict)
    """Other features that only such a device has: nccl, tf32, flash_attention_2."""
    questions: dict[str, str] = field(default_factory=dict)
    """Kinds that the user's code asked about and was told are missing, and the first file that asked."""
    pretends: frozenset[str] = frozenset()
    """Kinds that the user's code is told exist, because without them it ended before training."""
    alone: bool = False
    """Whether a launcher's variables were set for a single process."""
    remarks: list[str] = field(default_factory=list)
    """Sentences about what cannot be checked without such a device."""
    storages: Storages = field(default_factory=Storages)
    first_asked: list[Callable[[], None]] = field(default_factory=list)
    """Called once, when a missing device is requested."""

    begun: bool = False
    """Whether something was requested without which the script would have stopped."""
    moving: bool = False
    """Whether a tensor is being moved: under a mode, torch calls the patched `to` again with the CPU as its device."""

    def lacks(self, device: Any) -> bool:
        """Whether a device, in any of torch's notations, is missing."""
        return kind_of(device) in self.absent

    def ask(self, device: Any = "cuda") -> None:
        """Record a request for a missing device."""
        self.asked[kind_of(device) or str(device)] = None
        self._begin()

    def on_cpu(self, device: Any) -> Any:
        """The CPU in place of a missing device, which is then recorded as requested; any other as it is."""
        if not self.lacks(device):
            return device
        self.ask(device)
        return "cpu"

    def ask_for_half(self, dtype: Any, *, needed: bool = False) -> None:
        """Record that the script would use half precision on the device.

        Args:
            needed: without such a device, it would end or do something else.
        """
        if (word := half_name(dtype)) is not None:
            self.halved[word] = None
            if needed:
                self._begin()

    def ask_for(self, word: str) -> None:
        """Record a request for another missing feature."""
        self.further[word] = None
        self._begin()

    @contextmanager
    def one_move(self) -> Iterator[None]:
        """Take the calls within as parts of one move of a tensor."""
        self.moving = True
        try:
            yield
        finally:
            self.moving = False

    def _begin(self) -> None:
        self.begun = True
        waiting, self.first_asked[:] = [*self.first_asked], []
        for told in waiting:
            told()

    def question(self, kind: str, frame: Any) -> bool:
        """The answer to user code that asks whether such a device exists; libraries get the true answer."""
        if not is_users(frame.f_code.co_filename) or kind not in self.absent:
            return False
        if kind not in self.pretends:
            self.questions.setdefault(kind, frame.f_code.co_filename)
        elif not self.begun:
            self.ask(kind)
        return kind in self.pretends

    @property
    def seen(self) -> Redirected | None:
        """For the report: what was requested; None if the script can do without, or a GPU of this machine runs it."""
        if not self.begun or not (self.forced or self.asked or "cuda" in self.absent):
            return None
        asked = (*self.asked, *self.halved, *self.further)
        why = _KEPT_AWAY if self.forced else _NO_GPU
        return Redirected(asked=asked, precision="fp32" if self.halved else None, why=why)


def current() -> Redirection | None:
    """The redirection of the current check, if any."""
    return _current[-1] if _current else None


@contextmanager
def going_on(redirection: Redirection) -> Iterator[None]:
    """Make this the current redirection while the context lasts."""
    _current.append(redirection)
    try:
        yield
    finally:
        _current.remove(redirection)


def kind_of(device: Any) -> str | None:
    """cuda, mps, cpu and so on; None if it does not name a device."""
    if isinstance(device, str):
        return device.partition(":")[0]
    if isinstance(device, int) and not isinstance(device, bool):
        return "cuda"
    kind = getattr(device, "type", None)
    return kind if isinstance(kind, str) and type(device).__name__ == "device" else None


def half_name(dtype: Any) -> str | None:
    """fp16 or bf16, for a dtype or its name; None for any other."""
    return _HALVES.get(str(dtype).removeprefix("torch."))


def lacking_cuda() -> Redirection | None:
    """The current redirection, if CUDA is missing; without CUDA, nothing else is redirected in torch either."""
    found = current()
    return found if found is not None and "cuda" in found.absent else None


def lacking() -> Redirection | None:
    """The current redirection, if there is no GPU for the script."""
    found = current()
    if found is None:
        return None
    return found if (set(KINDS) <= found.absent if "torch" in sys.modules else found.forced) else None


def redirect_calls(
    original: Callable[..., Any], instead: Callable[..., Any], asked: Callable[[], Redirection | None] = lacking_cuda
) -> Callable[..., Any]:
    """A function that another answers while a check redirects: it gets the redirection, the original and the arguments."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        redirection = asked()
        if redirection is None:
            return original(*args, **kwargs)
        return instead(redirection, original, *args, **kwargs)

    return call


def redirect(owner: Any, name: str, instead: Callable[..., Any]) -> Any:
    """Put a redirected function in a function's place, and return it."""
    put_in(owner, name, made := redirect_calls(getattr(owner, name), instead))
    return made
