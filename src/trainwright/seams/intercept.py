"""The calls of frameworks that a script makes on its way to training, seen as they happen.

Patches are put in when a framework is imported, before the script gets hold of its names.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import wrapt

from trainwright.seams import keras_patches, keras_refusals, torch_patches, trainer_patches
from trainwright.seams.seen import Listener, Seen, told


@contextmanager
def listening(listener: Listener) -> Iterator[Seen]:
    """Tell a listener of the calls that scripts make, while the context lasts."""
    install()
    with told(listener) as seen:
        yield seen


@functools.cache
def install() -> None:
    """Have the frameworks patched, now or when they are imported."""
    for module, patch in (
        ("torch.nn.modules.module", torch_patches.patch_modules),
        ("torch.optim.optimizer", torch_patches.patch_optimizers),
        ("torch.optim.lr_scheduler", torch_patches.patch_schedules),
        ("torch.utils.data.dataloader", torch_patches.patch_loaders),
        ("torch.autograd", torch_patches.patch_backward),
        ("torch.multiprocessing.spawn", torch_patches.patch_processes),
        ("transformers.modeling_utils", trainer_patches.patch_loading),
        ("transformers.training_args", trainer_patches.patch_arguments),
        ("transformers.training_args_seq2seq", trainer_patches.patch_seq2seq_arguments),
        ("transformers.trainer", trainer_patches.patch_trainer),
        ("accelerate.accelerator", trainer_patches.patch_accelerator),
        ("lightning.pytorch.trainer.trainer", trainer_patches.patch_lightning),
        ("pytorch_lightning.trainer.trainer", trainer_patches.patch_lightning),
        ("keras", keras_refusals.patch_constructors),
        ("keras.src.models.model", keras_patches.patch_model),
        ("keras.src.layers.layer", keras_patches.patch_layers),
        ("keras.src.optimizers.base_optimizer", keras_patches.patch_optimizers),
        ("keras.src.backend.common.variables", keras_patches.patch_variables),
        ("keras.src.losses.loss", keras_patches.patch_losses),
        ("keras.src.callbacks.callback", keras_patches.patch_callbacks),
        ("tf_keras.src.engine.training", keras_patches.patch_model),
        ("tf_keras.src.engine.base_layer", keras_patches.patch_layers),
        ("tf_keras.src.optimizers.optimizer", keras_patches.patch_legacy_optimizers),
        ("tf_keras.src.optimizers.legacy.optimizer_v2", keras_patches.patch_older_optimizers),
        ("tf_keras.src.losses", keras_patches.patch_losses),
        ("tf_keras.src.callbacks", keras_patches.patch_callbacks),
    ):
        wrapt.register_post_import_hook(patch, module)
