"""Repairs that several rules offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainwright.core import Call, Repair, Role, Seam
from trainwright.stages import LossCall


def acting(does: str, seam: Seam, act: Callable[[Call], object]) -> Repair:
    """Change the objects of every call at a seam in place."""

    def change(call: Call) -> Call:
        act(call)
        return call

    return Repair(does, seam, change)


def on_model(does: str, act: Callable[[Any, Any], object], seam: Seam = Seam.TRAINER) -> Repair:
    """Change the model in place; `act` takes the tensor operations and the model."""
    return acting(does, seam, lambda call: act(call.tensors, call["model"]))


def on_optimizer(does: str, act: Callable[[Any, Any], object]) -> Repair:
    """Change the optimizer in place; `act` takes the tensor operations and the optimizer."""
    return acting(does, Seam.OPTIMIZER, lambda call: act(call.tensors, call["optimizer"]))


def at_loss(does: str, functions: str | tuple[str, ...], change: Callable[[Call], Call]) -> Repair:
    """Change the calls of these loss functions; those of others, of another head for example, stay as they are."""
    wanted = (functions,) if isinstance(functions, str) else functions
    return Repair(does, Seam.LOSS, lambda call: change(call) if call["function"] in wanted else call)


def use_from_scope(roles: Mapping[Role, str]) -> Repair:
    """Use objects from the script's scope, given by expressions, in these roles of the Trainer."""

    def change(call: Call) -> Call:
        return call.replace(**{role: reach(call.scope or {}, path) for role, path in roles.items()})

    said = ", ".join(f"{path} as {role}" for role, path in roles.items())
    return Repair(f"use {said}", Seam.TRAINER, change)


def reach(scope: Mapping[str, Any], expression: str) -> Any:
    """The object that `name` or `name["key"]` refers to."""
    name, _, rest = expression.partition('["')
    return scope[name][rest.removesuffix('"]')] if rest else scope[name]


def scale_learning_rate(factor: float) -> Repair:
    """Multiply the learning rate of every group."""
    return on_optimizer(
        f"{factor:.2g} times the learning rate",
        lambda tensors, optimizer: tensors.set_learning_rate(optimizer, factor=factor),
    )


def scale_parameters(factors: Mapping[str, float], seam: Seam) -> Repair:
    """Multiply these parameters, by name: once, or in a trial before its first step (Seam.OPTIMIZER)."""
    return on_model(
        "scale the weights to the framework's own standard deviation",
        lambda tensors, model: tensors.scale_parameters(model, dict(factors)),
        seam,
    )


def set_weight_decay(value: float) -> Repair:
    """Set the weight decay of every group."""
    return on_optimizer(
        f"a weight decay of {value:g}", lambda tensors, optimizer: tensors.set_weight_decay(optimizer, value)
    )


def change_batches(does: str, change: Callable[[dict[str, Any], Any], dict[str, Any]]) -> Repair:
    """Change every batch after the collator has formed it; `change` takes the batch and the tensor operations."""

    def wrap(call: Call) -> Call:
        return call.replace(collator=ChangedCollator(call["collator"], lambda batch: change(batch, call.tensors)))

    return Repair(does, Seam.TRAINER, wrap)


class ChangedCollator:
    """Forms batches like another collator, then changes them; otherwise it looks like the other one."""

    def __init__(self, collator: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self.collator, self.change = collator, change
        self.__name__ = getattr(collator, "__name__", type(collator).__name__)
        self.tokenizer = getattr(collator, "tokenizer", None)

    def __call__(self, items: list[Any]) -> dict[str, Any]:
        return self.change(dict(self.collator(items)))


def swap_activation(function: str, seen: LossCall) -> Repair:
    """Call another activation (identity for none) instead of the one whose result the loss gets."""
    module, where = seen.activation_module, seen.activation_called_at

    def change(call: Call) -> Call:
        # A function or module that the user's forward calls on several lines has a single name.
        here = call["module"] == module and call["where"] == where
        return call.replace(function=function) if here else call

    does = f"a {function} instead" if function != "identity" else "no activation"
    return Repair(f"{does} at {module}", Seam.ACTIVATION, change)


def standardise_activations(modules: tuple[str, ...], deviation: float = 1.0) -> Repair:
    """Standardize these activations' inputs to mean 0 and this deviation in every row."""

    def change(call: Call) -> Call:
        if call["module"] not in modules:
            return call
        return call.replace(values=call.tensors.standardise(call["values"]) * deviation)

    does = f"scale the inputs of {', '.join(modules[:3])} to mean 0 and standard deviation {deviation:g}"
    return Repair(does, Seam.ACTIVATION, change)


def unfreeze(names: Sequence[str], does: str) -> Repair:
    """Let the existing optimizer train these parameters."""
    return acting(does, Seam.OPTIMIZER, lambda call: call.tensors.unfreeze(call["model"], call["optimizer"], names))


def unfreeze_model() -> Repair:
    """Make all parameters trainable."""
    return on_model("make all parameters trainable", lambda tensors, model: tensors.unfreeze(model, None))


def rename_column(old: str, new: str) -> Repair:
    """Rename a column of the training and evaluation sets."""

    def change(call: Call) -> Call:
        roles = ("train_dataset", "eval_dataset")
        return call.replace(**{r: _renamed(call[r], old, new) for r in roles if call[r] is not None})

    return Repair(f"rename the column {old} to {new}", Seam.TRAINER, change)


def _renamed(data: Any, old: str, new: str) -> Any:
    if isinstance(data, dict):
        return type(data)({k: _renamed(v, old, new) for k, v in data.items()})
    if hasattr(data, "rename_column"):
        return data.rename_column(old, new) if old in (data.column_names or [old]) else data
    return RenamedRows(data, old, new)


class RenamedRows:
    """The rows of a map-style data set with one key renamed."""

    def __init__(self, data: Any, old: str, new: str) -> None:
        self.data, self.old, self.new = data, old, new

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {self.new if k == self.old else k: v for k, v in dict(self.data[index]).items()}


def leave_rows_out(role: str, total: int, rows: Sequence[int]) -> Repair:
    """Leave rows out of a set.

    Args:
        total: the number of rows of the set.
    """
    left_out = frozenset(rows)

    def change(call: Call) -> Call:
        def chosen(data: Any) -> Any:
            return call.tensors.choose_rows(data, [r for r in range(total) if r not in left_out])

        data = call[role]
        if type(data) is dict:
            return call.replace(**{role: {n: chosen(d) if len(d) == total else d for n, d in data.items()}})
        return call.replace(**{role: chosen(data)})

    return Repair(f"leave {len(rows)} rows out of the {role}", Seam.TRAINER, change)
