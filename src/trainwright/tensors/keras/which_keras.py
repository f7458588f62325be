"""Which Keras is checked: Keras 3 (`keras3.py`), or Keras 2 (the package tf_keras; `keras2.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainwright.tensors.keras.keras3 import Keras3

_now = Keras3()


def version() -> Keras3:
    """The Keras that is checked."""
    return _now


def use_version_of(model: Any) -> None:
    """Switch to the Keras version of this model."""
    global _now
    if package_of(model) == "tf_keras":
        from trainwright.tensors.keras.keras2 import Keras2

        _now = Keras2()
    else:
        _now = Keras3()


def package_of(value: Any) -> str:
    """The package of a Keras object or of a class derived from one: keras, tf_keras; empty for others."""
    packages = (k.__module__.partition(".")[0] for k in type(value).__mro__)
    return next((p for p in packages if p in ("keras", "tf_keras")), "")


class _UsedKeras:
    """The checked Keras, under Keras 3 names."""

    def __init__(self, *inner: str) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = _now.module
        for step in (*self._inner, name):
            found = getattr(found, step)
        return found


keras: Any = _UsedKeras()
ops: Any = _UsedKeras("ops")


def schedule_changed(schedule: Any, factor: float | None, rate: float | None) -> Any:
    """A schedule with a scaled rate or another rate."""
    base: Any = keras.optimizers.schedules.LearningRateSchedule

    class Changed(base):
        def __call__(self, step: Any) -> Any:
            if rate is not None:
                return rate
            return schedule(step) * (1.0 if factor is None else factor)

        def get_config(self) -> Mapping[str, Any]:
            return {}

    return Changed()
