"""A stand-in for an object that would send or write: it accepts every call and does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainwright.seams.failures.blame import of_pipeline

_HANDED_BACK = ("connect", "connect_configuration", "prepare")


class Nothing:
    """Accepts every call, attribute and item, and returns itself; as text or a path it is empty."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise of_pipeline(AttributeError(name))
        if name in _HANDED_BACK:  # ClearML's `args = task.connect(args)`
            return lambda given=None, *args, **kwargs: given
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Does nothing."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and callable(args[0]):  # as a decorator
            return args[0]
        return self

    def __getitem__(self, key: Any) -> Any:
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        """Does nothing."""

    def __delitem__(self, key: Any) -> None:
        """Does nothing."""

    def __contains__(self, key: Any) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *raised: object) -> None:
        """Lets exceptions propagate."""

    def __str__(self) -> str:
        return ""

    def __fspath__(self) -> str:
        return ""

    def __int__(self) -> int:
        return 0

    def __float__(self) -> float:
        return 0.0

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        return Nothing, ()
