"""Faults of calls: arguments and names of other versions, misspelt ones, forgotten parentheses, devices, precision."""

import re
from collections.abc import Iterator
from dataclasses import replace

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.operators.rates import OPTIMIZERS
from exam.parts import compiles, forwards, is_keras, models, torch_of
from exam.source import Planted, Source, called, keyword, number

_ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments")
_TRAINERS = ("Trainer", "Seq2SeqTrainer")


def _renamed(source: Source, call: cst.Call, name: str, by: str) -> Iterator[Planted]:
    arg = keyword(call, name)
    if arg:
        yield source.many([(arg, arg.with_changes(keyword=cst.Name(by)))], f"{called(call)}({name}= -> {by}=)")


def _written(source: Source, line: cst.CSTNode, text: str) -> Planted:
    """A line that is itself the fault, and raises where it stands."""
    return replace(source.after(line, text), change=f"line: {text}")


def _given(source: Source, call: cst.Call, name: str, value: str) -> Planted:
    """A further keyword argument, the others left as they are written."""
    arg = cst.Arg(cst.parse_expression(value), keyword=cst.Name(name))
    return source.many(
        [(call, lambda updated: updated.with_changes(args=[*updated.args, arg]))], f"{called(call)}({name}={value})"
    )


@operator("renamed-argument", "removed-api")
def argument_of_an_older_version(source: Source) -> Iterator[Planted]:
    """An argument has the name that it had in an older version."""
    older = {"eval_strategy": "evaluation_strategy", "use_cpu": "no_cuda"}
    for call in source.calls(*_ARGUMENTS):
        for name, by in older.items():
            yield from _renamed(source, call, name, by)
        for name, value in (("evaluation_strategy", '"epoch"'), ("no_cuda", "True"), ("per_gpu_train_batch_size", "8")):
            if not keyword(call, name) and not keyword(call, "eval_strategy"):
                yield _given(source, call, name, value)
    for call in source.calls(*_TRAINERS):
        yield from _renamed(source, call, "processing_class", "tokenizer")
        if keyword(call, "max_epochs"):  # Lightning
            for name, value in (("gpus", "0"), ("progress_bar_refresh_rate", "0"), ("checkpoint_callback", "False")):
                yield _given(source, call, name, value)
            yield from _renamed(source, call, "enable_checkpointing", "checkpoint_callback")
    for call in source.calls(
        "StepLR", "CosineAnnealingLR", "OneCycleLR", "LambdaLR", "ExponentialLR", "ReduceLROnPlateau"
    ):
        if not is_keras(source):
            yield _given(source, call, "verbose", "True")


@operator("renamed-argument", "removed-api")
def keras_argument_of_an_older_version(source: Source) -> Iterator[Planted]:
    """An argument of Keras has the name that it had in an older version, or is no longer there."""
    for call in source.calls(*OPTIMIZERS) if is_keras(source) else ():
        rate = call.args[0] if call.args and not call.args[0].keyword else keyword(call, "learning_rate")
        if rate:
            new = rate.with_changes(
                keyword=cst.Name("lr"), equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
            )
            yield source.many([(rate, new)], f"lr={source.code(rate.value)}")
        yield _given(source, call, "decay", "1e-6")
    for call in source.method_calls("fit") if is_keras(source) else ():
        yield from _renamed(source, call, "epochs", "nb_epoch")
        yield from _renamed(source, call, "steps_per_epoch", "samples_per_epoch")
        for name, value in (("workers", "2"), ("use_multiprocessing", "True"), ("max_queue_size", "10")):
            yield _given(source, call, name, value)
    for call in source.calls("Dense", "Conv2D", "Embedding", "LSTM", "GRU") if is_keras(source) else ():
        for name, value in {"Conv2D": ("subsample", "(1, 1)"), "Embedding": ("input_length", "10")}.items():
            if called(call) == name:
                yield _given(source, call, *value)
        yield _given(source, call, "init", '"glorot_uniform"')
        yield from _renamed(source, call, "activation", "activations")
        yield from _renamed(source, call, "padding", "border_mode")


_MISSPELT = {
    "DataLoader": {"batch_size": "batchsize", "shuffle": "suffle", "collate_fn": "collate_function", "drop_last": "drop_last_batch"},
    "fit": {"epochs": "epoch", "batch_size": "batchsize", "validation_data": "val_data", "validation_split": "val_split"},
    "compile": {"optimizer": "optimiser", "metrics": "metric", "loss": "loss_function"},
    "Trainer": {"compute_metrics": "compute_metric", "eval_dataset": "val_dataset", "train_dataset": "training_data",
                "data_collator": "collate_fn", "args": "training_args", "max_epochs": "epochs", "accelerator": "device"},
    "TrainingArguments": {"num_train_epochs": "epochs", "learning_rate": "lr", "per_device_train_batch_size": "batch_size",
                          "weight_decay": "weightdecay"},
    "CrossEntropyLoss": {"ignore_index": "ignore_label", "weight": "weights", "label_smoothing": "smoothing"},
}  # fmt: skip


@operator("renamed-argument")
def argument_misspelt(source: Source) -> Iterator[Planted]:
    """The name of an argument is misspelt, or is another library's."""
    for call in source.calls(*_MISSPELT, *OPTIMIZERS, "Linear", "Conv2d", "Dense", "Conv2D"):
        names = dict(_MISSPELT.get(called(call), {}))
        if called(call) in OPTIMIZERS:
            names = {
                "lr": "learning_rate",
                "learning_rate": "rate",
                "weight_decay": "weight_decy",
                "momentum": "momemtum",
            }
        elif not names:
            names = {"padding": "pad", "bias": "use_bias", "activation": "activation_function", "kernel_size": "kernel"}
        for name, by in names.items():
            yield from _renamed(source, call, name, by)


@operator("removed-api")
def name_of_an_older_version(source: Source) -> Iterator[Planted]:
    """A name is imported or used that the installed version of the library no longer has."""
    lines = [s for s in source.module.body if re.match(r"(import|from) ", source.code(s))]
    if not lines:
        return
    for line in lines:
        text = source.code(line)
        if text.startswith(("import torch", "from torch")):
            yield _written(source, line, "from torch._six import container_abcs")
            break
    older = {
        r"^from transformers import": "from transformers import AdamW, get_linear_schedule_with_warmup",
        r"^from datasets import": "from datasets import load_metric",
        r"^import keras": "from keras.utils import np_utils",
        r"^from keras import layers": "from keras.layers.core import Dense",
        r"^import tensorflow": "from tensorflow.contrib import layers as contrib_layers",
        r"^from sklearn": "from sklearn.externals import joblib",
    }
    for line in lines:
        for found, text in older.items():
            if re.search(found, source.code(line)):
                yield _written(source, line, text)


@operator("removed-api")
def attribute_of_an_older_version(source: Source) -> Iterator[Planted]:
    """A method or attribute is used that the installed version no longer has."""
    for call in source.method_calls("item"):
        if not call.args and isinstance(call.func, cst.Attribute) and source.code(call.func.value) == "loss":
            yield source.replaced(call, "loss.data[0]")
    for node in source.find(m.SimpleString(value='"float32"')):
        if isinstance(source.parent(node), cst.Arg) and called(source.inside(node, cst.Call)) == "astype":
            yield source.replaced(node, '__import__("numpy").float')
    for call in source.method_calls("fit") if is_keras(source) else ():
        attribute = cst.ensure_type(call.func, cst.Attribute)
        yield source.replaced(attribute, attribute.with_changes(attr=cst.Name("fit_generator")))
    for call in source.calls("Adam", "SGD", "RMSprop"):
        if source.code(call.func).startswith("keras.optimizers."):
            yield source.replaced(call.func, source.code(call.func).lower())
    for call in source.calls("AdamW"):
        if "transformers" in source.text and not is_keras(source):
            yield source.replaced(call.func, '__import__("transformers").AdamW')
    for call in source.calls("iter"):
        if isinstance(source.parent(call), cst.Arg) and called(source.inside(call, cst.Call)) == "next":
            yield source.replaced(source.inside(call, cst.Call), f"{source.code(call)}.next()")


# What is forgotten ---------------------------------------------------------------------------------------------------


@operator("unstepped-optimizer", "uncleared-gradients", "no-gradient", "wrong-mode", "inactive-training-mode")
def parentheses_forgotten(source: Source) -> Iterator[Planted]:
    """A method is named and not called: optimizer.step, without parentheses."""
    for call in source.method_calls("step", "zero_grad", "backward", "eval", "train"):
        if not call.args and isinstance(source.parent(call), cst.Expr):
            yield source.replaced(call, call.func)
    for call in source.calls(*OPTIMIZERS):
        if call.args and re.fullmatch(r"[\w.]+\.parameters\(\)", source.code(call.args[0].value)):
            yield source.replaced(call.args[0].value, source.code(call.args[0].value)[:-2])


@operator("empty-parameter-list", "script-stopped", "unregistered-parameters", "frozen-model")
def optimizer_without_parameters(source: Source) -> Iterator[Planted]:
    """The optimizer is given an empty list of parameters: a filter has the wrong sign, or an exhausted generator."""
    for call in source.calls(*OPTIMIZERS):
        text = source.code(call.args[0].value) if call.args else ""
        if re.fullmatch(r"[\w.]+\.parameters\(\)", text):
            yield source.replaced(call.args[0].value, f"[p for p in {text} if not p.requires_grad]")
            line = source.statement(call)
            if isinstance(line, cst.SimpleStatementLine) and m.matches(
                source.parent(line), m.Module() | m.IndentedBlock()
            ):
                count = "parameters = {0}\nprint(sum(p.numel() for p in parameters))\n{1}"
                new = cst.parse_module(count.format(text, source.code(line).replace(text, "parameters", 1))).body
                yield source.swapped(
                    line, cst.FlattenSentinel(new), source.line(line), "parameters counted, then used up"
                )  # type: ignore[arg-type]


@operator("script-stopped")
def super_not_called(source: Source) -> Iterator[Planted]:
    """super().__init__() is missing."""
    for call in source.calls("__init__"):
        line = source.statement(call)
        if source.code(call).startswith("super()") and isinstance(line, cst.SimpleStatementLine):
            yield source.removed(line)


@operator("misspelled-method")
def method_misspelt(source: Source) -> Iterator[Planted]:
    """A method that the framework calls has a misspelt name."""
    names = {
        "__init__": "__int__", "forward": "foward", "call": "calls", "__getitem__": "__getitems", "__len__": "__length__",
        "training_step": "train_step", "configure_optimizers": "configure_optimizer", "train_dataloader": "training_dataloader",
        "validation_step": "valid_step", "train_step": "training_step", "setup": "set_up", "compute_loss": "compute_losses",
        "__iter__": "__iterate__", "build": "builds", "on_epoch_end": "on_epoch_ends",
    }  # fmt: skip
    for function in source.functions(*names):
        if source.inside(function, cst.ClassDef):
            by = names[function.name.value]
            yield source.many([(function.name, cst.Name(by))], f"def {function.name.value} -> def {by}")


def _swapped(source: Source, call: cst.Call) -> Iterator[Planted]:
    if len(call.args) > 1 and not any(a.keyword or a.star for a in call.args[:2]):
        one, two = call.args[0].value, call.args[1].value
        if source.code(one) != source.code(two):
            change = f"swapped: {source.code(one)} and {source.code(two)} of {called(call)}"
            yield source.many([(one, two), (two, one)], change)


@operator(
    "script-stopped",
    "layer-size-mismatch",
    "channels-misplaced",
    "tokens-beyond-vocabulary",
    "index-beyond-embedding",
    "wrong-number-of-axes",
)
def sizes_of_a_layer_swapped(source: Source) -> Iterator[Planted]:
    """The sizes of a layer's input and output are in the wrong order."""
    for call in source.calls(
        "Linear", "Conv2d", "Conv1d", "LSTM", "GRU", "Embedding", "Conv2D", "Conv1D", "ConvTranspose2d"
    ):
        yield from _swapped(source, call)


@operator(
    "wrong-target-dtype", "sparse-dense-mismatch", "layer-size-mismatch", "wrong-number-of-axes", "broadcast-loss",
    "label-out-of-range", "channels-misplaced", "tokens-beyond-vocabulary", "untokenized-dataset", "misnumbered-labels",
)  # fmt: skip
def inputs_and_targets_swapped(source: Source) -> Iterator[Planted]:
    """The targets stand where the inputs belong."""
    for call in source.calls("TensorDataset", "fit", "from_tensor_slices"):
        if called(call) != "fit" or is_keras(source):
            yield from _swapped(source, call)
        for arg in call.args[:1]:
            if isinstance(arg.value, cst.Tuple) and len(arg.value.elements) == 2:
                one, two = (e.value for e in arg.value.elements)
                yield source.many([(one, two), (two, one)], f"swapped: {source.code(arg.value)}")
    for loop in source.find(m.For(target=m.Tuple(elements=[m.Element(m.Name()), m.Element(m.Name())]))):
        one, two = (e.value for e in loop.target.elements)
        if re.search("oader|_dl|dataset|batches", source.code(loop.iter)):
            yield source.many(
                [(one, two), (two, one)], f"swapped: {source.code(loop.target)} of {source.code(loop.iter)}"
            )


@operator("renamed-argument", "removed-api")
def arguments_of_a_trainer_swapped(source: Source) -> Iterator[Planted]:
    """What a Trainer or a model is built from comes in the wrong order."""
    for call in source.calls("Trainer", "Model", "DataLoader"):
        yield from _swapped(source, call)
        model, args = keyword(call, "model"), keyword(call, "args")
        if model and args:
            yield source.many(
                [(model.value, args.value), (args.value, model.value)], "Trainer's model and args swapped"
            )


@operator("wrong-number-of-axes", "crashing-metrics")
def axis_that_is_not_there(source: Source) -> Iterator[Planted]:
    """An axis is named that the tensor does not have."""
    for call in source.find(m.Call()):
        for arg in call.args:
            if arg.keyword and arg.keyword.value in ("dim", "axis") and number(arg.value) in (1.0, -1.0):
                yield source.many([(arg.value, "3")], f"{arg.keyword.value}=3 in {called(call)}")
        if (
            called(call) in ("softmax", "log_softmax", "argmax", "squeeze", "flatten", "cat", "concatenate")
            and call.args
        ):
            if not call.args[-1].keyword and number(call.args[-1].value) in (1.0, -1.0):
                yield source.many([(call.args[-1].value, "3")], f"axis 3 in {called(call)}")


# Devices, precision, workers -----------------------------------------------------------------------------------------


@operator("mixed-devices")
def one_thing_on_another_device(source: Source) -> Iterator[Planted]:
    """The model or a batch alone is moved to another device, or to one that holds no values."""
    for name, line in models(source) if not is_keras(source) else ():
        for device in ("cuda", "meta"):
            yield _written(source, line, f'{name} = {name}.to("{device}")')
    for function in (f for _, f in forwards(source) if not is_keras(source)):
        parameters = [p.name.value for p in function.params.params if p.name.value != "self"]
        first = function.body.body[0]
        if parameters and isinstance(first, cst.SimpleStatementLine):
            yield source.before(first, f'{parameters[0]} = {parameters[0]}.to("meta")')


@operator(
    "script-stopped", "non-finite-loss", "non-finite-gradients", "run-diverged", "unscaled-loss", "wrong-target-dtype"
)
def half_precision_unfit(source: Source) -> Iterator[Planted]:
    """float16 without loss scaling, where bfloat16 or float32 was right."""
    for node in source.find(m.Attribute(attr=m.Name("bfloat16"))):
        yield source.replaced(node, node.with_changes(attr=cst.Name("float16")))
    for call in source.calls("set_random_seed") if is_keras(source) else ():
        line = source.statement(call)
        if "set_global_policy" not in source.text and isinstance(line, cst.SimpleStatementLine):
            yield source.after(line, 'keras.mixed_precision.set_global_policy("float16")')


@operator(
    "unscaled-loss", "unstepped-optimizer", "wiped-accumulation", "excessive-learning-rate", "exploding-gradients"
)
def scaler_misused(source: Source) -> Iterator[Planted]:
    """The gradients are scaled, and the optimizer steps without the scaler, or the scaler was never used."""
    for call in source.method_calls("step", "scale", "update", "unscale_"):
        owner = source.code(call.func.value) if isinstance(call.func, cst.Attribute) else ""
        line = source.statement(call)
        if "scaler" not in owner.lower() or not isinstance(line, cst.SimpleStatementLine):
            continue
        if called(call) == "step" and call.args:
            yield source.replaced(call, f"{source.code(call.args[0].value)}.step()")
        elif called(call) == "scale" and call.args:
            yield source.replaced(call, call.args[0].value)
        elif called(call) in ("update", "unscale_"):
            yield source.removed(line)


@operator("script-stopped")
def workers_cannot_start(source: Source) -> Iterator[Planted]:
    """The loader's workers are new processes, and what they need cannot be sent to them."""
    for call in source.calls("DataLoader"):
        if not keyword(call, "collate_fn") and not keyword(call, "num_workers") and not any(a.star for a in call.args):
            collate = f"lambda rows: {torch_of(source)}.utils.data.default_collate(rows)"
            both = [("num_workers", "2"), ("multiprocessing_context", '"spawn"'), ("collate_fn", collate)]
            args = [cst.Arg(cst.parse_expression(v), keyword=cst.Name(n)) for n, v in both]
            yield source.many(
                [(call, call.with_changes(args=[*call.args, *args]))], "a lambda for workers that are spawned"
            )


@operator("exhausted-data", "endless-epoch")
def more_steps_than_data(source: Source) -> Iterator[Planted]:
    """An epoch is said to have more steps than the data has batches."""
    for call in source.method_calls("fit") if is_keras(source) else ():
        if not keyword(call, "steps_per_epoch"):
            yield _given(source, call, "steps_per_epoch", "2000")


@operator("missing-loss", "removed-api")
def not_compiled(source: Source) -> Iterator[Planted]:
    """A Keras model is trained without compile, or with an optimizer or loss that Keras does not know."""
    for call in compiles(source):
        line = source.statement(call)
        if isinstance(line, cst.SimpleStatementLine):
            yield source.removed(line)
        for name, value in (("optimizer", '"adams"'), ("loss", '"crossentropy"')):
            if keyword(call, name):
                yield source.argument(call, name, value)
