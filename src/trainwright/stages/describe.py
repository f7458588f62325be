"""A stage's facts in a few words, for the table of stages."""

from __future__ import annotations

from functools import singledispatch

from trainwright.core import Facts, cells
from trainwright.stages.batch import BatchFacts
from trainwright.stages.dataset import DatasetFacts, LabelFacts, SplitFacts
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.gradients import GradientFacts
from trainwright.stages.loss import LossFacts
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.overfit import OverfitFacts
from trainwright.stages.setup import SetupFacts

# At most this many of a batch's tensors are shown by name, and so many labels with their rows.
_SHOWN = 6
_SHOWN_LABELS = 10
# Less memory than this is of no concern.
_WORTH_BYTES = 100 * 2**20
# A text that is cut to less than a quarter is worth a word.
_CUT = 4.0


@singledispatch
def describe(facts: Facts) -> str:
    """The facts in a few words."""
    return ""


@describe.register
def _(facts: SetupFacts) -> str:
    updates = f", {facts.planned_updates:,} updates planned" if facts.planned_updates else ""
    trainable = f"{facts.trainable_parameters:,} of {facts.parameters:,} parameters trainable"
    return (
        f"{facts.model_class or 'no model yet'}, {trainable if facts.parameters else 'no parameters yet'}, "
        f"{facts.device} {facts.precision}{updates}{_planned_memory(facts)}{_brought(facts)}"
        f"{''.join(f'; {idle}' for idle in facts.idle)}"
    )


def _planned_memory(facts: SetupFacts) -> str:
    """What training will hold in memory, known before any step; nothing of a small model."""
    held = facts.planned_memory
    if held is None or held.weights_bytes + held.gradients_bytes + held.state_bytes < _WORTH_BYTES:
        return ""
    parts = [("weights", held.weights_bytes), ("gradients", held.gradients_bytes)]
    total = held.weights_bytes + held.gradients_bytes + held.state_bytes
    told = ", ".join(f"{name} {size / 2**20:,.0f} MB" for name, size in parts)
    state = f"optimizer {held.state_bytes / 2**20:,.0f} MB" if held.state_known else "and the optimizer's state"
    return (
        f"; needs {'' if held.state_known else 'more than '}{total / 2**20:,.0f} MB besides the batch: {told}, {state}"
    )


def _brought(facts: SetupFacts) -> str:
    """The defaults of an object that the script named by a string: `"adam"` is Adam with all its defaults."""
    brought: dict[str, list[str]] = {}
    for full_name, argument in facts.arguments.items():
        owner, _, name = full_name.rpartition(".")
        named = facts.arguments.get(owner)
        if named is not None and isinstance(named.value, str) and not argument.given:
            unused = argument.value is None or (argument.value is False and owner == "optimizer")
            if not unused:
                brought.setdefault(named.value, []).append(f"{name} {argument.value}")
    return "".join(f'; "{owner}" sets {", ".join(names)}' for owner, names in brought.items())


# The most frequent class has half the rows, and so many times those that it would have if all were equal.
_HALF, _UNEVEN = 0.5, 1.5


@describe.register
def _(facts: DatasetFacts) -> str:
    return "; ".join(_split(s) for s in facts.splits) + _cut_texts(facts)


def _cut_texts(facts: DatasetFacts) -> str:
    """How much of the texts a tokenizer call keeps, if it cuts most of them away."""
    texts = facts.texts
    if texts is None or texts.source_tokens is None or texts.source_tokens < _CUT * texts.longest:
        return ""
    away = 1 - texts.longest / texts.source_tokens
    return f"; {away:.0%} of the median text is cut away: it has {texts.source_tokens:,.0f} tokens, a row at most {texts.longest:,}"


def _split(split: SplitFacts) -> str:
    if split.rows is None and not split.sampled:
        return f"the loop takes its own {split.name} rows"
    rows = f"{split.rows:,}" if split.rows is not None else f"{split.sampled}+"
    labels = split.labels
    if labels is None or not labels.census or len(labels.census) > 1000 or labels.per_row > 1:
        return f"{split.name} {rows} rows"
    values = "1 label value" if labels.classes == 1 else f"{labels.classes} label values"
    return f"{split.name} {rows} rows, {values} over {labels.rows_read:,} rows{_uneven(labels)}"


def _uneven(labels: LabelFacts) -> str:
    """The share of the most frequent class, if it has many more rows than the others."""
    if labels.kind != "class" or labels.classes < 2 or labels.majority_share < max(_HALF, _UNEVEN / labels.classes):
        return ""
    most = max(labels.census, key=lambda value: labels.census[value])
    name = f" ({labels.class_names[most]})" if isinstance(most, int) and 0 <= most < len(labels.class_names) else ""
    return f", {labels.majority_share:.1%} of them {most}{name}"


@describe.register
def _(facts: BatchFacts) -> str:
    shapes = [f"{k} {tuple(t.shape)} {t.dtype}" for k, t in facts.tensors.items()]
    more = [f"{len(shapes) - _SHOWN} more"] if len(shapes) > _SHOWN else []
    return ", ".join(shapes[:_SHOWN] + more) + (
        f", {facts.padding_share:.0%} padding" if facts.padding_share is not None else ""
    )


@describe.register
def _(facts: ForwardFacts) -> str:
    return f"output {facts.output.shape} {facts.output.dtype}" if facts.output else "no scores seen"


# Chance is that of the loss call; what is minimized may be that many times larger, by other terms or a factor.
_MOSTLY_OTHER = 2.0
# A factor this near to 1 is none; of a loss, a term of less than this share is not told.
_FACTOR, _WORTH_A_WORD = 1e-3, 0.05


@describe.register
def _(facts: LossFacts) -> str:
    value = f"{facts.value:.4f}" if facts.value is not None else "no value was seen"
    plain = facts.call.plain_value if facts.call and facts.call.is_reweighted else None
    if plain is not None and facts.value is not None and abs(plain - facts.value) > 0.01 * abs(facts.value):
        unweighted = ", unweighted" if facts.call and facts.call.options.get("has_weight") else ""
        value += f" ({plain:.4f} nats per label{unweighted})"
    elif facts.chance_nats and (one := facts.call) and (facts.value or 0.0) > _MOSTLY_OTHER * (one.value or 0.0) > 0:
        value += f" ({one.function} alone is {one.value:.4f}{_further(facts)})"
    if facts.chance_nats:
        return f"{value}; chance is {facts.chance_nats:.4f} over {facts.classes} classes"
    of_call = facts.call.value if facts.call else None
    alone = of_call is not None and facts.value is not None and abs(of_call - facts.value) <= 0.01 * abs(facts.value)
    return value + (f" (an uninformed model scores {facts.expected:.4f})" if facts.expected and alone else "")


def _further(facts: LossFacts) -> str:
    """What else is in a loss that is much more than its call: a factor, and the largest other term with its line."""
    call, other, value = facts.call, facts.largest_other, facts.value or 0.0
    factors = [one.factor for one in facts.terms if call is not None and one.function == call.function]
    told = f", times {factors[0]:.4g}" if len(factors) == 1 and abs(factors[0] - 1) > _FACTOR else ""
    if other is None or abs(other.value) <= _WORTH_A_WORD * abs(value):
        return told
    kind = "a constant" if other.is_constant else "another term"
    share = f"{other.value / value:.2%} of the loss" if value else ""
    return f"{told}; {kind} adds {other.value:.5g}, {share}{f', {other.where}' if other.where else ''}"


@describe.register
def _(facts: GradientFacts) -> str:
    reached = sum(g.norm is not None for g in facts.gradients)
    norm = f", norm {facts.norm:.3g}" if facts.norm is not None else ""
    return f"{reached} of {len(facts.gradients)} parameters reached{norm}"


@describe.register
def _(facts: OptimizerFacts) -> str:
    if not facts.kind:
        return "no optimizer: the script updates the parameters itself"
    origin = "" if facts.rate_given else " (default)"
    held = f"holds {len(facts.trainable) - len(facts.unregistered)} of {len(facts.trainable)} trainable parameters"
    return f"{facts.kind}, rate {facts.learning_rate:.3g}{origin}, {held}{_memory(facts)}"


def _memory(facts: OptimizerFacts) -> str:
    """What training holds in memory whatever the batch is; nothing of a small model."""
    parts = (("weights", facts.weights_bytes), ("gradients", facts.gradients_bytes), ("optimizer", facts.state_bytes))
    if sum(size for _, size in parts) < _WORTH_BYTES:
        return ""
    told = ", ".join(f"{name} {size / 2**20:,.0f} MB" for name, size in parts)
    return f"; memory without the batch: {told}"


@describe.register
def _(facts: EvaluationFacts) -> str:
    if facts.in_loop:
        return _in_loop(facts)
    shown = {k: v for k, v in facts.metrics.items() if not k.endswith(("runtime", "per_second", "preparation_time"))}
    values = ", ".join(f"{k} {v:.4g}" for k, v in list(shown.items())[:4]) or "no loss and no metrics"
    values += _guessing(facts, list(shown)[:4])
    if facts.set_name and len(facts.set_names) > 1:
        values += (
            f' (on the set "{facts.set_name}"; {", ".join(n for n in facts.set_names if n != facts.set_name)} not read)'
        )
    return values


def _guessing(facts: EvaluationFacts, names: list[str]) -> str:
    """What guessing would give of these metrics."""
    told = []
    for name, guess in facts.guesses.items():
        if any(shown == name or shown.endswith(f"_{name}") for shown in names):
            values = ((guess.constant, "constant"), (guess.random, "random"))
            told.append(f"{name} {', '.join(f'{v:.4g} ({how})' for v, how in values if v is not None)}")
    return f"; guessing gives {', '.join(told)}" if told else ""


def _in_loop(facts: EvaluationFacts) -> str:
    places = facts.evaluated_at[:3]
    where = (
        f"{facts.batches} {'batch' if facts.batches == 1 else 'batches'} of a pass tried, evaluated at "
        f"{cells.tell_lines(places[0].file, [p.line for p in places])}"
        if places
        else "metrics of the training steps"
    )
    counted = ", ".join(c.name for c in facts.counters[:4])
    return where + (f"; counted: {counted}" if counted else "")


@describe.register
def _(facts: OverfitFacts) -> str:
    steps = f"loss {facts.losses[0]:.4g} to {facts.losses[-1]:.4g} in {len(facts.losses)} steps: {_progress(facts)}"
    return f"{steps}{_by_heart(facts)}{_of_its_rows(facts)}"


def _by_heart(facts: OverfitFacts) -> str:
    """How many of a batch's answers are right at the end; of numbers, how near they are."""
    hits, constant, last = facts.hits, facts.constant, facts.evaluated
    if hits is not None:
        of = f"{hits.right:,} of {hits.answers:,}"
        of += "" if hits.answers == facts.rows else " labels" if hits.of_labels else " positions"
        all_right = hits.right == hits.answers
        return f"; in evaluation mode right: {of}" if facts.learnt and not all_right else f"; learned by heart: {of}"
    if constant is None or last is None:
        return ""
    return f"; at its end {last:.4g}, the best constant answer has {constant:.4g}"


def _of_its_rows(facts: OverfitFacts) -> str:
    """Which labels the rows of a batch hold."""
    labels = facts.labels
    if not labels:
        return ""
    if len(labels) == 1:
        only = next(iter(labels))
        return f"; all its {facts.rows} rows have one label, {only}, so that a constant answer is right"
    if len(labels) > _SHOWN_LABELS:
        fewest, most = min(labels.values()), max(labels.values())
        each = f"{fewest} rows" if fewest == most else f"{fewest} to {most} rows"
        return f"; its {facts.rows} rows hold {len(labels)} labels, {each} each"
    return f"; its {facts.rows} rows hold labels {', '.join(f'{c}: {n}' for c, n in labels.items())}"


def _progress(facts: OverfitFacts) -> str:
    """How far a batch was learned: one word, or the fraction of the way from a constant prediction to the floor."""
    if facts.learnt:
        return "learned"
    if facts.unlearned:
        return "not learned"
    return f"{facts.share:.0%} learned" if not (facts.falling and facts.losses[-1] < facts.losses[0]) else "falling"
