"""Where objects were built, read from the source around a call: for objects built before listening began."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from torch import nn

from trainwright.core import Place
from trainwright.seams.listening.seen import BuiltObjects, Construction, Loading
from trainwright.seams.source.places import callers, definition_place, is_cell, is_users, show
from trainwright.seams.source.written import assignment_place, attribute_place, call_node, names_of, syntax_tree


def note_modules(seen: BuiltObjects, model: nn.Module, frame: FrameType) -> None:
    """Record the lines that built a model and its layers, and whether it came from a checkpoint."""
    built = _construction(model, frame)
    if built is not None:
        seen.modules.setdefault(model, built.place)
        _note_listed(seen, model, built.frame_file, built.line)
    elif (place := definition_place(type(model).__init__)) is not None:
        seen.modules.setdefault(model, place)
    for module in model.modules():
        for name, child in module._modules.items():
            place = _attribute_place(module, name) if child is not None else None
            if place is not None and child is not None:
                seen.modules.setdefault(child, place)
                _note_listed(seen, child, place.file, place.line)
            elif child is not None and module in seen.modules:
                seen.modules.setdefault(child, seen.modules[module])
        source = getattr(module, "name_or_path", "")
        if isinstance(source, str) and source and module not in seen.loadings:
            seen.loadings[module] = Loading(fresh=frozenset())


def note_built(
    seen: BuiltObjects,
    frame: FrameType,
    optimizers: Iterable[Any] = (),
    schedules: Iterable[Any] = (),
    loaders: Iterable[Any] = (),
) -> None:
    """Record the lines that built optimizers, schedules and loaders; an unknown optimizer line becomes the call's."""
    here = Construction(
        name="",
        frame_file=frame.f_code.co_filename,
        line=frame.f_lineno,
        place=Place(show(frame.f_code.co_filename), frame.f_lineno),
        keywords=frozenset(),
    )
    for kept, values in ((seen.optimizers, optimizers), (seen.schedules, schedules), (seen.loaders, loaders)):
        for value in values:
            built = _construction(value, frame)
            if built is not None or kept is not seen.loaders:
                kept.setdefault(value, built or here)


def note_trainer(seen: BuiltObjects, trainer: Any, frame: FrameType) -> None:
    """Record the lines that built a Hugging Face Trainer and its arguments."""
    for value in (trainer, trainer.args):
        built = _construction(value, frame)
        if built is None and value is trainer.args and id(trainer) in seen.constructions:
            outer = seen.constructions[id(trainer)]
            built = _at(outer.frame_file, outer.line, type(value).__name__)
        if built is not None:
            seen.constructions.setdefault(id(value), built)


def _construction(value: Any, frame: FrameType) -> Construction | None:
    """The line that bound an object to a name that the caller uses for it."""
    name = type(value).__name__
    for around in [frame, *callers(frame)]:
        for known in names_of(value, around):
            for file, before in _sources(around):
                place = assignment_place(file, known, before)
                if place is not None and (built := _at(file, place.line, name)) is not None:
                    return built
    return None


def _sources(frame: FrameType) -> Iterator[tuple[str, int]]:
    """The files that may bind a frame's names, each up to a line: in a notebook all cells, the last first."""
    here = frame.f_code.co_filename
    yield here, frame.f_lineno
    if is_cell(here):
        for file in reversed([f for f in linecache.cache if is_cell(f) and f != here]):
            yield file, sys.maxsize


def _at(file: str, line: int, name: str) -> Construction | None:
    call = call_node(file, line, name) or call_node(file, line)
    if call is None:
        return None
    keywords = frozenset(k.arg for k in call.keywords if k.arg)
    return Construction(
        name=name, frame_file=file, line=call.lineno, place=Place(show(file), call.lineno), keywords=keywords
    )


def _attribute_place(owner: nn.Module, name: str) -> Place | None:
    """The line in a user's class that assigns an attribute."""
    for kind in type(owner).__mro__:
        code = getattr(vars(kind).get("__init__"), "__code__", None)
        if code is not None and is_users(code.co_filename):
            place = attribute_place(code.co_filename, kind.__name__, name)
            if place is not None:
                return place
    return None


def _note_listed(seen: BuiltObjects, module: nn.Module, file: str, line: int) -> None:
    """Record the layers in a list of layers, each at its own line of the call that lists them."""
    if not isinstance(module, nn.Sequential) or syntax_tree(file) is None:
        return
    call = call_node(file, line, type(module).__name__)
    children = list(module)
    if call is None or len(call.args) != len(children) or any(isinstance(a, ast.Starred) for a in call.args):
        return
    for child, argument in zip(children, call.args):
        seen.modules.setdefault(child, Place(show(file), argument.lineno))
