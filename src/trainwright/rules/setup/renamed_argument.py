"""TW001 renamed-argument: a framework and the script disagree on the name of an argument.

Why it matters: The script stops before training or at its first step; the setting behind the old name is still wanted.
Evidence: The installed version's signature lacks the name and has its successor; or the framework passes an argument
that a method of the script's own Trainer does not accept.
Error: `got an unexpected keyword argument '…'`
Error: `Argument(s) not recognized: …`
Error: `Unrecognized keyword arguments passed to …`
Error: `compute_loss() got an unexpected keyword argument 'num_items_in_batch'`
Fix (safe): Write the new name. If the argument was removed for good, leave it out. Let the method accept the arguments
it gets.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trainwright.core.finding import Finding, Place, Proof, Severity
from trainwright.core.fix import Edit, Fix, RemoveKeyword, RenameKeyword, Safety, SetKeyword
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.rule import rule
from trainwright.stages.setup import OverriddenMethod, RefusedCall, SetupFacts


@dataclass(frozen=True)
class Successor:
    """What an argument has become: another name, and its value where that changes too."""

    name: str
    note: str = ""
    value: Callable[[Any], Any] | None = None
    """The new value of an old one; None: the same."""


# From the frameworks' changelogs and migration guides (transformers 4.41 to 5.x, accelerate 1.0, Keras 2 and 3), and
# what another framework calls it.
# A successor is used only where the installed signature has it.
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
    "group_by_length": Successor(
        "train_sampling_strategy", value=lambda v: "group_by_length" if v else "random"
    ),
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
    "dim_ordering": Successor(
        "data_format", value=lambda v: "channels_first" if v == "th" else "channels_last"
    ),
}
# What to know of arguments that are gone for good; other libraries have arguments of the same names as Keras's.
GONE = {
    "overwrite_output_dir": "the output folder is always written to",
    "save_safetensors": "weights are always saved as safetensors",
    "logging_dir": "the environment variable TENSORBOARD_LOGGING_DIR sets the folder",
    "use_mps_device": "the device is found by itself",
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
# How the names of the distributions that have Keras begin.
_KERAS = ("keras", "tf_keras", "tf-keras")
# difflib's ratio at which two names are taken to be the same word with a slip (evaluate_strategy, learning_rates).
CLOSE = 0.85


@rule("TW001", Severity.ERROR)
def renamed_argument(setup: SetupFacts) -> Iterator[Finding]:
    """An argument that one side passes and the other does not take."""
    call = setup.refused
    if (
        call is not None and call.argument and " " in call.library
    ):  # a library with a version, not the user's own code
        yield _refused(call)
    for method in setup.overrides:
        if method.missing:
            yield _too_narrow(method, setup)


def _refused(call: RefusedCall) -> Finding:
    new, old, at = successor(call), call.argument, call.places.get(call.argument, call.failure.where)
    if new is None:
        gone = _gone(call).get(old)
        does, repair = (
            f"leave {old} out of {call.function}(…)" + (f": {gone}" if gone else ""),
            _leave_out(old),
        )
        known = f"{call.library} has no argument of that name or a similar one"
    else:
        value = new.value(call.value) if new.value else None
        written = repr(value).replace("'", '"') if new.value else ""
        note = f" ({new.note})" if new.note else ""
        does = f"write {new.name}={written} instead of {old}= in {call.function}(…){note}"
        repair = _rename(old, new)
        known = f"{call.library} calls it {new.name}"
    return Finding(
        message=f"{call.function} takes no argument {old}=; {known}",
        measured={"argument": old, **({"new_name": new.name} if new else {}), "library": call.library},
        where=at,
        proof=None if call.repairable else Proof(str(call.failure)),
        repair=repair if call.repairable else None,
        fix=Fix(
            does=does, safety=Safety.SAFE if new else Safety.UNSAFE, edits=_edits(at, old, new, call.value)
        ),
    )


def _edits(at: Place | None, old: str, new: Successor | None, value: Any) -> tuple[Edit, ...]:
    if at is None:
        return ()
    if new is None:
        return (RemoveKeyword(at.file, at.line, old),)
    if new.value is None:
        return (RenameKeyword(at.file, at.line, old, new.name),)
    written = repr(new.value(value)).replace("'", '"')
    return (RenameKeyword(at.file, at.line, old, new.name), SetKeyword(at.file, at.line, new.name, written))


def successor(call: RefusedCall) -> Successor | None:
    """The name that the argument has today, if the installed signature has it: known, or nearly the same."""
    known = SUCCESSORS.get(call.argument)
    if known is not None and known.name in call.accepts and known.name not in call.given:
        return known
    free = [name for name in call.accepts if name not in call.given]
    near = difflib.get_close_matches(call.argument, free, n=1, cutoff=CLOSE)
    return Successor(near[0]) if near and call.argument not in _gone(call) else None


def _gone(call: RefusedCall) -> dict[str, str]:
    return GONE_FROM_KERAS if call.library.startswith(_KERAS) else GONE


def _rename(old: str, new: Successor) -> Repair:
    def change(call: Call) -> Call:
        value = call[old] if new.value is None else new.value(call[old])
        return call.without(old).replace(**{new.name: value})

    return Repair(f"pass {old} under its new name {new.name}", Seam.CONSTRUCT, change)


def _leave_out(name: str) -> Repair:
    return Repair(f"leave {name} out", Seam.CONSTRUCT, lambda call: call.without(name))


def _too_narrow(method: OverriddenMethod, setup: SetupFacts) -> Finding:
    names = ", ".join(method.missing)
    library = f"{setup.framework} {setup.versions.get(setup.framework or '', '')}".strip()
    added = ", ".join(f"{name}=None" for name in method.missing)

    def change(call: Call) -> Call:
        return call.replace(
            ignored_arguments={**call.given.get("ignored_arguments", {}), method.name: method.missing}
        )

    return Finding(
        message=f"the script's own {method.name} does not accept {names}, which {library} passes to it",
        measured={"method": method.name, "argument": names, "library": library},
        where=method.where,
        proof=Proof(f"the signature of {method.name} has no {names} and no **kwargs"),
        repair=Repair(f"call {method.name} without {names}", Seam.TRAINER, change),
        fix=Fix(does=f"write def {method.name}(…, {added})", safety=Safety.SAFE),
    )
