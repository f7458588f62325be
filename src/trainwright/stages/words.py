"""The terms of the script's framework, used in messages and fixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Words:
    """The defaults fit training code without a framework. Rules fill in the placeholders `{…}`."""

    trainer: str = "the loop"
    """The object that runs the training steps, with its article."""
    built_by: str = ""
    """The class whose call takes model, data and metrics; empty if there is none."""
    arguments: str = ""
    """The call that sets hyperparameters; empty if there is none."""
    evaluation_data: str = "the data of the evaluation"
    """The argument for the evaluation data."""
    stratified_split: str = "train_test_split(x, y, stratify=y)"
    """How to split rows so that both parts contain all classes."""
    rows_of_index: str = "x[i]"
    """What a data set's `__getitem__` returns for index i."""
    drop_last: str = "what drops the last batch"
    """The argument that drops an incomplete last batch."""
    collator: str = "form batches with {value}"
    """How to pass a collator."""
    pad_arrays: str = "pad the lists of {value}"
    """How to pad lists of numbers to one length; `{type}` is empty for integers."""
    text_layer: str = "a tokenizer"
    """The part of a model that turns texts into numbers."""
    fewer_predictions: str = "keep only what the metrics need from each batch"
    """How to keep an evaluation from storing all scores."""
    less_memory: str = "activation checkpointing, half precision"
    """Ways to use less memory in a step, as a list."""
    smaller_batches: str = "make batches of {rows} rows and accumulate the gradients of {steps}"
    """How to set the batch size and gradient accumulation."""
    memory_growth: str = "let the framework take memory as it needs it"
    """How to keep the framework from allocating all of a GPU's memory at once."""
    backward: str = "take the gradients of the loss before the update"
    """How to run the backward pass."""
    averaged_accumulation: str = ""
    """What makes the framework divide the loss by the number of micro-batches; empty if the script must do it."""
    schedule_per_update: str = "step the schedule after every update"
    """How to step a schedule once per update."""
    followed: str = "give its step() a number"
    """How a schedule is told the number that it follows."""
    layer_list: str = "a container that registers its layers"
    """The container of layers to use instead of a plain list."""
    layer_dict: str = "a container that registers its layers"
    """The container of layers to use instead of a plain dictionary."""
    causal_mask: str = "give the attention a causal mask"
    """How to keep a model from seeing later tokens."""
    embedding_rows: str = "rows"
    """The argument that sets an embedding's number of rows."""
    losses: Mapping[str, str] = field(default_factory=dict)
    """The framework's name for each loss function, keyed by `LossCall.function`."""
    multilabel_loss: str = "a binary cross-entropy"
    """The loss for rows with several labels."""
    given_loss: str = "compute a loss of the outputs and the targets"
    """How to set the loss."""
    unlabelled_rows: str = "leave rows without a label out"
    """What to do with rows without a label, which are marked with the number `{label}`."""
    joined_processes: str = "make each process join the others' group"
    """How to make a process aware of the others."""
    shared_rows: str = "A sampler for several processes"
    """What splits the rows between processes."""

    def loss(self, function: str) -> str:
        """The framework's name for a loss function."""
        return self.losses.get(function, function)
