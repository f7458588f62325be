"""The trainings that a script can reach: how to make each one's adapter, and which later trainings stay unwalked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from trainwright.adapters.base import Adapter
from trainwright.seams.listening.seen import Seen
from trainwright.seams.source.later_calls import fit_lines
from trainwright.walk.closing import not_walked

if TYPE_CHECKING:
    from trainwright.adapters.keras.adapter import KerasAdapter

A_co = TypeVar("A_co", bound=Adapter, covariant=True)


@dataclass(frozen=True)
class PendingTraining(Generic[A_co]):
    """A training that is about to begin."""

    make: Callable[[], A_co]
    """Makes its adapter; the framework is imported by then."""
    not_walked: str = ""
    """The remark on the script's later trainings, because a check leaves the script at the first."""


def of_model(model: Any, frame: FrameType, given: Mapping[str, Any], seen: Seen) -> PendingTraining[KerasAdapter]:
    """`model.fit(…)` of Keras."""

    def make() -> KerasAdapter:
        from trainwright.adapters.keras.adapter import KerasAdapter

        return KerasAdapter(model, given, frame, seen)

    return PendingTraining(make, _not_walked(frame, fit_lines(frame)))


def _not_walked(frame: FrameType, lines: Sequence[int]) -> str:
    return not_walked(frame.f_code.co_filename, lines)
