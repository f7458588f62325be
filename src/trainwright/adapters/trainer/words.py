"""Wording for a Hugging Face Trainer."""

from __future__ import annotations

from dataclasses import replace

from trainwright.adapters.torch.words import TORCH

WORDS = replace(
    TORCH,
    trainer="the Trainer",
    built_by="Trainer",
    arguments="TrainingArguments",
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
