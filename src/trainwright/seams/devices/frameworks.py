"""Answers to transformers, Lightning and TensorFlow about missing devices and precisions.

These patches are permanent, since others build on them; they pass everything through unless a check redirects.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from trainwright.seams.devices.redirection import GPU, Redirection, current, half_name, lacking, redirect_calls
from trainwright.seams.failures.blame import passed_on

_HALF_ARGUMENTS = (
    ("fp16", "float16"),
    ("fp16_full_eval", "float16"),
    ("bf16", "bfloat16"),
    ("bf16_full_eval", "bfloat16"),
)
_GPUS = ("gpu", "cuda", "mps", "xpu")
QUANTIZED = "Weights in 8 or 4 bits (bitsandbytes) need a GPU: this cannot be checked here."


def patch_classes(module: Any) -> None:
    """Redirect a module's methods wherever all that libraries call a GPU is missing."""
    for path, instead in (row[1:] for row in _METHODS if row[0] == module.__name__):
        owner, name = getattr(module, path.partition(".")[0]), path.partition(".")[2]
        own = inspect.getattr_static(owner, name, None)
        if isinstance(own, classmethod):
            setattr(owner, name, classmethod(redirect_calls(own.__func__, instead, lacking)))
        elif own is not None:
            setattr(owner, name, redirect_calls(getattr(owner, name), instead, lacking))


def _halved(redirection: Redirection, original: Any, self: Any) -> None:
    """Half-precision TrainingArguments, which is also TRL's default."""
    if not self.use_cpu:
        for name, half in _HALF_ARGUMENTS:
            if getattr(self, name, False):
                redirection.ask_for_half(half, needed=True)
                setattr(self, name, False)
        if self.tf32:
            redirection.ask_for("tf32")
            self.tf32 = None
    passed_on(original, self)


def _accelerated(redirection: Redirection, original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    """An Accelerator in fp16, which does not use fp16 on a CPU but still reports it."""
    redirection.storages.unsure = True
    if kwargs.get("mixed_precision") == "fp16" and not kwargs.get("cpu"):
        redirection.ask_for_half("float16", needed=True)
        kwargs["mixed_precision"] = "no"
    original(self, *args, **kwargs)


def _from_pretrained(redirection: Redirection, original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Models loaded onto a GPU, or in 8 bits."""
    if _quantized(kwargs):
        redirection.remarks.append(QUANTIZED)
    if not _lacks_map(redirection, kwargs.get("device_map")):
        return original(cls, *args, **kwargs)
    given = {k: v for k, v in kwargs.items() if k != "device_map"}
    result = original(cls, *args, **_whole(redirection, given))
    for tensor in (result[0] if isinstance(result, tuple) else result).parameters():
        redirection.storages.put(tensor, GPU)
    return result


def _quantized(given: dict[str, Any]) -> bool:
    asked = given.get("quantization_config")
    return bool(given.get("load_in_8bit") or given.get("load_in_4bit")) or "BitsAndBytes" in type(asked).__name__


def _lacks_map(redirection: Redirection, device_map: Any) -> bool:
    """Whether a `device_map` names a missing device, which is then recorded as requested."""
    named = device_map.values() if isinstance(device_map, dict) else [device_map]
    missing = [d for d in named if redirection.lacks(d)]
    for device in missing:
        redirection.ask(device)
    return bool(missing)


def _whole(redirection: Redirection, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with float32 in place of half precision."""
    for name in ("dtype", "torch_dtype"):
        if half_name(given.get(name)) is not None:
            redirection.ask_for_half(given[name])
            given[name] = sys.modules["torch"].float32
    return given


def _attended(
    redirection: Redirection, original: Any, self: Any, attn_implementation: Any, *args: Any, **kwargs: Any
) -> Any:
    if "flash" in str(attn_implementation):
        redirection.ask_for(str(attn_implementation))
        attn_implementation = "sdpa" if getattr(self, "_supports_sdpa", False) else "eager"
    return original(self, attn_implementation, *args, **kwargs)


def _connected(redirection: Redirection, original: Any, self: Any, **kwargs: Any) -> None:
    """Lightning's Trainer, or Fabric, for GPUs on one CPU, in fp32."""
    redirection.storages.unsure = True
    original(self, **_on_cpu(redirection, kwargs))


def _on_cpu(redirection: Redirection, given: dict[str, Any]) -> dict[str, Any]:
    """A Trainer's keywords, changed if it asks for a GPU or fp16."""
    accelerator, precision = given.get("accelerator", "auto"), str(given.get("precision") or "")
    named = accelerator if isinstance(accelerator, str) else type(accelerator).__name__.lower()
    asks = next((kind for kind in _GPUS if kind in named), None)
    halved = "bfloat16" if precision.startswith("bf16") else "float16" if precision.startswith("16") else None
    if asks is None and (halved != "float16" or accelerator == "cpu"):
        return given
    if halved is not None:
        redirection.ask_for_half(halved, needed=True)
        given = {**given, "precision": "32-true"}
    if asks is None:
        return given
    redirection.ask("cuda" if asks == "gpu" else asks)
    changed = {"accelerator": "cpu", "devices": 1, "num_nodes": 1, "strategy": "auto", "sync_batchnorm": False}
    return {**given, **{k: v for k, v in changed.items() if k in given}}


def patch_tensorflow(module: Any) -> None:
    """TensorFlow itself places work for a missing GPU on the CPU, so this only records it."""
    config = module.config
    physical = config.list_physical_devices

    def device(redirection: Redirection, original: Any, device_name: Any, *args: Any, **kwargs: Any) -> Any:
        if "gpu:" in str(device_name).lower() and not physical("GPU"):
            redirection.ask("GPU")
        return original(device_name, *args, **kwargs)

    def devices(redirection: Redirection, original: Any, device_type: Any = None) -> Any:
        found = passed_on(original, device_type)
        if found or device_type != "GPU":
            return found
        redirection.absent |= {"GPU"}
        told = redirection.question("GPU", sys._getframe(2))
        return [config.PhysicalDevice("/physical_device:GPU:0", "GPU")] if told else found

    def unless_made_up(redirection: Redirection, original: Any, *args: Any, **kwargs: Any) -> Any:
        """Skip a setting for a device that does not exist."""
        return None if "GPU" in redirection.pretends else original(*args, **kwargs)

    for owner, name, instead in (
        (module, "device", device),
        (config, "list_physical_devices", devices),
        (config, "list_logical_devices", devices),
        (config.experimental, "set_memory_growth", unless_made_up),
        (config, "set_visible_devices", unless_made_up),
        (config, "set_logical_device_configuration", unless_made_up),
    ):
        setattr(owner, name, redirect_calls(getattr(owner, name), instead, current))
    config.experimental.list_physical_devices = config.list_physical_devices


# The redirected methods: module, class and method, what answers in its place.
_METHODS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("transformers.training_args", "TrainingArguments.__post_init__", _halved),
    ("accelerate.accelerator", "Accelerator.__init__", _accelerated),
    ("transformers.modeling_utils", "PreTrainedModel.from_pretrained", _from_pretrained),
    ("transformers.modeling_utils", "PreTrainedModel._check_and_adjust_attn_implementation", _attended),
    ("lightning.pytorch.trainer.connectors.accelerator_connector", "_AcceleratorConnector.__init__", _connected),
    ("pytorch_lightning.trainer.connectors.accelerator_connector", "_AcceleratorConnector.__init__", _connected),
    ("lightning.fabric.connector", "_Connector.__init__", _connected),
    ("lightning_fabric.connector", "_Connector.__init__", _connected),
)
PATCHES: dict[str, Callable[[Any], None]] = {
    **{module: patch_classes for module, _, _ in _METHODS},
    "tensorflow": patch_tensorflow,
}
