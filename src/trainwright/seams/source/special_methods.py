"""Methods of the user's classes whose names are misspellings of those that a framework calls."""

from __future__ import annotations

import inspect
import linecache
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

from trainwright.core import Place
from trainwright.seams.source.places import is_users, show
from trainwright.stages import MisspelledMethod

# A shorter name that differs in one letter is another word (cell, call).
_LONG_ENOUGH = 7
_MODULE = ("__init__", "forward")
_LIGHTNING_HOOKS = (
    "on_fit_start", "on_fit_end", "on_train_start", "on_train_end", "on_train_epoch_start", "on_train_epoch_end",
    "on_train_batch_start", "on_train_batch_end", "on_validation_epoch_start", "on_validation_epoch_end",
    "on_validation_start", "on_validation_end", "on_test_epoch_end", "on_before_optimizer_step", "on_save_checkpoint",
    "on_load_checkpoint",
)  # fmt: skip
_LOADERS = ("train_dataloader", "val_dataloader", "test_dataloader", "predict_dataloader", "prepare_data", "setup")
_LIGHTNING = (*_MODULE, "training_step", "validation_step", "test_step", "predict_step", "configure_optimizers",
              "optimizer_step", "lr_scheduler_step", *_LOADERS, *_LIGHTNING_HOOKS)  # fmt: skip
_DATA_MODULE = ("__init__", *_LOADERS, "teardown", "transfer_batch_to_device")
_DATASET = ("__init__", "__len__", "__getitem__", "__getitems__")
_TRAINER = ("__init__", "compute_loss", "training_step", "prediction_step", "create_optimizer", "create_scheduler",
            "create_optimizer_and_scheduler", "get_train_dataloader", "get_eval_dataloader", "evaluate",
            "evaluation_loop")  # fmt: skip
_TRAINER_HOOKS = ("on_init_end", "on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_step_begin",
                  "on_step_end", "on_substep_end", "on_evaluate", "on_predict", "on_save", "on_log")  # fmt: skip
_LAYER = ("__init__", "build", "call", "get_config", "compute_output_shape")
_MODEL = (*_LAYER, "train_step", "test_step", "predict_step", "compute_loss", "compute_metrics")
_KERAS_HOOKS = ("on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_train_batch_begin",
                "on_train_batch_end", "on_batch_begin", "on_batch_end", "on_test_begin", "on_test_end")  # fmt: skip
_KERAS_DATA = ("__init__", "__len__", "__getitem__", "on_epoch_end")

# With each base class, the name by which users import it.
_SPECIAL_METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "torch.nn.modules.module.Module": ("nn.Module", _MODULE),
    "torch.utils.data.dataset.Dataset": ("Dataset", _DATASET),
    "torch.utils.data.dataset.IterableDataset": ("IterableDataset", ("__init__", "__iter__")),
    "lightning.pytorch.core.module.LightningModule": ("LightningModule", _LIGHTNING),
    "pytorch_lightning.core.module.LightningModule": ("LightningModule", _LIGHTNING),
    "lightning.pytorch.core.datamodule.LightningDataModule": ("LightningDataModule", _DATA_MODULE),
    "pytorch_lightning.core.datamodule.LightningDataModule": ("LightningDataModule", _DATA_MODULE),
    "lightning.pytorch.callbacks.callback.Callback": ("Callback", _LIGHTNING_HOOKS),
    "pytorch_lightning.callbacks.callback.Callback": ("Callback", _LIGHTNING_HOOKS),
    "transformers.trainer.Trainer": ("Trainer", _TRAINER),
    "transformers.trainer_callback.TrainerCallback": ("TrainerCallback", _TRAINER_HOOKS),
    "keras.src.layers.layer.Layer": ("keras.layers.Layer", _LAYER),
    "keras.src.models.model.Model": ("keras.Model", _MODEL),
    "keras.src.callbacks.callback.Callback": ("keras.callbacks.Callback", _KERAS_HOOKS),
    "keras.src.trainers.data_adapters.py_dataset_adapter.PyDataset": ("keras.utils.PyDataset", _KERAS_DATA),
    "tf_keras.src.engine.base_layer.Layer": ("tf_keras.layers.Layer", _LAYER),
    "tf_keras.src.engine.training.Model": ("tf_keras.Model", _MODEL),
    "tf_keras.src.callbacks.Callback": ("tf_keras.callbacks.Callback", _KERAS_HOOKS),
    "tf_keras.src.utils.data_utils.Sequence": ("tf_keras.utils.Sequence", _KERAS_DATA),
}


def user_scopes() -> Iterator[Mapping[str, Any]]:
    """The names of the script and of the user's own modules that are loaded."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and (name == "__main__" or is_users(file)):
            yield dict(vars(module))


def misspelled_methods(
    scopes: Iterable[Mapping[str, Any]], objects: Iterable[Any] = ()
) -> tuple[MisspelledMethod, ...]:
    """The misspelled methods of the user's classes in these scopes, and of those of these objects.

    Args:
        scopes: the names of the user's modules and functions, with their values.
    """
    scopes = list(scopes)
    values = [value for scope in scopes for value in scope.values()]
    files = {str(scope.get("__file__") or "") for scope in scopes}
    kinds = dict.fromkeys(value if isinstance(value, type) else type(value) for value in (*values, *objects))
    classes = dict.fromkeys(base for kind in kinds for base in kind.__mro__)
    found = [kind for kind in classes if _functions(kind)]
    files |= {f.__code__.co_filename for kind in found for f in _functions(kind)}
    mains = (s.get("__file__") for s in scopes if s.get("__name__") == "__main__")
    roots = {Path(file).resolve().parent for file in mains if isinstance(file, str)}
    texts = {file: "".join(linecache.getlines(file)) for file in files if file and is_users(file)}
    return tuple(one for kind in found for one in _of_class(kind, texts, roots))


def _functions(kind: type) -> list[FunctionType]:
    """The methods that the user wrote in a class."""
    try:
        members = list(vars(kind).values())
    except TypeError:
        return []
    return [m for m in members if isinstance(m, FunctionType) and is_users(m.__code__.co_filename)]


def _of_class(kind: type, texts: Mapping[str, str], roots: Collection[Path]) -> Iterator[MisspelledMethod]:
    bases = {f"{k.__module__}.{k.__qualname__}": k for k in kind.__mro__}
    known: set[str] = set()
    for base, (shown, special) in ((bases[n], _SPECIAL_METHODS[n]) for n in bases if n in _SPECIAL_METHODS):
        for method in _functions(kind):
            written = method.__code__.co_name
            if (
                written in special
                or written in known
                or any(written in vars(one) for one in kind.__mro__[1:])  # a class that it is derived from may call it
                or getattr(method, "__isabstractmethod__", False)
            ):
                continue
            meant = next((m for m in special if _is_misspelled(written, m)), None)
            if meant is None:
                continue
            of_kind, of_base = (inspect.getattr_static(one, meant, None) for one in (kind, base))
            if of_kind is of_base and not _is_named(written, method, texts, roots):
                known.add(written)
                yield MisspelledMethod(
                    owner=kind.__name__,
                    base=shown,
                    written=written,
                    meant=meant,
                    inherited=getattr(getattr(base, meant, None), "__name__", "")
                    == meant,  # torch's forward only raises
                    where=Place(show(method.__code__.co_filename), _line(method, written)),
                )


def _is_named(name: str, method: FunctionType, texts: Mapping[str, str], roots: Collection[Path]) -> bool:
    """Whether the user's code mentions a method anywhere but in its own definition, as a call of it would.

    Args:
        roots: the folder of the script; what is neither below it nor below the class's own folder is another program's.
    """
    try:
        lines, first = inspect.getsourcelines(method)
    except (OSError, TypeError):  # without its source, a call of it cannot be ruled out
        return True
    folders = {*roots, Path(method.__code__.co_filename).resolve().parent}
    for file, text in texts.items():
        if roots and not any(Path(file).resolve().is_relative_to(folder) for folder in folders):
            continue
        if file == method.__code__.co_filename:
            kept = text.splitlines()
            del kept[first - 1 : first - 1 + len(lines)]
            text = "\n".join(kept)
        if re.search(rf"(?<!\w)(?<!def ){re.escape(name)}(?!\w)", text):
            return True
    return False


def _line(method: FunctionType, name: str) -> int:
    """The line of a method's `def`, below its decorators."""
    lines, first = inspect.getsourcelines(method)
    return next((n for n, line in enumerate(lines, first) if re.search(rf"\bdef\s+{name}\b", line)), first)


def _is_misspelled(written: str, meant: str) -> bool:
    """Whether a name differs from another only in underscores, capitals, or one missing, surplus or exchanged letter."""
    if written == meant:
        return False
    bare, wanted = (name.replace("_", "").lower() for name in (written, meant))
    if bare == wanted:
        return True
    longer, shorter = (bare, wanted) if len(bare) > len(wanted) else (wanted, bare)
    if len(longer) == len(shorter) + 1:
        return any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))
    differing = [i for i, (a, b) in enumerate(zip(bare, wanted)) if a != b]
    if len(longer) != len(shorter) or len(differing) > 2:
        return False
    if len(differing) == 1:
        return len(wanted) >= _LONG_ENOUGH
    one, other = differing
    return other == one + 1 and bare[one] == wanted[other] and bare[other] == wanted[one]
