"""Repairs that several rules offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainwright.core.repair import Call, Repair, Seam


def use_from_scope(roles: Mapping[str, str]) -> Repair:
    """Use objects of the script's scope, by the expressions that reach them, in these roles of the Trainer."""

    def change(call: Call) -> Call:
        return call.replace(**{role: reach(call.scope or {}, path) for role, path in roles.items()})

    said = ", ".join(f"{path} as {role}" for role, path in roles.items())
    return Repair(f"use {said}", Seam.TRAINER, change)


def reach(scope: Mapping[str, Any], expression: str) -> Any:
    """The object that `name` or `name["key"]` reaches."""
    name, _, rest = expression.partition('["')
    return scope[name][rest.removesuffix('"]')] if rest else scope[name]


def scale_learning_rate(factor: float) -> Repair:
    """Multiply the learning rate of every group."""

    def change(call: Call) -> Call:
        call.tensors.set_learning_rate(call["optimizer"], factor=factor)
        return call

    return Repair(f"learning rate x {factor:g}", Seam.OPTIMIZER, change)
