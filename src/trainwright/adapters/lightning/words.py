"""Wording for a Lightning Trainer."""

from __future__ import annotations

from dataclasses import replace

from trainwright.adapters.torch.words import TORCH

WORDS = replace(
    TORCH,
    trainer="the Trainer",
    evaluation_data="val_dataloaders",
    stratified_split="torch.utils.data.random_split, or scikit-learn's train_test_split(…, stratify=labels)",
    fewer_predictions="keep only what the metrics need from each batch, such as outputs.argmax(-1)",
    less_memory='torch.utils.checkpoint, Trainer(precision="bf16-mixed")',
    smaller_batches="pass batch_size={rows} to the DataLoader and accumulate_grad_batches={steps} to the Trainer",
    schedule_per_update='return the schedule as {"scheduler": …, "interval": "step"}',
    backward="return the loss from training_step",
    joined_processes="start the script itself: the Trainer starts its processes",
    shared_rows="Trainer(use_distributed_sampler=True)",
)
