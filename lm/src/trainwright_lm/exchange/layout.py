"""Maps our networks to and from transformers' names and layout, for configuration and weights.

The names are in layouts.toml; here is what follows from a network's sizes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

from trainwright.errors import ReadError, UsageError
from trainwright_lm.config import ModelConfig, Recipe, check_recipe
from trainwright_lm.network.model import INITIAL_DEVIATION, LAYER_NORM_EPSILON, RMS_NORM_EPSILON, ROPE_BASE, mlp_width

_LAYOUTS = tomllib.loads(files("trainwright_lm.exchange").joinpath("layouts.toml").read_text("utf-8"))
_ARCHITECTURES: dict[str, Any] = {layout["settings"]["model_type"]: name for name, layout in _LAYOUTS.items()}


def their_settings(config: ModelConfig, end_id: int) -> dict[str, Any]:
    """The contents of config.json."""
    layout = _LAYOUTS[config.architecture]
    shared = {
        **layout["settings"],
        **{theirs: getattr(config, ours) for ours, theirs in layout["sizes"].items()},
        "initializer_range": INITIAL_DEVIATION,
        "bos_token_id": end_id,
        "eos_token_id": end_id,
        "tie_word_embeddings": True,
        "use_cache": True,
        "dtype": "float32",
    }
    if config.architecture == "gpt2":
        return {
            # transformers reads n_positions, older tools read n_ctx, and neither is derived from the other.
            "n_ctx": config.context,
            "embd_pdrop": config.dropout,
            "attn_pdrop": config.dropout,
            "layer_norm_epsilon": LAYER_NORM_EPSILON,
            **shared,
        }
    return {
        "intermediate_size": mlp_width(config),
        "num_key_value_heads": config.heads,
        "head_dim": config.width // config.heads,
        "rms_norm_eps": RMS_NORM_EPSILON,
        "rope_theta": ROPE_BASE,  # transformers 4
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_BASE},  # transformers 5
        **shared,
    }


def our_config(settings: Mapping[str, Any]) -> ModelConfig:
    """The network that a config.json describes.

    Raises:
        ReadError: if it is not supported; the message says which settings differ.
    """
    kind = settings.get("model_type", "")
    if kind not in _ARCHITECTURES:
        raise ReadError(f"config.json's model_type must be gpt2 or qwen3; got {kind!r}.")
    try:
        names = _LAYOUTS[architecture := _ARCHITECTURES[kind]]["sizes"]
        given = {names["dropout"]: 0.1 if kind == "gpt2" else 0.0, **settings}
        config = ModelConfig(architecture=architecture, **{ours: given[theirs] for ours, theirs in names.items()})
        check_recipe(Recipe(model=config))
    except (KeyError, TypeError) as error:
        raise ReadError(
            f"config.json must have the sizes of a {kind} model; {error!r} is missing or not a number."
        ) from error
    except UsageError as error:
        raise ReadError(f"config.json must describe a network that can be built here: {error}") from error
    for name, (wanted, got) in _demands(settings, config).items():
        if got not in wanted:
            raise ReadError(f"config.json's {name} must be {' or '.join(map(repr, wanted))}; got {got!r}.")
    return config


def their_weights(state: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """The parameters under transformers' names, in fp32."""
    theirs: dict[str, Tensor] = {}
    for name, names in _parts(config).items():
        for kind in ("weight", "bias"):
            if (ours := state.get(f"{name}.{kind}")) is None:
                continue
            pieces = _turned(ours, name, config).chunk(len(names))
            theirs |= {f"{n}.{kind}": p.detach().float().contiguous() for n, p in zip(names, pieces)}
    return theirs


def our_weights(theirs: Mapping[str, Tensor], wanted: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """The parameters under our names, in fp32.

    Args:
        wanted: the parameters of one of our networks, for their names and shapes.

    Raises:
        ReadError: if a parameter is missing, unexpected or has the wrong shape.
    """
    left = _cleaned(theirs, config)
    ours: dict[str, Tensor] = {}
    for name, like in wanted.items():
        module, _, kind = name.rpartition(".")
        names = [f"{n}.{kind}" for n in _parts(config)[module]]
        if missing := [n for n in names if n not in left]:
            raise ReadError(f"The weight {missing[0]} is missing.")
        joined = _turned(torch.cat([left.pop(n) for n in names]), module, config)
        if joined.shape != like.shape:
            raise ReadError(
                f"{' and '.join(names)} must have the shape {tuple(like.shape)} here; got {tuple(joined.shape)}."
            )
        ours[name] = joined.float().contiguous()
    if left:
        raise ReadError(f"The weights must match config.json; {sorted(left)[0]} does not belong to that model.")
    return ours


def _parts(config: ModelConfig) -> dict[str, tuple[str, ...]]:
    return {
        name.format(layer): tuple(one.format(layer) for one in theirs)
        for layer in range(config.layers)
        for name, theirs in _LAYOUTS[config.architecture]["weights"].items()
    }


def _turned(matrix: Tensor, module: str, config: ModelConfig) -> Tensor:
    """GPT-2 stores the matrices of its layers as (inputs, outputs)."""
    turns = config.architecture == "gpt2" and module.startswith("layers.") and matrix.dim() == 2
    return matrix.t() if turns else matrix


def _demands(settings: Mapping[str, Any], config: ModelConfig) -> dict[str, tuple[list[Any], Any]]:
    """The other settings: allowed values and the actual value, or transformers' default if it is not given."""
    # transformers' default, then what is allowed
    demands: dict[str, tuple[Any, ...]]
    if config.architecture == "gpt2":
        demands = {
            "activation_function": ("gelu_new", "gelu_new", "gelu_pytorch_tanh"),  # the same function
            "n_inner": (None, None, 4 * config.width),
            "layer_norm_epsilon": (1e-5, LAYER_NORM_EPSILON),
            "scale_attn_weights": (True, True),
            "scale_attn_by_inverse_layer_idx": (False, False),
            "add_cross_attention": (False, False),
            "tie_word_embeddings": (True, True),
        }
    else:
        rope = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
        settings = {**settings, "rope_type": rope.get("rope_type", "default")}
        settings["rope_theta"] = rope.get("rope_theta", settings.get("rope_theta", 10_000.0))
        demands = {
            "hidden_act": ("silu", "silu"),
            "intermediate_size": (22_016, mlp_width(config)),
            "num_key_value_heads": (32, None, config.heads),
            "head_dim": (128, config.width // config.heads),
            "rms_norm_eps": (1e-6, RMS_NORM_EPSILON),
            "attention_bias": (False, False),
            "use_sliding_window": (False, False),
            "tie_word_embeddings": (False, True),
            "rope_type": (None, "default"),
            "rope_theta": (None, ROPE_BASE),
        }
    return {name: (allowed, settings.get(name, default)) for name, (default, *allowed) in demands.items()}


def _cleaned(theirs: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """The weights without the output layer's, which equal the embedding's, and without old GPT-2 files' buffers."""
    kept = dict(theirs)
    if config.architecture == "gpt2":
        if "wte.weight" in kept:  # the published file has the inner model's names
            kept = {f"transformer.{name}": tensor for name, tensor in kept.items()}
        kept = {n: t for n, t in kept.items() if not n.endswith((".attn.bias", ".attn.masked_bias"))}
    embedding = kept.get(f"{_parts(config)['embedding'][0]}.weight")
    output = kept.pop("lm_head.weight", None)
    if output is not None and (embedding is None or not torch.equal(output, embedding)):
        raise ReadError("lm_head.weight must be the embedding's weight (tied); it differs.")
    return kept
