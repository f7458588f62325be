"""Every field of every facts class is filled in by each kind of training, or is listed here with the reason why not.

A field counts as filled if a file of that kind, or one that it shares with others, passes it to its class or to what changes
or measures facts, names it in a dictionary or assigns it. A new field that one kind forgets fails here, before a rule is silent there without anybody knowing.
"""

import ast
import dataclasses
import functools
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import trainwright
from trainwright import stages
from trainwright.core import Facts, Stage

ROOT = Path(trainwright.__file__).parent
_TORCH = (
    "adapters/data",
    "adapters/torch",
    "probes",
    "seams/torch",
    "tensors/torch",
    "adapters/base.py",
    "adapters/learning.py",
    "adapters/short_runs.py",
    "adapters/script_end/raised.py",
)
_OF_KERAS = {"of_keras.py", "repairs_of_keras.py"}
_OF_TRAINER, _OF_LIGHTNING = {"of_trainer.py", "trainer_batches.py"}, {"of_lightning.py"}
_OF_LOOPS = {"of_loop.py", "evaluation.py", "counting.py"}  # of whose facts a Trainer has its own
_LOOK = {path.name for path in (ROOT / "look").glob("*.py")} - _OF_KERAS - _OF_TRAINER - _OF_LIGHTNING


def _look(files: set[str]) -> tuple[str, ...]:
    return tuple(f"look/{name}" for name in sorted(files))


FILES = {
    "loop": (*_look(_LOOK), *_TORCH),
    "lightning": (*_look(_LOOK | _OF_LIGHTNING), *_TORCH),
    "trainer": (*_look(_LOOK - _OF_LOOPS | _OF_TRAINER), "adapters/trainer", *_TORCH),
    "keras": (
        "adapters/keras",
        "adapters/data",
        "probes",
        "seams/keras",
        "tensors/keras",
        "adapters/base.py",
        "adapters/learning.py",
        "adapters/short_runs.py",
        "adapters/script_end/raised.py",
        "look/of_keras.py",
    ),
}
for _module in pkgutil.iter_modules(stages.__path__):
    importlib.import_module(f"{stages.__name__}.{_module.name}")

ALL = tuple(FILES)
TORCH, KERAS = ("loop", "lightning", "trainer"), ("keras",)
LOOPS, TRAINER = ("loop", "lightning"), ("trainer",)
# Reason, kinds, fields. OPEN: the field would mean something there, and nobody has filled it in yet.
OPEN = "open: it would apply"
NOT_FILLED: list[tuple[str, tuple[str, ...], str]] = [
    ("made of the runs that every kind returns", ALL, """
        OverfitFacts.learnt OverfitFacts.falling OverfitFacts.diverged OverfitFacts.slow
        WarningFacts.heard"""),
    ("made of the short runs, in their own file", (*LOOPS, *KERAS), "OverfitFacts.losses"),
    ("columns that a Trainer drops", (*LOOPS, *KERAS), "BatchFacts.dropped_columns"),
    ("a class of the framework's that the script derives its trainer from", LOOPS, "SetupFacts.overrides"),
    ("the script's own statements make the steps", ("loop",), "SetupFacts.automatic_steps"),
    ("asked of the Trainer behind the run: its evaluation, its function of metrics, its steps on any batch", LOOPS, """
        EvaluationFacts.batch_keys EvaluationFacts.best_greater EvaluationFacts.best_metric
        EvaluationFacts.label_keys EvaluationFacts.planned
        EvaluationFacts.continuous_labels EvaluationFacts.guesses EvaluationFacts.ignored_share
        EvaluationFacts.keeps_predictions EvaluationFacts.label_values EvaluationFacts.loss_keys
        EvaluationFacts.memory_bytes EvaluationFacts.metrics_named EvaluationFacts.metrics_when
        EvaluationFacts.needs_all_rows EvaluationFacts.present EvaluationFacts.returned
        EvaluationFacts.set_name EvaluationFacts.set_names ForwardFacts.memory"""),
    ("an evaluation that the script's statements make, watched as it runs", TRAINER, """
        EvaluationFacts.comparisons EvaluationFacts.counters EvaluationFacts.evaluated_at EvaluationFacts.in_loop
        EvaluationFacts.quotients Comparison.of_pair Counter.added_at Counter.begun_at Counter.once Counter.start
        Counter.twice"""),
    ("a metric of Keras's own, which fit resets, asked twice behind the run", TORCH, "Counter.set_back_by"),
    ("an evaluation that is watched as it runs", KERAS, "Counter.begun_at Counter.carried"),
    ("a loss of Keras's own, with its settings, and a step that is compiled", TORCH, """
        LossCall.casts_targets LossCall.from_logits LossCall.library LossCall.own_name LossCall.takes_indices
        IneffectiveFreeze.after_compile MemoryFacts.activations_at_least ModuleFacts.fixed_size
        ParameterFacts.unit_axis"""),
    ("lists of parameters and calls of torch's functions that its patches see", KERAS, """
        SetupFacts.empty CutOff.updates_before LossCall.activation_called_at LossCall.made_at"""),
    ("of Keras's own batches: targets, weights and inputs by name, layers built by the first call", TORCH, """
        BatchFacts.weightless_rows BatchFacts.all_weightless BatchFacts.text_inputs
        BatchFacts.first_layer BatchFacts.unmasked_zeros BatchFacts.target_keys BatchFacts.targets_wanted_by
        BatchFacts.targets_found BatchFacts.made_floats BatchFacts.embedding BatchFacts.token_key
        DatasetFacts.endless DatasetFacts.batch_majority ForwardFacts.rebuilt ForwardFacts.mode_by_call
        ForwardFacts.called_at LossFacts.evaluation_call LossFacts.computed_by_nothing LossFacts.paired
        LossFacts.ignored_label LossFacts.outputs LossFacts.outputs_keyed LossFacts.outputs_named"""),
    ("of Keras's own optimizers, callbacks and devices", TORCH, """
        OptimizerFacts.rate_keyword OptimizerFacts.named_by_string OptimizerFacts.library
        OptimizerFacts.given_gradients OptimizerFacts.bound OptimizerFacts.schedule_moves_at
        GradientFacts.follows_loss_scale SetupFacts.takes_all_memory"""),
    ("a loader's collator and worker processes, which fit has not", KERAS, """
        BatchFacts.equal_rows_collate BatchFacts.item_shapes BatchFacts.stacked_lengths BatchFacts.forms_without
        BatchFacts.collator_masks BatchFacts.vocabulary_facts"""),
    ("a tokenizer, which the model's inputs do not lead to", KERAS, """
        BatchFacts.tokenizer_size BatchFacts.padding_shares BatchFacts.attended_padding BatchFacts.hidden_tokens
        BatchFacts.padding_tokens
        ForwardFacts.unmasked_padding_changes ForwardFacts.padding_let_in_changes LossFacts.token_offset
        ForwardFacts.causal"""),
    ("what the user's own statements do between backward and step, which fit has not", KERAS, """
        GradientFacts.wiped GradientFacts.wiped_passes GradientFacts.wiped_at GradientFacts.user_loss
        GradientFacts.in_place GradientFacts.kept GradientFacts.second_failure OptimizerFacts.schedule_first"""),
    ("a callback lowers the rate there, and a schedule is run dry", KERAS, """
        OptimizerFacts.schedule_direction OptimizerFacts.schedule_patience OptimizerFacts.schedule_seen"""),
    ("torch's anomaly mode and its traces of calls", KERAS, """
        GradientFacts.anomaly GradientFacts.anomaly_at ForwardFacts.constant_from ForwardFacts.fixed_at
        ForwardFacts.leaking_row ForwardFacts.leak_from ForwardFacts.placed_from"""),
    ("the Trainer's columns, sets by name, evaluation loop and best checkpoint", KERAS, """
        EvaluationFacts.metrics_named EvaluationFacts.needs_all_rows EvaluationFacts.ignored_share
        EvaluationFacts.keeps_predictions EvaluationFacts.set_names EvaluationFacts.set_name
        EvaluationFacts.batch_keys EvaluationFacts.loss_keys EvaluationFacts.best_metric
        EvaluationFacts.best_greater LossFacts.padding_label_change"""),
    ("a function of metrics that the framework calls", TORCH, "EvaluationFacts.metrics_by"),
    ("statements of a loop", KERAS, """
        DatasetFacts.batch_order DatasetFacts.evaluation_place DatasetFacts.mispaired EvaluationFacts.in_loop
        EvaluationFacts.evaluated_at EvaluationFacts.quotients EvaluationFacts.comparisons
        ForwardFacts.lost_modules ForwardFacts.mode_lost_at"""),
    ("torch's own scaler, whose scale only unscaled_late shows", TORCH, "GradientFacts.loss_scale"),
    ("Keras optimizers clip by themselves, what they have unscaled", KERAS, "GradientFacts.clipped_early GradientFacts.unscaled_late"),
    ("a sampler that the script gives to its loader, and whether that drops a last batch", KERAS, """
        DatasetFacts.sampler_weights DatasetFacts.drops_last"""),
    ("callbacks that watch a metric", TORCH, "EvaluationFacts.watchers EvaluationFacts.logged"),
    ("fit evaluates in its own mode, and predicts all rows", KERAS, """
        EvaluationFacts.label_keys EvaluationFacts.memory_bytes"""),
    (OPEN, TORCH, "BatchFacts.evaluation_tensors"),
    (OPEN, LOOPS, "GradientFacts.anomaly GradientFacts.anomaly_at LossFacts.padding_label_change"),
    (OPEN, TORCH, "EvaluationFacts.reshuffled"),
    (OPEN, KERAS, """
        OptimizerFacts.weights_bytes OptimizerFacts.gradients_bytes ParameterFacts.orthogonal
        SetupFacts.idle OptimizerFacts.state_bytes ForwardFacts.works_at_rows GradientFacts.update_growth
        LossFacts.renormalised LossFacts.terms LossFacts.unchanged_by_weights OptimizerFacts.warmup_updates
        SetupFacts.unmatched_checkpoints ForwardFacts.has_last_weights"""),
    ("a schedule that raises ends the run itself", TORCH, "OptimizerFacts.schedule_failure"),
    ("fit makes an update of each batch", KERAS, """
        GradientFacts.accumulated_batches GradientFacts.accumulated_share GradientFacts.only_last"""),
]  # fmt: skip


CLASSES = {
    kind.__name__: kind
    for info in pkgutil.iter_modules(stages.__path__)
    for kind in vars(importlib.import_module(f"{stages.__name__}.{info.name}")).values()
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__.startswith(stages.__name__)
}
STAGES = [kind for kind in Facts.__subclasses__() if kind.stage != Stage.REHEARSAL]
# A keyword that is passed to one of these fills a field of any class.
_FILLS = re.compile("replace|set_fields|dict|measure_.*|.*_facts")


@functools.cache
def filled(kind: str) -> tuple[frozenset[str], frozenset[str]]:
    """The fields, `Class.name`, that a kind of training passes to their class, with what it puts into dictionaries, assigns or
    changes, as names; and the classes that it makes."""
    found: set[str] = set()
    made: set[str] = set()
    for path in (p for part in FILES[kind] for p in _files(ROOT / part)):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                names = {word.arg for word in node.keywords if word.arg}
                if called in CLASSES:
                    made.add(called)
                    fields = [f.name for f in dataclasses.fields(CLASSES[called])]
                    found |= {f"{called}.{name}" for name in (*names, *fields[: len(node.args)])}
                elif _FILLS.fullmatch(called):
                    found |= names
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
    return frozenset(found), frozenset(made)


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("*.py"))


def listed(kind: str) -> set[str]:
    """The fields that a kind is excused from."""
    return {name for _, kinds, names in NOT_FILLED if kind in kinds for name in names.split()}


@pytest.mark.parametrize("kind", ALL)
def test_each_kind_of_training_fills_each_field_or_is_excused(kind: str) -> None:
    found, made = filled(kind)
    # Words have defaults for any framework. A record is filled by what happens; a part of a stage's facts that nothing makes is missing in these.
    checked = [c for c in CLASSES.values() if (c in STAGES if issubclass(c, Facts) else c.__name__ in made - {"Words"})]
    fields = {(c.__name__, f.name) for c in checked for f in dataclasses.fields(c)}
    missing = {f"{c}.{name}" for c, name in fields if not {name, f"{c}.{name}"} & found}
    assert missing - listed(kind) == set()
    assert listed(kind) - missing == set()  # excuses that are no longer needed
