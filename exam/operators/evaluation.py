"""Faults of the evaluation: metrics, counters, sets, the choice of the best model."""

import re
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.parts import in_evaluation, is_keras
from exam.source import Planted, Source, called, keyword, number

_ARGMAX = m.Call(func=m.Attribute(attr=m.Name("argmax")))
_LOADERS = re.compile(r"loader|_dl\b|_ds\b|dataset|batches|_data\b|_set\b", re.IGNORECASE)


def _guesses(source: Source) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """x.argmax(...), torch.argmax(x, ...) of an evaluation: the call and its x."""
    for call in source.find(_ARGMAX):
        assert isinstance(call.func, cst.Attribute)
        line = source.code(source.statement(call))
        if call.args and (
            in_evaluation(source, call) or re.search(r"==|acc|pred|guess|correct|hits|compute_metrics", line)
        ):
            functional = source.code(call.func.value) in ("np", "torch", "numpy", "ops", "keras.ops", "tf")
            yield call, call.args[0].value if functional else call.func.value


@operator("metrics-on-logits", "crashing-metrics", "broadcast-metric", "mismatched-metric", harm="differs")
def argmax_missing(source: Source) -> Iterator[Planted]:
    """The metric compares scores with labels: the argmax is missing."""
    for call, scores in _guesses(source):
        yield source.replaced(call, scores)


@operator("metrics-on-logits", "crashing-metrics", "broadcast-metric", "argmax-of-one-column", harm="differs")
def argmax_over_the_rows(source: Source) -> Iterator[Planted]:
    """The argmax of the metric is taken over the rows, or over all values."""
    for call, _ in _guesses(source):
        axis = call.args[-1]
        if number(axis.value) not in (None, 0.0):
            yield source.replaced(axis.value, "0")
            if call.args[0] is axis:
                yield source.replaced(call, call.with_changes(args=[]))


@operator("metrics-on-logits", "mismatched-metric", harm="differs")
def maximum_for_its_place(source: Source) -> Iterator[Planted]:
    """The metric takes the greatest score for the class that has it."""
    for call, _ in _guesses(source):
        attribute = cst.ensure_type(call.func, cst.Attribute)
        yield source.replaced(attribute, attribute.with_changes(attr=cst.Name("max")))
    for node in source.find(m.Subscript(value=m.Call(func=m.Attribute(attr=m.Name("max") | m.Name("topk"))))):
        if source.code(node).endswith("[1]"):
            yield source.replaced(node, source.code(node)[:-2] + "0]")


@operator("metrics-on-logits", "mismatched-metric", harm="differs")
def threshold_of_the_other_scale(source: Source) -> Iterator[Planted]:
    """Logits are cut at 0.5 and probabilities at 0."""
    for node in source.find(m.Comparison(comparisons=[m.ComparisonTarget(operator=m.GreaterThan())])):
        limit = node.comparisons[0].comparator
        if (
            number(limit) in (0.0, 0.5)
            and in_evaluation(source, node)
            and re.search(r"acc|==|correct|hits", source.text)
        ):
            by = "0.5" if number(limit) == 0.0 else "0"
            yield source.many([(limit, by)], f"{source.code(node)} with {by}")


@operator("misaligned-labels", harm="differs")
def guesses_and_labels_misaligned(source: Source) -> Iterator[Planted]:
    """The labels of the metric are in another order than the predictions."""
    for node in source.find(m.Comparison(comparisons=[m.ComparisonTarget(operator=m.Equal())])):
        labels = node.comparisons[0].comparator
        if not isinstance(labels, (cst.Name, cst.Attribute)) or not m.findall(node.left, _ARGMAX | m.Name("pred")):
            continue
        by = f"{source.code(labels)}[::-1]" if "label_ids" in source.code(labels) else f"{source.code(labels)}.flip(0)"
        yield source.many([(labels, by)], f"{source.code(labels)} -> {by}")


@operator("crashing-metrics", "metrics-on-logits", "misaligned-labels", harm="differs")
def metric_gets_the_wrong_field(source: Source) -> Iterator[Planted]:
    """compute_metrics reads a field that the prediction does not have, or its labels and predictions swapped."""
    for node in source.find(m.Attribute(attr=m.Name("predictions") | m.Name("label_ids"))):
        other = {"predictions": ("logits", "label_ids"), "label_ids": ("labels", "predictions")}[node.attr.value]
        for name in other:
            yield source.replaced(node, node.with_changes(attr=cst.Name(name)))
    for assign in source.find(m.Assign(targets=[m.AssignTarget(target=m.Tuple())], value=m.Name())):
        first, *others = assign.targets[0].target.elements
        if "pred" in source.code(assign.value) and len(others) == 1:
            new = assign.targets[0].target.with_changes(
                elements=[first.with_changes(value=others[0].value), others[0].with_changes(value=first.value)]
            )
            yield source.many([(assign.targets[0].target, new)], f"swapped: {source.code(assign)}")


@operator("mismatched-metric", "crashing-metrics", "metrics-on-logits", "sparse-dense-mismatch", harm="differs")
def keras_metric_of_another_task(source: Source) -> Iterator[Planted]:
    """The metric is one for other labels or outputs than those of the model."""
    for node in source.find(m.SimpleString(value='"accuracy"')):
        if is_keras(source) and "metrics" in source.code(source.statement(node)):
            for name in ("BinaryAccuracy", "CategoricalAccuracy", "SparseCategoricalAccuracy", "Accuracy"):
                yield source.replaced(node, f'keras.metrics.{name}(name="accuracy")')
    for call in source.calls("AUC", "Recall", "Precision", "MeanIoU"):
        for name in ("multi_label", "sparse_y_pred", "from_logits"):
            if keyword(call, name):
                yield source.argument(call, name, None)


@operator("unreset-metric", harm="differs")
def counters_never_reset(source: Source) -> Iterator[Planted]:
    """The counters of the evaluation go on from epoch to epoch."""
    for line in source.find(m.SimpleStatementLine(body=[m.Assign()])):
        loop, block = source.inside(line, cst.For), source.parent(line)
        values = m.findall(line.body[0].value, m.Integer() | m.Float() | m.List(elements=[]))
        if not values or loop is None or block is not loop.body or not source.in_loop(line):
            continue
        if not re.fullmatch(r"[\w, =]+ = [0., ]+|[\w, =]+ = \[\]", source.code(line)):
            continue
        outer = source.parent(loop)
        if isinstance(outer, (cst.IndentedBlock, cst.Module)) and len(block.body) > 1:
            inner = loop.with_changes(body=block.with_changes(body=[s for s in block.body if s is not line]))
            at = list(outer.body).index(loop)
            new = outer.with_changes(body=[*outer.body[:at], line, inner, *outer.body[at + 1 :]])
            if isinstance(outer, cst.Module):
                yield Planted(new.code, source.line(loop), f"in front of the loop: {source.code(line)}")
            else:
                yield source.swapped(outer, new, source.line(loop), f"in front of the loop: {source.code(line)}")


@operator("overwritten-count", harm="differs")
def only_the_last_batch_counts(source: Source) -> Iterator[Planted]:
    """The evaluation keeps the number of its last batch, where it should add them up."""
    for node in source.find(m.AugAssign(operator=m.AddAssign(), target=m.Name())):
        if re.search(r"correct|hits|right|val|acc|total|seen|loss", node.target.value) and in_evaluation(source, node):
            new = cst.Assign(targets=[cst.AssignTarget(node.target)], value=node.value)
            yield source.many([(node, new)], f"{source.code(node)} -> {source.code(new)}")


@operator("wrong-divisor", harm="differs")
def divided_by_another_count(source: Source) -> Iterator[Planted]:
    """A sum over rows is divided by the number of batches, or the reverse."""
    for node in source.find(m.BinaryOperation(operator=m.Divide(), right=m.Call(func=m.Name("len")))):
        inner = node.right.args[0].value
        text = source.code(inner)
        if text.endswith(".dataset"):
            yield source.many([(inner, text.removesuffix(".dataset"))], f"{source.code(node)} without .dataset")
        elif _LOADERS.search(text) and isinstance(inner, cst.Name) and "oader" in text:
            yield source.many([(inner, f"{text}.dataset")], f"{source.code(node)} by the rows")
    for node in source.find(
        m.BinaryOperation(operator=m.Multiply(), left=m.Call(func=m.Attribute(attr=m.Name("item"))))
    ):
        if re.search(r"len\(|\.size\(0\)|\.shape\[0\]", source.code(node.right)):
            yield source.replaced(node, node.left)


@operator("evaluation-on-training-data", "train-eval-overlap", "wrong-mode", harm="differs")
def evaluated_on_the_training_set(source: Source) -> Iterator[Planted]:
    """The evaluation reads the training set."""
    names = {n.value for n in source.find(m.Name())}
    for node in source.find(m.Name()):
        other = re.sub(
            r"(valid(?:ation)?|val|test|eval|te|va)(?=_|$)|(?<=_)(valid(?:ation)?|val|test|eval)", "train", node.value
        )
        other = other if other in names else re.sub("^train", "tr", other)
        parent = source.parent(node)
        read = (getattr(parent, "value", None) is node and isinstance(parent, cst.Arg)) or getattr(
            parent, "iter", None
        ) is node
        if other != node.value and other in names and _LOADERS.search(node.value) and read:
            yield source.many([(node, other)], f"{node.value} -> {other}")
    for call in source.calls("Trainer", "Seq2SeqTrainer"):
        train = keyword(call, "train_dataset")
        if train and keyword(call, "eval_dataset"):
            yield source.argument(call, "eval_dataset", source.code(train.value))
    for call in source.method_calls("fit") if is_keras(source) else ():
        held = keyword(call, "validation_data") or keyword(call, "validation_split")
        if held and call.args and not call.args[0].keyword:
            both = [source.code(a.value) for a in call.args[:2] if not a.keyword]
            rows = f"({', '.join(both)})" if len(both) > 1 else both[0]
            new = held.with_changes(keyword=cst.Name("validation_data"), value=cst.parse_expression(rows))
            yield source.many([(held, new)], f"validation_data={rows}")


@operator("retained-logits", "wrong-mode", harm="differs")
def gradients_in_the_evaluation(source: Source) -> Iterator[Planted]:
    """no_grad is missing, and the evaluation builds graphs."""
    for block in source.find(m.With()):
        if len(block.items) == 1 and re.search(r"no_grad|inference_mode", source.code(block.items[0])):
            yield source.replaced(block.items[0].item, '__import__("contextlib").nullcontext()')
    for function in source.functions():
        for decorator in function.decorators:
            if re.search(r"no_grad|inference_mode", source.code(decorator)):
                yield source.swapped(
                    function,
                    function.with_changes(decorators=[]),
                    source.line(function),
                    f"without {source.code(decorator)}",
                )


@operator("empty-dataset", harm="differs")
def rows_dropped_in_the_evaluation(source: Source) -> Iterator[Planted]:
    """The evaluation's loader drops its last rows."""
    for call in source.calls("DataLoader"):
        line = source.code(source.statement(call))
        if re.search(r"val|test|eval|held", line.split("DataLoader")[0] + source.scope(call)) and not keyword(
            call, "drop_last"
        ):
            yield source.many([(call, _with(call, "drop_last", "True"))], "drop_last=True in the evaluation")


def _with(call: cst.Call, name: str, value: str) -> cst.Call:
    return call.with_changes(args=[*call.args, cst.Arg(cst.parse_expression(value), keyword=cst.Name(name))])


# The choice of the best model ----------------------------------------------------------------------------------------


@operator("wrong-metric-direction", "undirected-metric")
def direction_flipped(source: Source) -> Iterator[Planted]:
    """What follows a metric takes the worse value for the better one."""
    for call in source.find(m.Call()):
        if keyword(call, "greater_is_better"):
            yield source.argument(call, "greater_is_better", "False")
        if called(call) in ("EarlyStopping", "ModelCheckpoint", "ReduceLROnPlateau"):
            yield source.argument(call, "mode", '"min"' if '"max"' in source.code(call) else '"max"')
    for node in source.find(m.Comparison(comparisons=[m.ComparisonTarget()])):
        other = node.comparisons[0]
        if "best" in source.code(other.comparator) and isinstance(other.operator, (cst.LessThan, cst.GreaterThan)):
            new = cst.GreaterThan() if isinstance(other.operator, cst.LessThan) else cst.LessThan()
            yield source.replaced(node, node.with_changes(comparisons=[other.with_changes(operator=new)]))


@operator("wrong-metric-direction", "unknown-best-metric", "undirected-metric", "script-stopped")
def best_model_by_the_wrong_metric(source: Source) -> Iterator[Planted]:
    """The best checkpoint is kept by a metric that nobody computes, or by the wrong end of one."""
    wrong = ('"acuracy"', "None"), ('"accuracy"', "False"), ('"eval_loss"', "True")
    for call in source.calls("TrainingArguments", "Seq2SeqTrainingArguments"):
        quiet = next((a for a in call.args if a.star == "**"), None)
        if keyword(call, "load_best_model_at_end") or "eval_strategy" not in source.code(call):
            continue
        for metric, greater in wrong:
            if metric != '"accuracy"' or '"accuracy"' in source.text:
                new = _best(source, call, quiet, metric, greater)
                yield source.many([(call, new)], f"metric_for_best_model={metric}, greater_is_better={greater}")


def _best(source: Source, call: cst.Call, quiet: cst.Arg | None, metric: str, greater: str) -> cst.Call:
    more = f'"save_strategy": "epoch", "load_best_model_at_end": True, "metric_for_best_model": {metric}, "greater_is_better": {greater}'
    text = f"{{**{source.code(quiet.value)}, {more}}}" if quiet else f"{{{more}}}"
    kept = [a for a in call.args if a is not quiet and not (a.keyword and a.keyword.value == "save_strategy")]
    star = cst.Arg(cst.parse_expression(text), star="**")
    return call.with_changes(args=[*kept, star])


@operator("wrong-metric-direction", "unknown-best-metric", "undirected-metric")
def stopped_by_the_wrong_metric(source: Source) -> Iterator[Planted]:
    """An early stop follows the wrong end of a metric, has no patience, or a metric that does not exist."""
    wrong = [
        'monitor="loss", mode="max", patience=1, restore_best_weights=True',
        'monitor="loss", mode="max", patience=0',
        'monitor="val_lossy", patience=1',
    ]
    wrong += ['monitor="accuracy", mode="min", patience=1'] if '"accuracy"' in source.text else []
    for call in source.method_calls("fit") if is_keras(source) else ():
        if not keyword(call, "callbacks"):
            for text in wrong:
                yield source.argument(call, "callbacks", f"[keras.callbacks.EarlyStopping({text})]")
    for call in source.calls("Trainer"):
        if keyword(call, "max_epochs") and "lightning" in source.text and not keyword(call, "callbacks"):
            package = "lightning" if "import lightning" in source.text else "pytorch_lightning"
            path = "pytorch.callbacks" if package == "lightning" else "callbacks"
            metrics = set(re.findall(r'"((?:val|train)\w*)"', source.text))
            for metric in [*sorted(metrics), "validation_loss"]:
                mode = "max" if "loss" in metric else "min"
                stop = f'__import__("{package}.{path}", fromlist=["x"]).EarlyStopping("{metric}", mode="{mode}", patience=1)'
                yield source.argument(call, "callbacks", f"[{stop}]")


@operator()
def no_patience(source: Source) -> Iterator[Planted]:
    """The training stops at the first epoch that is not better than the one before."""
    for call in source.find(m.Call()):
        for name in ("patience", "early_stopping_patience"):
            if keyword(call, name):
                yield source.argument(call, name, "0" if name == "patience" else "1")
    for assign in source.find(m.Assign()):
        names = source.code(assign.targets[0].target)
        if re.search(r"\bpatience\b", names):
            values = m.findall(assign.value, m.Integer())
            if values:
                yield source.many([(values[-1], "0")], f"{source.code(assign)} -> 0")


@operator("uncopied-best-weights", harm="differs")
def best_weights_lost(source: Source) -> Iterator[Planted]:
    """The weights kept as the best are the last ones: they were never copied, or never loaded."""
    for call in source.calls("deepcopy"):
        if call.args and "state_dict" in source.code(call.args[0].value):
            yield source.replaced(call, call.args[0].value)
    for call in source.method_calls("load_state_dict"):
        line = source.statement(call)
        if "best" in source.code(call) and isinstance(line, cst.SimpleStatementLine):
            yield source.removed(line)
    for call in source.calls("EarlyStopping"):
        if keyword(call, "restore_best_weights"):
            yield source.argument(call, "restore_best_weights", None)
    for call in source.calls("TrainingArguments"):
        if keyword(call, "load_best_model_at_end"):
            yield source.argument(call, "load_best_model_at_end", None)
