"""What Lightning says."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=(
            "`train_dataloader` must be implemented to be used with the Lightning Trainer",
            "An invalid dataloader was returned from",
        ),
        meaning="""
        `fit` has no training data. Pass a loader (`trainer.fit(model, train_loader)`) or a data module
        (`datamodule=dm`, by keyword or as the second argument), or define `train_dataloader` and return the
        loader from it.
        """,
    ),
    KnownMessage(
        texts=(
            "No `training_step()` method defined",
            "No `configure_optimizers()` method defined",
            "No `test_step()` method defined to run `Trainer.test`",
            "No `validation_step()` method defined",
        ),
        meaning="""
        The LightningModule lacks this method, or its name is misspelled or indented into another method.
        Training needs `training_step` and `configure_optimizers`; `test` and `validate` need `test_step` and
        `validation_step`.
        """,
    ),
    KnownMessage(
        texts=(
            "In automatic_optimization, when `training_step` returns a dict, the 'loss' key needs to be present",
            "In automatic optimization, `training_step` must return a Tensor",
        ),
        meaning="""
        `training_step` must return the loss: a tensor, or a dictionary with the key `loss`. Check that every
        branch returns it. With manual optimization (`self.automatic_optimization = False`) nothing needs to be
        returned.
        """,
        rules=("missing-loss",),
    ),
    KnownMessage(
        texts=("Training with multiple optimizers is only supported with manual optimization",),
        meaning="""
        Since version 2, several optimizers (GANs, actor-critic) need manual optimization: set
        `self.automatic_optimization = False`, get them with `self.optimizers()`, and call `zero_grad`,
        `self.manual_backward(loss)` and `step` in `training_step`. If you meant one optimizer with a schedule,
        return `[optimizer], [scheduler]` or a dictionary.
        """,
    ),
    KnownMessage(
        texts=("must include a monitor when a `ReduceLROnPlateau` scheduler is used",),
        meaning="""
        `ReduceLROnPlateau` needs the name of a logged metric: return `{"optimizer": optimizer, "lr_scheduler":
        {"scheduler": scheduler, "monitor": "val_loss"}}`, and log `val_loss` in `validation_step`.
        """,
    ),
    KnownMessage(
        texts=("ReduceLROnPlateau conditioned on metric … which is not available",),
        meaning="""
        The schedule watches a metric that nothing logs; the message lists those that are. Log it with
        `self.log("val_loss", loss)` in `validation_step`, pass validation data, and check the spelling (a `/`
        and a `_` differ). If validation runs less often than the schedule steps, set `"strict": False` or
        another `frequency`.
        """,
        rules=("unknown-best-metric",),
    ),
    KnownMessage(
        texts=("Early stopping conditioned on metric … which is not available",),
        meaning="""
        `EarlyStopping` watches a metric that nothing logs; the message lists those that are. Log it with
        `self.log("val_loss", loss)` in `validation_step`, and pass validation data to `fit`. Without
        validation, monitor a training metric logged with `on_epoch=True`.
        """,
        rules=("unknown-best-metric",),
    ),
    KnownMessage(
        texts=("`ModelCheckpoint(monitor=…)` could not find the monitored key in the returned metrics",),
        meaning="""
        The checkpoint watches a metric that nothing logs; the message lists those that are. Log it under
        exactly that name in `validation_step`, and check that validation runs before the first save.
        """,
        rules=("unknown-best-metric",),
    ),
    KnownMessage(
        texts=("was called, but the tensor must have a single element",),
        meaning="""
        `self.log` takes one number. Reduce the value (`.mean()`), or log the parts under names of their own.
        """,
    ),
    KnownMessage(
        texts=(
            "You can't `self.log(… inside",
            "You are trying to `self.log()` but",
        ),
        meaning="""
        Logging is not possible at this place, or not per step. Log in `training_step`, `validation_step` or the
        hooks at the end of an epoch (`on_train_epoch_end`).
        """,
    ),
    KnownMessage(
        texts=("Trainer.__init__() got an unexpected keyword argument 'gpus'",),
        meaning="""
        Lightning 2 has `accelerator="gpu", devices=N` instead of `gpus=N`; `tpu_cores`, `num_processes` and
        `auto_select_gpus` are gone in the same way.
        """,
        rules=("renamed-argument",),
    ),
    KnownMessage(
        texts=("has been removed in v2.0.0",),
        meaning="""
        Lightning 2 removed this hook. `training_epoch_end(outputs)` becomes `on_train_epoch_end()`: collect
        what you need in a list of the module in `training_step`, and clear it there. The same holds for
        `validation_epoch_end` and `test_epoch_end`.
        """,
        rules=("removed-api",),
    ),
    KnownMessage(
        texts=(
            "No supported gpu backend found",
            "You requested gpu: … But your machine only has",
        ),
        meaning="""
        The Trainer asks for GPUs that PyTorch does not see. Check `torch.cuda.is_available()` and
        `CUDA_VISIBLE_DEVICES`; with `accelerator="auto", devices="auto"` Lightning takes what there is.
        """,
    ),
    KnownMessage(
        texts=("must be a `LightningModule` or `torch._dynamo.OptimizedModule`",),
        meaning="""
        The model is a plain `nn.Module`, or comes from the other package: `pytorch_lightning` and `lightning`
        (`lightning.pytorch`) have separate classes. Import the module's base class, the Trainer and the
        callbacks from the same package.
        """,
    ),
    KnownMessage(
        texts=("Automatic gradient clipping is not supported for manual optimization",),
        meaning="""
        Remove `gradient_clip_val` from the Trainer, and call `self.clip_gradients(optimizer,
        gradient_clip_val=...)` between `manual_backward` and `step`.
        """,
    ),
    KnownMessage(
        texts=("must be less than or equal to the number of the training batches",),
        meaning="""
        `val_check_interval` counts training batches of one epoch, and the epoch is shorter. Use a share such as
        `0.5`, or set `check_val_every_n_epoch=None` to count batches over all epochs.
        """,
    ),
    KnownMessage(
        texts=("is not attached to a `Trainer`",),
        meaning="""
        `self.trainer` is used before `fit` gave the module one, often in `__init__` or `configure_optimizers`
        called by hand. Move the code into `setup` or a hook.
        """,
    ),
    KnownMessage(
        texts=(
            "is set but `ModelCheckpoint` is not configured",
            "is set but `ModelCheckpoint` is not configured to save the best model",
        ),
        meaning="""
        `ckpt_path="best"` needs a `ModelCheckpoint` with `monitor=`. Add one, or pass `ckpt_path=None` to use
        the current weights, or a path.
        """,
    ),
)
