"""The words of the walked training's framework: what a message or a fix calls the things that a script writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Words:
    """The defaults suit code that no framework runs. `{…}` stands for what the rule fills in."""

    trainer: str = "the loop"
    """What is given the parts of the training and takes its steps, with its article."""
    arguments: str = ""
    """The call that hyper-parameters are written in; empty where there is none."""
    evaluation_data: str = "the data of the evaluation"
    """The argument that holds the evaluation data."""
    stratified_split: str = "train_test_split(x, y, stratify=y)"
    """How rows are split with all classes in both parts."""
    rows_of_index: str = "x[i]"
    """What a data set's `__getitem__` gives for the index i."""
    drop_last: str = "what drops the last batch"
    """The argument that drops an incomplete last batch."""
    collator: str = "form batches with {value}"
    """How a collator is passed."""
    pad_arrays: str = "pad the lists of {value}"
    """How lists of numbers are brought to one length; `{type}` is empty where they hold integers."""
    less_padding: str = "pad each batch to its own longest row, and put rows of similar length together"
    """How texts are padded less."""
    text_layer: str = "a tokenizer"
    """What turns texts into numbers within the model."""
    fewer_predictions: str = "keep of each batch what the metrics need"
    """How an evaluation keeps less than all scores."""
    without_gradients: str = "without gradients"
    """How an evaluation builds no graphs."""
    less_memory: str = "activation checkpointing, half precision"
    """What needs less memory in a step, as a list."""
    smaller_batches: str = "make batches of {rows} rows and accumulate the gradients of {steps}"
    """Where the batch size and the accumulation are set."""
    memory_growth: str = "let the framework take memory as it needs it"
    """How it is kept from taking all memory of a GPU at once."""
    backward: str = "take the gradients of the loss before the update"
    """How a script brings about the backward pass."""
    averaged_accumulation: str = ""
    """What makes it divide the loss by the number of micro-batches itself; empty where the script does."""
    layer_list: str = "a container that registers its layers"
    """The container of layers that stands in for a plain list."""
    layer_dict: str = "a container that registers its layers"
    """The container of layers that stands in for a plain dictionary."""
    causal_mask: str = "give the attention a causal mask"
    """How a model is kept from seeing later tokens."""
    embedding_rows: str = "rows"
    """The argument that sets an embedding's number of rows."""
    losses: Mapping[str, str] = field(default_factory=dict)
    """Its own name of each loss function, by the name that `LossCall.function` has."""
    multilabel_loss: str = "a binary cross-entropy"
    """The loss for scores of rows with several labels."""
    given_loss: str = "compute a loss of the outputs and the targets"
    """How a training is given its loss."""
    unlabelled_rows: str = "leave rows without a label out"
    """What to do with rows without a label that have the number `{label}`."""
    joined_processes: str = "make each process join the others' group"
    """What makes a process know of the others."""
    shared_rows: str = "A sampler for several processes"
    """What gives each process its share of the rows."""

    def loss(self, function: str) -> str:
        """Its own name of a loss function."""
        return self.losses.get(function, function)
