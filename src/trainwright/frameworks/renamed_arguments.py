"""Arguments that libraries once had, and their successors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Successor:
    """An argument's successor: another name, and another value if that changes too."""

    name: str
    note: str = ""
    value: Callable[[Any], Any] | None = None
    """Converts the old value; None: unchanged."""


# From the frameworks' changelogs and migration guides (transformers 4.41 to 5.x, accelerate 1.0, Keras 2 and 3), and
# from other frameworks' names for the same argument.
# A successor is used only if the installed signature has it.
SUCCESSORS: dict[str, Successor] = {
    "evaluation_strategy": Successor("eval_strategy"),
    "evaluate_during_training": Successor("eval_strategy", value=lambda v: "steps" if v else "no"),
    "tokenizer": Successor("processing_class"),
    "no_cuda": Successor("use_cpu"),
    "warmup_ratio": Successor("warmup_steps", "a share between 0 and 1 is accepted there"),
    "per_gpu_train_batch_size": Successor("per_device_train_batch_size"),
    "per_gpu_eval_batch_size": Successor("per_device_eval_batch_size"),
    "train_batch_size": Successor("per_device_train_batch_size"),
    "eval_batch_size": Successor("per_device_eval_batch_size"),
    "batch_size": Successor("per_device_train_batch_size"),
    "epochs": Successor("num_train_epochs"),
    "num_epochs": Successor("num_train_epochs"),
    "lr": Successor("learning_rate"),
    "include_inputs_for_metrics": Successor("include_for_metrics", value=lambda v: ["inputs"] if v else []),
    "include_tokens_per_second": Successor("include_num_input_tokens_seen"),
    "adafactor": Successor("optim", value=lambda v: "adafactor" if v else "adamw_torch"),
    "push_to_hub_model_id": Successor("hub_model_id"),
    "push_to_hub_token": Successor("hub_token"),
    "fp16": Successor("mixed_precision", value=lambda v: "fp16" if v else "no"),
    "logging_dir": Successor("project_dir"),
    "nb_epoch": Successor("epochs"),
    "gradient_checkpointing": Successor("activation_checkpointing"),
    "gradient_checkpointing_kwargs": Successor("activation_checkpointing_kwargs"),
    "group_by_length": Successor("train_sampling_strategy", value=lambda v: "group_by_length" if v else "random"),
    "torchdynamo": Successor("torch_compile_backend"),
    "xpu_backend": Successor("ddp_backend"),
    "sharded_ddp": Successor("fsdp"),
    "use_auth_token": Successor("token"),
    "torch_dtype": Successor("dtype"),
    "load_in_8bit": Successor("quantization_config", "write BitsAndBytesConfig(load_in_8bit=True)"),
    "workers": Successor("num_workers"),
    "learning_rate": Successor("lr"),
    "epsilon": Successor("eps"),
    "eps": Successor("epsilon"),
    "rate": Successor("p"),
    "use_bias": Successor("bias"),
    "strides": Successor("stride"),
    "init": Successor("kernel_initializer"),
    "inner_init": Successor("recurrent_initializer"),
    "W_regularizer": Successor("kernel_regularizer"),
    "U_regularizer": Successor("recurrent_regularizer"),
    "b_regularizer": Successor("bias_regularizer"),
    "W_constraint": Successor("kernel_constraint"),
    "b_constraint": Successor("bias_constraint"),
    "dropout_W": Successor("dropout"),
    "dropout_U": Successor("recurrent_dropout"),
    "output_dim": Successor("units"),
    "bias": Successor("use_bias"),
    "p": Successor("rate"),
    "sigma": Successor("stddev"),
    "nb_filter": Successor("filters"),
    "filter_length": Successor("kernel_size"),
    "subsample": Successor("strides"),
    "pool_length": Successor("pool_size"),
    "border_mode": Successor("padding", value=lambda v: v if v in ("valid", "same", "causal") else "valid"),
    "dim_ordering": Successor("data_format", value=lambda v: "channels_first" if v == "th" else "channels_last"),
}
# Notes on arguments that were removed; other libraries have arguments with the same names as Keras's.
GONE = {
    "overwrite_output_dir": "the output folder is always written to",
    "save_safetensors": "weights are always saved as safetensors",
    "logging_dir": "the environment variable TENSORBOARD_LOGGING_DIR sets the folder",
    "use_mps_device": "the device is found automatically",
    "fp16_backend": "torch's own mixed precision is always used",
    "fp16_opt_level": "torch's own mixed precision is always used",
    "half_precision_backend": "torch's own mixed precision is always used",
    "dispatch_batches": 'write accelerator_config={"dispatch_batches": …}',
    "split_batches": 'write accelerator_config={"split_batches": …}',
    "fsdp_min_num_params": 'write fsdp_config={"min_num_params": …}',
    "fsdp_transformer_layer_cls_to_wrap": 'write fsdp_config={"transformer_layer_cls_to_wrap": …}',
}
GONE_FROM_KERAS = {
    "workers": "keras.utils.PyDataset takes it",
    "use_multiprocessing": "keras.utils.PyDataset takes it",
    "max_queue_size": "keras.utils.PyDataset takes it",
    "period": 'save_freq="epoch" saves after each epoch, a number saves after that many batches',
    "samples_per_epoch": "write steps_per_epoch, in batches",
    "nb_val_samples": "write validation_steps, in batches",
    "show_accuracy": 'write metrics=["accuracy"] in compile',
    "batch_input_shape": "begin the model with keras.Input(batch_shape=…)",
    "time_major": "give it rows first, then steps",
    "write_grads": "no gradients are written any more",
}
# Prefixes of the names of distributions that contain Keras.
_KERAS = ("keras", "tf_keras", "tf-keras")


def gone_from(library: str) -> Mapping[str, str]:
    """Notes on arguments that a library no longer has.

    Args:
        library: distribution and version: `keras 3.15`.
    """
    return GONE_FROM_KERAS if library.startswith(_KERAS) else GONE
