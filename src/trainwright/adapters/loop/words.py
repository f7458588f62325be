"""Wording for a handwritten training loop."""

from __future__ import annotations

from dataclasses import replace

from trainwright.adapters.torch.words import TORCH

WORDS = replace(
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
# For a loop that uses an Accelerator.
WITH_ACCELERATE = replace(
    WORDS,
    less_memory='torch.utils.checkpoint, Accelerator(mixed_precision="bf16")',
    smaller_batches="pass batch_size={rows} to the DataLoader and gradient_accumulation_steps={steps} to the Accelerator",
    backward="call accelerator.backward(loss) before the update",
    joined_processes="on a CPU, write Accelerator(cpu=True)",
    shared_rows="Accelerator.prepare",
)
