"""`trainwright.check`: a check called from Python or a notebook, of objects instead of a script."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from trainwright.core import Report
from trainwright.errors import UsageError

if TYPE_CHECKING:
    from trainwright.adapters.from_objects import ObjectsTraining

# Of a training that has no end of its own here.
MOST_UPDATES = 300
_FORMS = (
    "trainwright.check takes a transformers Trainer; a LightningModule with a loader (and an evaluation loader) or "
    "datamodule=; a compiled Keras model with x= and y=; or model=, loader= and optimizer= (and loss=) for plain torch"
)


def check(
    training: Any,
    data: Mapping[str, Any],
    parts: Mapping[str, Any],
    fit: Mapping[str, Any],
    settings: Mapping[str, Any],
    caller: FrameType,
) -> Report:
    """Carry out `trainwright.check` for its caller.

    Args:
        data: its loaders and data module, by their names.
        parts: of a plain training, by their names.
        fit: arguments of a Keras model's `fit`.
        settings: fields of `Options`.
    """
    import trainwright.report  # noqa: F401 - reports show themselves from then on
    from trainwright.adapters.from_objects import kept
    from trainwright.options import Options, shows_samples
    from trainwright.rehearsal.request import Work
    from trainwright.runs import run_work
    from trainwright.seams.requirements import versions
    from trainwright.seams.source.places import place_of, show
    from trainwright.seams.source.written import syntax_tree
    from trainwright.timing import date_of_now

    caller = caller.f_back or caller if caller.f_globals.get("__name__") == "trainwright.pytest_plugin" else caller
    ignore = settings["ignore"]
    if isinstance(ignore, str):
        raise UsageError(f"ignore must be a sequence of rule names; got the text {ignore!r}. Write [{ignore!r}].")
    options = Options(**{**settings, "ignore": tuple(ignore)})
    options.check()
    options = replace(options, samples=options.samples and shows_samples(caller.f_code.co_filename))
    linecache.checkcache()
    syntax_tree.cache_clear()
    described = _training(training, data, parts, fit, caller)
    script = show(caller.f_code.co_filename)
    with cell_progress() as say:
        report = Report(
            script=script,
            framework=described.framework,
            versions=versions(),
            date=date_of_now(),
            begins=place_of(caller),
        )
        work = Work(run=described.run, most_updates=None if "epochs" in fit else MOST_UPDATES)
        return run_work(report, work, options, say, kept(described.owners))[0]


def _training(
    training: Any, data: Mapping[str, Any], parts: Mapping[str, Any], fit: Mapping[str, Any], caller: FrameType
) -> ObjectsTraining:
    """The training that the arguments describe."""
    from trainwright.adapters import from_objects
    from trainwright.frameworks.packages import NEEDED, TrainingKind
    from trainwright.seams.requirements import packages_of, require

    given = [n for n, v in parts.items() if v is not None]
    if from_objects.is_keras_model(training) and not given:
        _none_of(data, "a Keras model's data is passed as to fit; call check(model, x=…, y=…)")
        require(*packages_of(training))
        _check_fit(training, fit)
        return from_objects.of_keras(training, dict(fit), caller)
    _none_of(fit, "check takes them only with a compiled Keras model")
    if training is not None and given:
        raise UsageError(f"{_FORMS}; got {type(training).__name__} and {', '.join(f'{n}=' for n in given)}.")
    if from_objects.is_hf_trainer(training):
        _none_of(data, "a Trainer has its data already; call check(trainer)")
        require(*NEEDED[TrainingKind.TRAINER])
        return from_objects.of_trainer(training, caller)
    loader, evaluation_loader, datamodule = data["loader"], data["evaluation_loader"], data["datamodule"]
    if from_objects.is_lightning_module(training):
        if (loader is None) == (datamodule is None) and not from_objects.has_loader(training):
            raise UsageError(
                "a LightningModule needs either a loader or a datamodule; got "
                f"{'neither' if loader is None else 'both'}. Call check(module, train_loader) or "
                "check(module, datamodule=data)."
            )
        require("torch", *packages_of(training))
        return from_objects.of_lightning(training, loader, evaluation_loader, datamodule, caller)
    if training is not None:
        hint = " Pass it as model=, with loader= and optimizer=." if from_objects.is_module(training) else ""
        raise UsageError(f"{_FORMS}; got {type(training).__name__}.{hint}")
    _none_of({"datamodule": datamodule}, "a data module is for a LightningModule")
    _check_plain(parts, loader, evaluation_loader)
    require("torch")
    return from_objects.of_parts(caller, loader=loader, evaluation_loader=evaluation_loader, **parts)


def _none_of(given: Mapping[str, Any], why: str) -> None:
    if surplus := [n for n, v in given.items() if v is not None]:
        raise UsageError(f"{', '.join(f'{n}=' for n in surplus)} must be left out: {why}.")


def _check_fit(model: Any, fit: Mapping[str, Any]) -> None:
    if not (getattr(model, "compiled", False) or getattr(model, "_is_compiled", False)):
        raise UsageError("the model must be compiled first; call model.compile(…).")
    known = [n for n in inspect.signature(type(model).fit).parameters if n != "self"]
    if unknown := [n for n in fit if n not in known]:
        raise UsageError(f"{', '.join(unknown)} must be arguments of fit; it has {', '.join(known)}.")
    if fit.get("x") is None:
        raise UsageError("a Keras model needs its data; got none. Call check(model, x=…, y=…).")


def _check_plain(parts: Mapping[str, Any], loader: Any, evaluation_loader: Any) -> None:
    from trainwright.adapters import from_objects

    model, loss, optimizer = parts["model"], parts["loss"], parts["optimizer"]
    required = {"model": model, "loader": loader, "optimizer": optimizer}
    missing = [name for name, value in required.items() if value is None]
    if len(missing) == len(required):
        raise UsageError(f"{_FORMS}; got nothing to train.")
    if missing:
        names = ", ".join(f"{name}=" for name in missing)
        raise UsageError(f"model=, loader= and optimizer= are all required; missing: {names}.")
    if not from_objects.is_module(model):
        raise UsageError(f"model= must be a torch.nn.Module; got {type(model).__name__}.")
    if not (hasattr(optimizer, "param_groups") and hasattr(optimizer, "step")):
        kind = f"the class {optimizer.__name__}" if isinstance(optimizer, type) else type(optimizer).__name__
        raise UsageError(f"optimizer= must be a torch optimizer, built on the model's parameters; got {kind}.")
    if isinstance(loss, type):
        raise UsageError(
            f"loss= must be a function of (output, targets); got the class {loss.__name__}: call it first."
        )
    if loss is not None and not callable(loss):
        raise UsageError(f"loss= must be a function of (output, targets); got {type(loss).__name__}.")
    for name, value in {"loader": loader, "evaluation_loader": evaluation_loader}.items():
        if value is None and name != "loader":
            continue
        if not hasattr(value, "__iter__") or hasattr(value, "__next__"):
            once = (
                ", which can be iterated only once; pass a DataLoader or a list" if hasattr(value, "__next__") else ""
            )
            raise UsageError(f"{name}= must yield batches every time it is iterated; got {type(value).__name__}{once}.")


@contextlib.contextmanager
def cell_progress() -> Iterator[Callable[[str], None]]:
    """A progress line: below the cell of a notebook, or on a terminal."""
    display = sys.modules.get("IPython.display")
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if display is None or shell is None or not hasattr(shell, "kernel"):
        from trainwright.output import progress

        with progress() as say:
            yield say
        return
    line = display.display(_plain_text(""), display_id=True)
    try:
        yield lambda text: line.update(_plain_text(text))
    finally:
        line.update(_plain_text(""))


def _plain_text(text: str) -> Any:
    """Text that a notebook shows unchanged."""

    class Line:
        def __repr__(self) -> str:
            return text

    return Line()
