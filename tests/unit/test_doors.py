"""Doors: a function of a framework is replaced once, however many watch there."""

import contextlib
import sys
from types import FrameType, SimpleNamespace
from typing import Any

from trainwright.seams.listening.doors import calling_frame, put_in, replaced, standing, watch_classes, watch_door


class Base:
    def step(self) -> str:
        """Advance."""
        return "base"


def test_watchers_stand_at_one_door_the_last_one_outermost() -> None:
    kind, original = type("Kind", (Base,), {"step": Base.step}), Base.step
    watch_door(kind, "step", lambda go_on, self: f"inner({go_on(self)})")
    door = kind.step
    watch_door(kind, "step", lambda go_on, self: f"outer({go_on(self)})")
    assert kind().step() == "outer(inner(base))"
    assert kind.step is door
    assert door.__wrapped__ is original
    assert door.__doc__ == "Advance."


def test_an_inherited_door_is_not_the_classes_own() -> None:
    kind = type("Kind", (Base,), {"step": Base.step})
    below = type("Below", (kind,), {})
    watch_door(kind, "step", lambda go_on, self: f"kind({go_on(self)})")
    watch_door(below, "step", lambda go_on, self: f"below({go_on(self)})")
    assert kind().step() == "kind(base)"
    assert below().step() == "below(kind(base))"


def test_a_function_is_replaced_wherever_it_is_known() -> None:
    def load() -> str:
        return "loaded"

    one, other, foreign = (SimpleNamespace(load=f) for f in (load, load, lambda: "foreign"))
    watch_door(one, "load", lambda go_on: go_on().upper(), also=[other, foreign, None])
    assert (one.load(), other.load(), foreign.load()) == ("LOADED", "LOADED", "foreign")


def test_each_class_with_a_method_of_its_own_has_a_door_those_to_come_included() -> None:
    told: list[dict[str, Any]] = []

    class Kind(Base):
        def step(self) -> str:
            return "kind"

        def __init_subclass__(cls, **kwargs: Any) -> None:
            super().__init_subclass__()
            told.append(kwargs)

    class Inherits(Kind):
        pass

    class Own(Inherits):
        def step(self) -> str:
            return f"own of {super().step()}"

    seen: list[str] = []

    def note(go_on: Any, self: Any) -> Any:
        seen.append(type(self).__name__)
        return go_on(self)

    watch_classes(Kind, "step", note)

    class Later(Kind, kind="later"):
        def step(self) -> str:
            return "later"

    assert [kind().step() for kind in (Inherits, Own, Later)] == ["kind", "own of kind", "later"]
    assert told == [{}, {}, {"kind": "later"}]
    assert seen == ["Inherits", "Own", "Own", "Later"]


def test_the_frame_that_called_the_door_is_found_from_the_watcher() -> None:
    kind, found = type("Kind", (Base,), {"step": Base.step}), list[FrameType]()

    def note(go_on: Any, self: Any) -> Any:
        found.append(calling_frame())
        return go_on(self)

    watch_door(kind, "step", note)
    watch_door(kind, "step", lambda go_on, self: go_on(self))
    kind().step()
    assert found == [sys._getframe()]


def test_what_comes_meanwhile_goes_and_what_stood_before_stays() -> None:
    kind, original = type("Kind", (Base,), {"step": Base.step}), Base.step
    below = type("Below", (kind,), {})
    watch_door(kind, "step", lambda go_on, self: f"stays({go_on(self)})")
    door = kind.step
    with contextlib.ExitStack() as run, standing(run):
        watch_door(kind, "step", lambda go_on, self: f"goes({go_on(self)})")
        watch_door(below, "step", lambda go_on, self: f"below({go_on(self)})")
        put_in(kind, "__doc__", "Other.")
        watch_classes(kind, "step", lambda go_on, self: go_on(self))
        with standing(None):
            put_in(kind, "kept", True)
        assert (kind().step(), below().step()) == ("goes(stays(base))", "below(goes(stays(base)))")
    assert (kind().step(), below().step()) == ("stays(base)", "stays(base)")
    assert kind.step is door and door.__wrapped__ is original
    assert {"step", "__init_subclass__"} & {*vars(below), *vars(kind)} == {"step"}
    assert (kind.__doc__, kind.kept) == (None, True)  # type: ignore[attr-defined]


def test_a_door_that_was_taken_away_passes_its_calls_on() -> None:
    kind = type("Kind", (Base,), {"step": Base.step})
    with contextlib.ExitStack() as run, standing(run):
        watch_door(kind, "step", lambda go_on, self: "watched")
        held = kind.step
    assert held(kind()) == "base"


def test_values_are_in_place_while_the_context_lasts_however_it_is_left() -> None:
    kind = type("Kind", (Base,), {})
    with contextlib.suppress(StopIteration), replaced([(kind, "step", 1), (Base, "step", 2)]):
        assert (kind.step, Base.step) == (1, 2)
        raise StopIteration
    assert "step" not in vars(kind)
    assert kind().step() == "base"
