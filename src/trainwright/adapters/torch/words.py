"""Wording shared by all torch trainings."""

from __future__ import annotations

from dataclasses import replace

from trainwright.stages import Words

TORCH = Words(
    layer_list="nn.ModuleList",
    layer_dict="nn.ModuleDict",
    causal_mask="give the attention a causal mask (is_causal=True); is_decoder=True for a model that has that setting",
    embedding_rows="num_embeddings",
    losses={
        "binary_cross_entropy": "nn.BCELoss",
        "binary_cross_entropy_with_logits": "nn.BCEWithLogitsLoss",
        "nll_loss": "nn.NLLLoss",
        "cross_entropy": "nn.CrossEntropyLoss",
        "ctc_loss": "nn.CTCLoss",
    },
    multilabel_loss='nn.BCEWithLogitsLoss (Hugging Face: problem_type="multi_label_classification")',
    unlabelled_rows="mark rows without a label with -100",
    collator="pass collate_fn={value} to the DataLoader",
    drop_last="drop_last=True",
    backward="call loss.backward() before the update",
)
# For a loop of the script's own, and one that uses an Accelerator.
LOOP = replace(
    TORCH,
    evaluation_data="the data set of the evaluation's DataLoader",
    stratified_split="torch.utils.data.random_split, or scikit-learn's train_test_split(…, stratify=labels)",
    fewer_predictions="keep only what the metrics need from each batch, such as outputs.argmax(-1)",
    less_memory="torch.utils.checkpoint, torch.autocast with bfloat16",
    smaller_batches="pass batch_size={rows} to the DataLoader, and call optimizer.step() after every {steps} backward passes of "
    "loss / {steps}",
    joined_processes="call torch.distributed.init_process_group",
    shared_rows="A DistributedSampler",
)
WITH_ACCELERATE = replace(
    LOOP,
    less_memory='torch.utils.checkpoint, Accelerator(mixed_precision="bf16")',
    smaller_batches="pass batch_size={rows} to the DataLoader and gradient_accumulation_steps={steps} to the Accelerator",
    backward="call accelerator.backward(loss) before the update",
    joined_processes="on a CPU, write Accelerator(cpu=True)",
    shared_rows="Accelerator.prepare",
)
LIGHTNING = replace(
    LOOP,
    trainer="the Trainer",
    evaluation_data="val_dataloaders",
    less_memory='torch.utils.checkpoint, Trainer(precision="bf16-mixed")',
    smaller_batches="pass batch_size={rows} to the DataLoader and accumulate_grad_batches={steps} to the Trainer",
    followed="have it monitor a number",
    schedule_per_update='return the schedule as {"scheduler": …, "interval": "step"}',
    backward="return the loss from training_step",
    joined_processes="start the script itself: the Trainer starts its processes",
    shared_rows="Trainer(use_distributed_sampler=True)",
)
# For a Hugging Face Trainer.
TRAINER = replace(
    TORCH,
    trainer="the Trainer",
    built_by="Trainer",
    arguments="TrainingArguments",
    followed="set metric_for_best_model to a number",
    evaluation_data="eval_dataset",
    stratified_split="train_test_split(…, shuffle=True, stratify_by_column=…)",
    drop_last="dataloader_drop_last=True",
    collator="pass data_collator={value} to the Trainer",
    fewer_predictions="pass preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1) to the Trainer",
    less_memory="gradient_checkpointing=True, bf16=True",
    smaller_batches="pass per_device_train_batch_size={rows} and gradient_accumulation_steps={steps}",
    backward="call self.accelerator.backward(loss) in training_step",
    averaged_accumulation="loss_is_scaled_for_ga = False lets the Trainer do it",
    joined_processes="on a CPU, write TrainingArguments(use_cpu=True)",
    shared_rows="The Trainer's own loader",
)
