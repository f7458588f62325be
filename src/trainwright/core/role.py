"""The roles of the user's lines in the training: the names by which rules look up lines."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A role of a line. Adapters record the lines they know; a rule uses the first known of several.

    An argument's role is its keyword, so a rule can also look up the line where the user passed the argument.
    """

    # What takes part
    MODEL = "model"
    CONFIG = "config"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    LOSS = "loss"
    LOADER = "loader"
    SAMPLER = "sampler"
    TRAIN_DATASET = "train_dataset"
    EVAL_DATASET = "eval_dataset"
    LABELS = "labels"
    COLLATOR = "collator"
    TOKENIZER = "tokenizer"
    METRICS = "metrics"
    CALLBACKS = "callbacks"
    SAMPLE_WEIGHT = "sample_weight"
    CLASS_WEIGHT = "class_weight"
    # Where these were made, rather than handed over
    TRAIN_DATASET_MADE = "train_dataset_made"
    EVAL_DATASET_MADE = "eval_dataset_made"
    LABELS_MADE = "labels_made"
    # The calls that train
    TRAINER = "trainer"
    ARGUMENTS = "arguments"
    COMPILE = "compile"
    TRAIN_CALL = "train_call"
    # Methods and functions of the user's own
    CALL = "call"
    TRAIN_STEP = "train_step"
    TRAINING_STEP = "training_step"
    COMPUTE_LOSS = "compute_loss"
    CREATE_OPTIMIZER = "create_optimizer"
    CREATE_SCHEDULER = "create_scheduler"
    # Statements of a loop
    BACKWARD = "backward"
    OPTIMIZER_STEP = "optimizer_step"
    SCHEDULE_STEP = "schedule_step"
    ZERO_GRAD = "zero_grad"
    CLEAR_CALL = "clear_call"
    MODE_CHANGE = "mode_change"
    # Arguments
    BATCH_SIZE = "batch_size"
    DATALOADER_DROP_LAST = "dataloader_drop_last"
    DROP_LAST = "drop_last"
    EPOCHS = "epochs"
    GRADIENT_ACCUMULATION_STEPS = "gradient_accumulation_steps"
    GREATER_IS_BETTER = "greater_is_better"
    LABEL_NAMES = "label_names"
    LEARNING_RATE = "learning_rate"
    LOAD_BEST_MODEL_AT_END = "load_best_model_at_end"
    LR_SCHEDULER_KWARGS = "lr_scheduler_kwargs"
    LR_SCHEDULER_TYPE = "lr_scheduler_type"
    MAX_GRAD_NORM = "max_grad_norm"
    MAX_LENGTH = "max_length"
    METRIC_FOR_BEST_MODEL = "metric_for_best_model"
    OPTIM = "optim"
    PER_DEVICE_TRAIN_BATCH_SIZE = "per_device_train_batch_size"
    REMOVE_UNUSED_COLUMNS = "remove_unused_columns"
    STEPS_PER_EPOCH = "steps_per_epoch"
    TRAIN_SAMPLING_STRATEGY = "train_sampling_strategy"
    WARMUP_STEPS = "warmup_steps"
    WEIGHT_DECAY = "weight_decay"

    @property
    def made(self) -> Role:
        """The role of the line that made the object with this role.

        Raises:
            ValueError: if no adapter records that line.
        """
        return Role(f"{self}_made")


def role_of_split(name: str) -> Role:
    """The role of the data set whose facts are named `train` or `evaluation`."""
    return Role.TRAIN_DATASET if name == "train" else Role.EVAL_DATASET
