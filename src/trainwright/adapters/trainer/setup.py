"""A Hugging Face Trainer's hyperparameters, what it changes of rows, and the user's lines where each of its parts was written."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

import transformers
from torch import nn

from trainwright.adapters.data.reading import as_mapping
from trainwright.adapters.torch.optimizer import is_rate_written, optimizer_places
from trainwright.adapters.torch.setup import setup_facts
from trainwright.adapters.torch.words import TRAINER
from trainwright.core import Place
from trainwright.seams.listening.seen import BuiltObjects, Construction
from trainwright.seams.source.places import definition_place, is_users, place_of, show
from trainwright.seams.source.written import (
    assignment_place,
    call_line,
    config_place,
    evaluation_line,
    key_places,
    keyword_places,
    names_of,
)
from trainwright.stages import Argument, OverriddenMethod, SetupFacts
from trainwright.tensors.items import length

# The report's names for the parts of a Trainer, by argument name.
_ROLES = {
    "model": "model",
    "train_dataset": "train_dataset",
    "eval_dataset": "eval_dataset",
    "data_collator": "collator",
    "compute_metrics": "metrics",
    "compute_loss_func": "loss",
    "optimizers": "optimizer",
    "processing_class": "tokenizer",
    "tokenizer": "tokenizer",
    "args": "arguments",
}


def resolved_arguments(args: Any, written: frozenset[str]) -> dict[str, Argument]:
    """Every effective hyperparameter; `given` if the script wrote it."""
    found = {}
    for field in dataclasses.fields(args):
        value = getattr(args, field.name, None)
        if isinstance(value, (int, float, str, bool, type(None))):
            found[field.name] = Argument(value=_plain(value), given=field.name in written)
    return found


def _plain(value: Any) -> Any:
    return str(value.value) if hasattr(value, "value") else None if value is dataclasses.MISSING else value


def find_places(trainer: Any, frame: FrameType, seen: BuiltObjects) -> dict[str, Place]:
    """The user's lines, by role."""
    places: dict[str, Place] = {}
    built = seen.constructions.get(id(trainer))
    if built is not None:
        places |= _of_construction(built, trainer, frame)
    arguments = seen.constructions.get(id(trainer.args))
    if arguments is not None:
        places["arguments"] = arguments.place
        written = keyword_places(arguments.frame_file, arguments.line, given=arguments.keywords, end=arguments.end)
        places |= {name: place for name, (place, _) in written.items()}
    model = trainer.model
    if isinstance(model, nn.Module) and model in seen.modules:
        places["model"] = seen.modules[model]
        places |= config_place(model, frame.f_code.co_filename)
    if (metrics := definition_place(trainer.compute_metrics)) is not None:
        places["metrics"] = metrics
    optimizer = _unwrap(trainer.optimizer)
    if optimizer is not None and optimizer in seen.optimizers:
        places |= optimizer_places(optimizer, seen.optimizers[optimizer])
    if (mode := _mode_place(trainer)) is not None:
        places["mode_change"] = mode
    places |= _own_methods(trainer)
    places["train_call"] = place_of(frame)
    if limits := key_places(frame.f_code.co_filename, "max_length", frame.f_lineno):
        places["max_length"] = limits[-1]
    return places


def _own_methods(trainer: Any) -> dict[str, Place]:
    """The lines of methods that the user wrote for the trainer, model or optimizer, and of certain calls in them."""
    places: dict[str, Place] = {}
    owners = {"trainer": type(trainer), "model": type(trainer.model), "optimizer": type(_unwrap(trainer.optimizer))}
    for owner, role, method in (
        ("trainer", "training_step", "training_step"),
        ("trainer", "compute_loss", "compute_loss"),
        ("trainer", "create_optimizer", "create_optimizer"),
        ("model", "zero_grad", "zero_grad"),
        ("trainer", "create_scheduler", "create_scheduler"),
        ("optimizer", "optimizer_step", "step"),
    ):
        code = getattr(inspect.unwrap(getattr(owners[owner], method, None) or print), "__code__", None)
        if code is None or not is_users(code.co_filename):
            continue
        places[role] = Place(show(code.co_filename), code.co_firstlineno)
        for called, receiver, name in (("zero_grad", "", "clear_call"), ("step", "sched", "schedule_step")):
            if owner == "trainer" and (line := call_line(code, called, receiver)):
                places[name] = Place(show(code.co_filename), line)
    return places


def rate_is_written(trainer: Any, seen: BuiltObjects) -> bool:
    """Whether the script wrote the effective rate; False if it is a default of the optimizer or the framework."""
    if trainer.optimizer is None:
        built = seen.constructions.get(id(trainer.args))
        return built is None or "learning_rate" in built.keywords
    return is_rate_written(_unwrap(trainer.optimizer), seen)


def _unwrap(optimizer: Any) -> Any:
    """The optimizer itself, in which Accelerate wraps it for a training."""
    return getattr(optimizer, "optimizer", optimizer)


def _of_construction(built: Construction, trainer: Any, frame: FrameType) -> dict[str, Place]:
    places = {"trainer": built.place}
    written = keyword_places(built.frame_file, built.line, given=built.keywords, end=built.end)
    for keyword, (place, value) in written.items():
        role = _ROLES.get(keyword, keyword)
        places[role] = place
        if isinstance(value, ast.Name) and role in ("model", "optimizer", "tokenizer", "collator"):
            places[role] = assignment_place(built.frame_file, value.id, built.line) or place
        if role == "optimizer" and isinstance(value, ast.Tuple):
            places |= _of_pair(value, built)
        base = _base_name(value)
        if base and (made := assignment_place(built.frame_file, base, built.line)):
            places[f"{role}_made"] = made
    for role in ("model", "train_dataset", "eval_dataset"):
        for name in names_of(getattr(trainer, role, None), frame) if role not in places else ():
            if made := assignment_place(frame.f_code.co_filename, name, frame.f_lineno):
                places[role] = made
    return places


def _of_pair(pair: ast.Tuple, built: Construction) -> dict[str, Place]:
    """Where the optimizer and the schedule of `optimizers=(…, …)` were created."""
    places = {}
    for role, value in zip(("optimizer", "scheduler"), pair.elts):
        made = assignment_place(built.frame_file, value.id, built.line) if isinstance(value, ast.Name) else None
        if not isinstance(value, ast.Constant):
            places[role] = made or Place(show(built.frame_file), value.lineno)
    return places


def _mode_place(trainer: Any) -> Place | None:
    """The user's line that puts modules in evaluation mode during training, or the user's override of train()."""
    kinds = dict.fromkeys(type(m) for m in trainer.model.modules())
    during = [type(trainer).compute_loss, type(trainer).training_step, *(k.forward for k in kinds)]
    codes = [c for f in during if (c := getattr(inspect.unwrap(f), "__code__", None)) and is_users(c.co_filename)]
    for code in codes:
        if line := evaluation_line(code):
            return Place(show(code.co_filename), line)
    return next((place for kind in kinds if (place := definition_place(kind.train)) is not None), None)


def _base_name(node: ast.expr) -> str | None:
    """The variable an expression starts with: `data` for `data["train"].select(range(10))`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return None
    return node.id


# The argument that newer versions of transformers also pass to each of these methods, and how many arguments they then
# pass by position; None if the new argument is passed by name.
_PASSED: dict[str, tuple[str, int | None]] = {
    "compute_loss": ("num_items_in_batch", None),
    "training_step": ("num_items_in_batch", 3),
    "log": ("start_time", 2),
    "_get_train_sampler": ("train_dataset", 1),
}
_WATCHED = (*_PASSED, "create_optimizer", "prediction_step", "evaluate", "get_train_dataloader",
            "_get_train_sampler")  # fmt: skip


def overridden_methods(trainer: Any) -> list[OverriddenMethod]:
    """Methods of the Trainer that the user's subclass overrides, and the arguments that they do not accept; a repair calls the
    Trainer's own ones without."""
    found, own = [], transformers.Trainer
    for name in _WATCHED:
        method = getattr(type(trainer), name)
        code = getattr(inspect.unwrap(method), "__code__", None)
        if code is None or not is_users(code.co_filename):
            continue
        passed = name in _PASSED and _PASSED[name][0] in inspect.signature(getattr(own, name)).parameters
        missing = _not_taken(method, *_PASSED[name]) if passed and name not in vars(trainer) else ()
        where = Place(show(code.co_filename), code.co_firstlineno)
        found.append(OverriddenMethod(name=name, missing=missing, where=where))
    return found


def _not_taken(method: Any, argument: str, positions: int | None) -> tuple[str, ...]:
    parameters = inspect.signature(method).parameters.values()
    if positions is not None:
        return () if positional_places(method) >= positions else (argument,)
    by_name = any(p.kind == p.VAR_KEYWORD or p.name == argument for p in parameters)
    return () if by_name else (argument,)


def positional_places(method: Any) -> int:
    """Number of positional arguments that a method takes, not counting self."""
    parameters = list(inspect.signature(method).parameters.values())
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):
        return 1_000
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters) - 1


def without_arguments(trainer: Any, method: str, names: Sequence[str]) -> Any:
    """The trainer's method, called without arguments of these names and without surplus positional arguments."""
    own = getattr(type(trainer), method)
    most = positional_places(own)

    def call(*args: Any, **kwargs: Any) -> Any:
        return own(trainer, *args[:most], **{k: v for k, v in kwargs.items() if k not in names})

    return call


def measure_setup(trainer: Any, frame: FrameType, seen: BuiltObjects) -> SetupFacts:
    """The arguments, places and devices of a Trainer that trains."""
    args = trainer.args
    built = seen.constructions.get(id(args))
    mixed = "bf16" if args.bf16 else "fp16" if args.fp16 and args.device.type != "cpu" else "fp32"
    return setup_facts(
        trainer.model,
        [trainer.optimizer] if trainer.optimizer is not None else [],
        seen,
        called=[trainer.model],
        device=args.device.type,
        optimizer_name=str(getattr(args.optim, "value", args.optim)),
        framework="transformers",
        words=TRAINER,
        automatic_steps=True,
        call=f"{type(trainer).__name__}.train",
        arguments=resolved_arguments(args, built.keywords if built else frozenset()),
        places=find_places(trainer, frame, seen),
        overrides=tuple(overridden_methods(trainer)),
        precision=mixed,
        batch_size=args.train_batch_size,
        accumulation=args.gradient_accumulation_steps,
        epochs=args.num_train_epochs,
    )


def changes_of_rows(trainer: Any) -> dict[str, Any]:
    """What a Trainer changes of rows on their way into a batch, as fields of BatchFacts."""
    collator = trainer.data_collator
    return {
        "dropped_columns": dropped_columns(trainer),
        "collator": getattr(collator, "__name__", type(collator).__name__),
    }


def dropped_columns(trainer: Any) -> tuple[str, ...]:
    """Columns that the Trainer removes because the model's forward does not name them."""
    if not trainer.args.remove_unused_columns:
        return ()
    with contextlib.suppress(Exception):  # rows that cannot be read are reported by the dataset stage
        data = trainer.train_dataset
        columns = getattr(data, "column_names", None) or tuple(_first_row(data) or ())
        trainer._set_signature_columns_if_needed()
        return tuple(c for c in columns if c not in trainer._signature_columns)
    return ()


def _first_row(data: Any) -> Mapping[str, Any] | None:
    """The first row of a map-style set whose rows are mappings; others lose no columns."""
    row = data[0] if length(data) else None
    return as_mapping(row) if hasattr(row, "keys") else None
