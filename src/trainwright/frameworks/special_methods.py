"""The methods that a framework calls on classes derived from its own, by the base class's module and name."""

from __future__ import annotations

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
SPECIAL_METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
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
