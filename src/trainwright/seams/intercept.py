"""Observes the framework calls that a script makes on its way to training.

A framework is patched when it is imported, before the script can use its names. A framework that is too old is left
unpatched, and the script is told so when it starts to train with it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import wrapt

from trainwright.seams.listening import keras_patches, refusals, torch_patches, trainer_patches
from trainwright.seams.listening.doors import standing, watch_door
from trainwright.seams.listening.seen import active, keep_constructions, listener
from trainwright.seams.listening.trainer_patches import patch_construction
from trainwright.seams.requirements import shortfall
from trainwright.seams.source.places import user_frame


@functools.cache
def install() -> None:
    """Patch the frameworks, now or when they are imported."""
    for module, patch in (
        ("torch.nn.modules.module", torch_patches.patch_modules),
        ("torch.optim.optimizer", torch_patches.patch_optimizers),
        ("torch.optim.lr_scheduler", torch_patches.patch_schedules),
        ("torch.utils.data.dataloader", torch_patches.patch_loaders),
        ("torch.autograd", torch_patches.patch_backward),
        ("torch.multiprocessing.spawn", torch_patches.patch_processes),
        ("transformers.modeling_utils", trainer_patches.patch_loading),
        (
            "transformers.training_args",
            lambda module: patch_construction(module.TrainingArguments, "TrainingArguments"),
        ),
        (
            "transformers.training_args_seq2seq",
            lambda module: patch_construction(module.Seq2SeqTrainingArguments, "Seq2SeqTrainingArguments"),
        ),
        ("transformers.trainer", trainer_patches.patch_trainer),
        ("accelerate.accelerator", lambda module: patch_construction(module.Accelerator, "Accelerator")),
        ("lightning.pytorch.trainer.trainer", trainer_patches.patch_lightning),
        ("pytorch_lightning.trainer.trainer", trainer_patches.patch_lightning),
        ("keras", refusals.patch_constructors),
        ("keras.src.models.model", keras_patches.patch_model),
        ("keras.src.layers.layer", keras_patches.patch_layers),
        ("keras.src.optimizers.base_optimizer", keras_patches.patch_optimizers),
        ("keras.src.backend.common.variables", keras_patches.patch_variables),
        ("keras.src.losses.loss", lambda module: keep_constructions(module.Loss, "losses")),
        ("keras.src.callbacks.callback", lambda module: keep_constructions(module.Callback, "callbacks")),
        ("tf_keras.src.engine.training", keras_patches.patch_model),
        ("tf_keras.src.engine.base_layer", keras_patches.patch_layers),
        ("tf_keras.src.optimizers.optimizer", lambda module: keep_constructions(module._BaseOptimizer, "optimizers")),
        (
            "tf_keras.src.optimizers.legacy.optimizer_v2",
            lambda module: keep_constructions(module.OptimizerV2, "optimizers"),
        ),
        ("tf_keras.src.losses", lambda module: keep_constructions(module.Loss, "losses")),
        ("tf_keras.src.callbacks", lambda module: keep_constructions(module.Callback, "callbacks")),
    ):
        wrapt.register_post_import_hook(functools.partial(_patch, patch), module)


# Entry points of training, or what training needs, by the imported module.
_BEGINS = {
    "torch.optim.optimizer": ("Optimizer", "__init__"),
    "transformers.trainer": ("Trainer", "__init__"),
    "accelerate.accelerator": ("Accelerator", "__init__"),
    "lightning.pytorch.trainer.trainer": ("Trainer", "fit"),
    "pytorch_lightning.trainer.trainer": ("Trainer", "fit"),
    "keras": ("Model", "fit"),
    "tf_keras.src.engine.training": ("Model", "fit"),
}


def _patch(patch: Callable[[Any], None], module: Any) -> None:
    package = module.__name__.partition(".")[0]
    with standing(None):  # a run in this process may be what imports it
        if not (why := shortfall([package])):
            patch(module)
        elif module.__name__ in _BEGINS:
            owner, name = _BEGINS[module.__name__]
            watch_door(getattr(module, owner), name, functools.partial(_refuse, why))


def _refuse(why: str, go_on: Any, *args: Any, **kwargs: Any) -> Any:
    """Report that a package is too old for a check."""
    if active() and user_frame(sys._getframe(1)) is not None:
        listener().unsupported(why)
    return go_on(*args, **kwargs)
