"""Faults of the learning rate and of its schedule."""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.source import Planted, Source, called, keyword, number

OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax", "Lion", "Nadam")
_RATES = ("lr", "learning_rate", "base_lr", "peak_lr", "max_lr", "initial_learning_rate", "warmup_target")


def _rates(source: Source) -> Iterator[cst.BaseExpression]:
    """Literal rates: of optimizers and settings, of variables, of the defaults of arguments."""
    for call in source.find(m.Call()):
        for arg in call.args:
            if arg.keyword and arg.keyword.value in _RATES and number(arg.value):
                yield arg.value
        if (
            called(call) in OPTIMIZERS
            and len(call.args) > 1
            and not call.args[1].keyword
            and number(call.args[1].value)
        ):
            yield call.args[1].value
        if called(call) in OPTIMIZERS and call.args and not call.args[0].keyword and number(call.args[0].value):
            yield call.args[0].value  # Keras
        default = keyword(call, "default")
        if called(call) in ("add_argument", "option") and default and number(default.value):
            if any("lr" in source.code(a) or "learning" in source.code(a) for a in call.args[:2]):
                yield default.value
    for statement in source.find(m.Assign()):
        name = statement.targets[0].target
        if isinstance(name, cst.Name) and name.value.lower() in _RATES and number(statement.value):
            yield statement.value


@operator("excessive-learning-rate", "non-finite-loss", "hidden-default-rate")
def rate_times_1000(source: Source) -> Iterator[Planted]:
    """The learning rate is 1000 times as large."""
    for rate in _rates(source):
        yield source.replaced(rate, f"{number(rate) * 1000:g}")


@operator("excessive-learning-rate", "non-finite-loss", "hidden-default-rate")
def rate_times_100(source: Source) -> Iterator[Planted]:
    """The learning rate is 100 times as large."""
    for rate in _rates(source):
        yield source.replaced(rate, f"{number(rate) * 100:g}")


@operator("negligible-learning-rate")
def rate_over_1000(source: Source) -> Iterator[Planted]:
    """The learning rate is a thousandth of what it was."""
    for rate in _rates(source):
        yield source.replaced(rate, f"{number(rate) / 1000:g}")


@operator("negligible-learning-rate", "schedule-in-wrong-unit")
def endless_warmup(source: Source) -> Iterator[Planted]:
    """The warm-up is a hundred times longer than the run."""
    for call in source.find(m.Call()):
        for name in ("warmup_steps", "num_warmup_steps"):
            arg = keyword(call, name)
            if arg:
                yield source.replaced(arg.value, f"({source.code(arg.value)} + 1) * 10_000")
        if called(call) == "LinearLR" and keyword(call, "total_iters"):
            yield source.argument(call, "total_iters", "1_000_000")


@operator("excessive-weight-decay", "unlearnable-batch", "constant-output")
def decay_outweighs_the_gradient(source: Source) -> Iterator[Planted]:
    """The weight decay is so strong that no weight stays away from zero."""
    for call in source.calls(*OPTIMIZERS):
        if called(call) in ("AdamW", "SGD", "Adam"):
            yield source.argument(call, "weight_decay", "10.0" if called(call) == "AdamW" else "1.0")
    for call in source.calls("TrainingArguments", "Seq2SeqTrainingArguments"):
        yield source.argument(call, "weight_decay", "100.0")


@operator("negligible-learning-rate", "schedule-in-wrong-unit")
def schedule_ends_early(source: Source) -> Iterator[Planted]:
    """The schedule reaches zero after a few updates: its length is counted in another unit."""
    for call in source.calls("CosineAnnealingLR", "OneCycleLR", "get_linear_schedule_with_warmup", "CosineDecay"):
        for name in ("T_max", "total_steps", "num_training_steps", "decay_steps"):
            arg = keyword(call, name)
            if arg:
                yield source.replaced(arg.value, f"max(2, ({source.code(arg.value)}) // 50)")
    for call in source.calls("CosineAnnealingLR"):
        if len(call.args) > 1 and not call.args[1].keyword:
            yield source.replaced(call.args[1].value, f"max(2, ({source.code(call.args[1].value)}) // 50)")


@operator("schedule-in-wrong-unit", "negligible-learning-rate")
def schedule_stepped_per_batch(source: Source) -> Iterator[Planted]:
    """A schedule meant for epochs steps after every batch."""
    for step in source.method_calls("step"):
        line = source.statement(step)
        owner = source.code(step.func.value) if isinstance(step.func, cst.Attribute) else ""
        if not isinstance(line, cst.SimpleStatementLine) or not ("sched" in owner.lower() or owner == "lr_scheduler"):
            continue
        for update in source.method_calls("step"):
            where = source.statement(update)
            if source.parent(where) is not source.parent(line) and "optim" in source.code(update).lower():
                if source.scope(update) == source.scope(step) and isinstance(where, cst.SimpleStatementLine):
                    yield source.after(where, source.code(step))


@operator("schedule-before-optimizer", "schedule-in-wrong-unit")
def schedule_stepped_first(source: Source) -> Iterator[Planted]:
    """The schedule steps before the optimizer does, and loses its first rate."""
    for step in source.method_calls("step"):
        line = source.statement(step)
        if "sched" not in source.code(step).lower() or not isinstance(line, cst.SimpleStatementLine):
            continue
        block = source.parent(line)
        for other in getattr(block, "body", ()):
            if other is line:
                break
            if m.findall(other, m.Call(func=m.Attribute(attr=m.Name("step")))):
                yield source.moved(line, other)
                break


@operator("hidden-default-rate", "excessive-learning-rate", "negligible-learning-rate")
def rate_not_passed(source: Source) -> Iterator[Planted]:
    """The optimizer is built without the rate that the program chose, and takes its default."""
    for call in source.calls("SGD", "AdamW", "Adam", "RMSprop"):
        for name in ("lr", "learning_rate"):
            if keyword(call, name):
                yield source.argument(call, name, None)


@operator("excessive-learning-rate", "non-finite-loss", "exploding-gradients")
def momentum_of_one(source: Source) -> Iterator[Planted]:
    """The momentum is so high that old gradients never fade."""
    for call in source.calls("SGD"):
        yield source.argument(call, "momentum", "0.999")
    for call in source.calls("Adam", "AdamW"):
        if not keyword(call, "beta_1"):
            yield source.argument(call, "betas", "(0.9999, 0.9)")
