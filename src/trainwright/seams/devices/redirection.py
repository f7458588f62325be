"""What a script asks of devices that are not here, and what it is told of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from trainwright.core.report import Redirected
from trainwright.seams.devices.places import Storages
from trainwright.seams.source.places import is_users

# The kinds of devices that the CPU stands in for, by torch's names.
KINDS = ("cuda", "mps", "xpu")
_HALVES = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16"}
_NO_GPU = "there is no GPU here"
_KEPT_AWAY = "--device cpu keeps to the CPU"

_current: list[Redirection] = []


@dataclass
class Redirection:
    """The devices of one check: which are not here, what was asked of them, and what was answered.

    Args:
        forced: devices that are here are not to be used.
    """

    forced: bool = False
    absent: frozenset[str] = frozenset()
    """Of `KINDS`, once torch is imported."""
    asked: dict[str, None] = field(default_factory=dict)
    """Devices that the script cannot do without, by name."""
    halved: dict[str, None] = field(default_factory=dict)
    """fp16, bf16: what the script would compute in on such a device."""
    further: dict[str, None] = field(default_factory=dict)
    """What else only such a device has: nccl, tf32, flash_attention_2."""
    questions: dict[str, str] = field(default_factory=dict)
    """Kinds that the user's code asked after and was told not to be there, and the file that asked first."""
    pretends: frozenset[str] = frozenset()
    """Kinds that the user's code is told to be there: without them it ended before training."""
    alone: bool = False
    """A launcher's variables were set as for its only process."""
    remarks: list[str] = field(default_factory=list)
    """What cannot be checked without such a device, in sentences."""
    storages: Storages = field(default_factory=Storages)
    first_asked: list[Callable[[], None]] = field(default_factory=list)
    """Called once, when a device that is not here is asked for."""

    begun: bool = False
    """Something was asked for without which the script would not have gone on."""
    own_error: Exception | None = None
    """What failed here, and is no fault of the script's."""

    def lacks(self, device: Any) -> bool:
        """Whether a device, by any of torch's ways to name one, is not here."""
        return kind_of(device) in self.absent

    def ask(self, device: Any = "cuda") -> None:
        """The script asks for a device that is not here."""
        self.asked[kind_of(device) or str(device)] = None
        self._begin()

    def ask_for_half(self, dtype: Any, *, needed: bool = False) -> None:
        """The script would compute in half precision there.

        Args:
            needed: without such a device it would end, or do something else.
        """
        if (word := half_name(dtype)) is not None:
            self.halved[word] = None
            if needed:
                self._begin()

    def ask_for(self, word: str) -> None:
        """The script asks for something else that is not here."""
        self.further[word] = None
        self._begin()

    def _begin(self) -> None:
        self.begun = True
        waiting, self.first_asked[:] = [*self.first_asked], []
        for told in waiting:
            told()

    def question(self, kind: str, frame: Any) -> bool:
        """What the user's code is told when it asks whether there is such a device; a library hears the truth."""
        if not is_users(frame.f_code.co_filename) or kind not in self.absent:
            return False
        if kind not in self.pretends:
            self.questions.setdefault(kind, frame.f_code.co_filename)
        elif not self.begun:
            self.ask(kind)
        return kind in self.pretends

    @property
    def seen(self) -> Redirected | None:
        """For the report: what was asked for; None where the script can do without."""
        if not self.begun:
            return None
        asked = (*self.asked, *self.halved, *self.further)
        why = _KEPT_AWAY if self.forced else _NO_GPU
        return Redirected(asked=asked, precision="fp32" if self.halved else None, why=why)


def current() -> Redirection | None:
    """The redirection of the check that is going on, if any."""
    return _current[-1] if _current else None


@contextmanager
def going_on(redirection: Redirection) -> Iterator[None]:
    """While it lasts, this is the current one."""
    _current.append(redirection)
    try:
        yield
    finally:
        _current.remove(redirection)


def kind_of(device: Any) -> str | None:
    """cuda, mps, cpu and so on; None for what names no device."""
    if isinstance(device, str):
        return device.partition(":")[0]
    if isinstance(device, int) and not isinstance(device, bool):
        return "cuda"
    kind = getattr(device, "type", None)
    return kind if isinstance(kind, str) and type(device).__name__ == "device" else None


def half_name(dtype: Any) -> str | None:
    """fp16 or bf16, for a dtype or its name; None for any other."""
    return _HALVES.get(str(dtype).removeprefix("torch."))


def lacking() -> Redirection | None:
    """The current redirection, if there is no GPU for the script."""
    found = current()
    return found if found is not None and lacks_gpu(found) else None


def lacks_gpu(redirection: Redirection) -> bool:
    """Whether none of the devices is there that libraries call a GPU."""
    if "torch" not in sys.modules:
        return redirection.forced
    return set(KINDS) <= redirection.absent
