"""A recipe: which model to train, on how much data, and how. Presets, TOML files and `--set` produce it."""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from trainwright.errors import ReadError, UsageError

PRESETS = ("tiny", "small", "gpt2")
# More processors than any machine has; a higher number is a mistake.
MOST_THREADS = 1024
# A training too short for the preset's warm-up uses this fraction of its updates instead.
SHORT_WARMUP = 10
_POSITIVE = "model.layers model.heads model.width model.context data.windows optimizer.learning_rate run.log_every"
# Names of numbers, all if there are none; whether a value is right, and how a right one is.
_RANGES: tuple[tuple[Sequence[str], Callable[[float], bool], str], ...] = (
    (_POSITIVE.split(), lambda value: not value <= 0, "above 0"),
    ((), lambda value: 0 <= value < math.inf, "a finite number and not negative"),
    (("model.dropout", "optimizer.beta1", "optimizer.beta2"), lambda value: value < 1, "at least 0 and below 1"),
    (("run.seed", "run.updates"), lambda value: value < 2**63, "below 2 to the 63"),
    (("schedule.decay_share", "schedule.floor"), lambda value: value <= 1, "between 0 and 1"),
    (("run.threads",), lambda value: value <= MOST_THREADS, f"at most {MOST_THREADS}"),
)


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The network's shape."""

    architecture: Literal["modern", "gpt2"] = "modern"
    """modern: RoPE, RMSNorm, QK-norm, SwiGLU, no biases (transformers' Qwen3); gpt2: as published in 2019."""
    layers: int = 4
    heads: int = 4
    width: int = 256
    context: int = 128
    """Positions; a window has one more token, so that each position has a target."""
    dropout: float = 0.0
    vocabulary_size: int = 0
    """0: the vocabulary size of the prepared data's tokenizer."""


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """How tokens are packed into windows."""

    packing: Literal["join", "tail"] = "join"
    """join: documents in a row, separated by end tokens; tail: each document alone, dropping its incomplete tail."""
    windows: int = 32
    """Windows per optimizer update, over all processes and micro-batches."""
    micro_windows: int = 0
    """Windows per forward pass in one process; 0: all at once."""
    limit: int = 0
    """Train only on the first N windows; 0: all."""


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Hyperparameters of AdamW, and of Muon if it is used for the matrices."""

    name: Literal["adamw", "muon"] = "muon"
    """muon: used for the matrices of the layers; embeddings, norms and biases use AdamW."""
    learning_rate: float = 5e-4
    """AdamW's peak learning rate."""
    muon_learning_rate: float = 0.02
    weight_decay: float = 0.1
    """Applied to matrices only, not to norms and biases."""
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    clip: float = 1.0
    """Maximum norm of all gradients together; 0: no clipping."""


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """The learning rate schedule."""

    shape: Literal["cosine", "linear", "wsd", "constant"] = "cosine"
    """wsd: warm-up, stable, decay."""
    warmup_updates: int = 0
    decay_share: float = 0.2
    """wsd: the final fraction of updates, during which the rate decays."""
    floor: float = 0.0
    """The lowest rate after warm-up, as a fraction of the peak."""


@dataclass(frozen=True, kw_only=True)
class LossConfig:
    """Cross-entropy in nats, with optional terms."""

    key_tokens: tuple[str, ...] = ()
    """Words whose count increases a window's loss weight, each with and without a leading space."""
    key_weight: float = 1.0
    """A window's weight is 1 + key_weight x its number of key tokens, divided by the update's mean weight."""
    z_loss: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """How long to train, in which precision, and what happens during training."""

    updates: int = 0
    """Optimizer updates; 0: as many as `epochs` requires."""
    epochs: float = 1.0
    seed: int = 0
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """auto: the faster one, as measured when the run begins."""
    threads: int = 0
    """torch's CPU threads; 0: OMP_NUM_THREADS, or the fastest number, as measured when the run begins."""
    compile: Literal["auto", True, False] = "auto"
    """auto: the layers and the loss on a GPU, if their gradients are then those of the uncompiled ones."""
    evaluate_every: int = 100
    evaluate_windows: int = 0
    """Validation windows per evaluation during training, evenly spaced; 0: all."""
    sample_every: int = 0
    """Updates between completions of `prompts`; 0: none."""
    prompts: tuple[str, ...] = ("plt.sc", "df.groupby(", "from sklearn.")
    save_every: int = 100
    keep: int = 2
    """Number of newest checkpoints to keep, besides the best one."""
    log_every: int = 10
    sinks: tuple[str, ...] = ()
    """tensorboard, trackio, wandb; log.jsonl is always written."""
    distributed: Literal["ddp", "fsdp"] = "ddp"
    """How torchrun's processes divide the work."""
    common_disk: bool = True
    """Whether all machines see the run's folder; false: the first process alone reads and writes it."""
    check: bool = True
    """Check the training with the debugger before it begins."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that determines a run, except its data."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    run: RunConfig = field(default_factory=RunConfig)


def load_recipe(preset: str = "tiny", file: Path | None = None, settings: Sequence[str] = ()) -> Recipe:
    """Load the preset's recipe, then apply a TOML file, then settings of the form "section.key=value".

    Raises:
        UsageError: if a name is unknown or a value is invalid.
        ReadError: if the file cannot be read.
    """
    if preset not in PRESETS:
        raise UsageError(f'The preset must be one of {", ".join(PRESETS)}; got "{preset}".{_near(preset, PRESETS)}')
    packaged = resources.files("trainwright_lm") / "presets" / f"{preset}.toml"
    recipe = recipe_from(tomllib.loads(packaged.read_text(encoding="utf-8")))
    named = [*([_read(file)] if file is not None else []), *map(_parsed, settings)]
    for tables in named:
        recipe = recipe_from(tables, recipe)
    if not any("warmup_updates" in tables.get("schedule", {}) for tables in named):
        recipe = _warmed_up(recipe)
    return check_recipe(recipe)


def _warmed_up(recipe: Recipe) -> Recipe:
    """Shorten a preset's warm-up if it would take more than half of a short training."""
    warmup, updates = recipe.schedule.warmup_updates, recipe.run.updates
    if not updates or warmup <= updates // 2:
        return recipe
    return dataclasses.replace(
        recipe, schedule=dataclasses.replace(recipe.schedule, warmup_updates=updates // SHORT_WARMUP)
    )


def recipe_from(tables: Mapping[str, Any], base: Recipe | None = None) -> Recipe:
    """The base recipe with the settings from TOML tables applied.

    Raises:
        UsageError: if a section or key is unknown or a value has the wrong type.
    """
    recipe = base or Recipe()
    sections = {f.name for f in dataclasses.fields(Recipe)}
    for section, values in tables.items():
        if section not in sections:
            raise UsageError(
                f'A recipe\'s sections are {", ".join(sorted(sections))}; got "{section}".{_near(section, sections)}'
            )
        if not isinstance(values, Mapping):
            raise UsageError(f"[{section}] must be a table of settings; got {values!r}.")
        recipe = dataclasses.replace(recipe, **{section: _changed(getattr(recipe, section), section, values)})
    return recipe


def as_tables(recipe: Recipe) -> dict[str, dict[str, Any]]:
    """The recipe as tables for TOML or JSON; `recipe_from` reads them back."""
    return {
        section: {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
        for section, values in dataclasses.asdict(recipe).items()
    }


def check_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe after checking that its settings are consistent.

    Raises:
        UsageError: if they are not.
    """
    values = {f"{section}.{key}": value for section, own in as_tables(recipe).items() for key, value in own.items()}
    numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
    for names, is_right, wanted in _RANGES:
        for name in names or numbers:
            if not is_right(numbers[name]):
                raise UsageError(f"{name} must be {wanted}; got {numbers[name]}.")
    model, data = recipe.model, recipe.data
    if model.width % (2 * model.heads):
        raise UsageError(
            f"model.width must be an even multiple of model.heads; got width {model.width} and {model.heads} heads."
        )
    if data.micro_windows and data.windows % data.micro_windows:
        raise UsageError(
            f"data.windows must be a multiple of data.micro_windows; got {data.windows} and {data.micro_windows}."
        )
    if not recipe.run.updates and not recipe.run.epochs > 0:
        raise UsageError("run.updates or run.epochs must be above 0; both are 0.")
    unknown = set(recipe.run.sinks) - {"tensorboard", "trackio", "wandb"}
    if unknown:
        raise UsageError(f"run.sinks may name tensorboard, trackio and wandb; got {', '.join(sorted(unknown))}.")
    return recipe


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ReadError(f"{file} must be a readable TOML file: {error}") from error


def _parsed(setting: str) -> dict[str, dict[str, Any]]:
    """Parse `model.layers=6` into tables; a value that is not valid TOML is a string."""
    path, equals, value = setting.partition("=")
    if "\n" in value:
        raise UsageError(f"--set takes one setting on one line; got {setting!r}.")
    section, dot, key = path.strip().partition(".")
    if not equals or not dot:
        raise UsageError(f'--set must have the form section.key=value, as in model.layers=6; got "{setting}".')
    try:
        return {section: {key: tomllib.loads(f"value = {value}")["value"]}}
    except tomllib.TOMLDecodeError:
        return {section: {key: value.strip()}}


def _changed(section: Any, name: str, values: Mapping[str, Any]) -> Any:
    types = get_type_hints(type(section))
    for key in values:
        if key not in types:
            raise UsageError(f'[{name}] has no setting "{key}".{_near(key, types)}')
    return dataclasses.replace(
        section, **{key: _fitted(value, types[key], f"{name}.{key}") for key, value in values.items()}
    )


def _fitted(value: Any, wanted: Any, name: str) -> Any:
    """Convert the value to the setting's type; an integer is accepted for a float and a list for a tuple.

    The command line's own conversion (cyclopts) is too lenient here: it rounds 2.6 layers to 3 and accepts "6" for 6.
    """
    if get_origin(wanted) is Literal:
        if value in get_args(wanted):
            return value
        raise UsageError(
            f"{name} must be one of {', '.join(str(one).lower() if isinstance(one, bool) else one for one in get_args(wanted))}; got {value!r}."
        )
    if get_origin(wanted) is tuple and isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return tuple(value)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(wanted, type | UnionType) and isinstance(value, wanted):
        if wanted is bool or not isinstance(value, bool):
            return value
    kind = "a list of strings" if get_origin(wanted) is tuple else f"of type {wanted.__name__}"
    raise UsageError(f"{name} must be {kind}; got {value!r}.")


def _near(word: str, words: Sequence[str] | set[str] | Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(word, list(words), n=1)
    return f' Did you mean "{near[0]}"?' if near else ""
