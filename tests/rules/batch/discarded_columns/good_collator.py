"""Images that a collator makes into what the model takes."""

# slow

import numpy as np
import torch
from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_digits
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

digits = load_digits()
data = Dataset.from_dict({"image": digits.images[:400], "label": digits.target[:400]})


def collate(rows):
    pixels = torch.tensor(np.array([r["image"] for r in rows]), dtype=torch.float32).unsqueeze(1) / 16
    return {"pixel_values": pixels, "labels": torch.tensor([r["label"] for r in rows])}


config = ViTConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=8,
                   patch_size=2, num_channels=1, num_labels=10)  # fmt: skip
settings = {"learning_rate": 3e-3, "per_device_train_batch_size": 16}
args = TrainingArguments(**QUIET, **settings, remove_unused_columns=False)
trainer = Trainer(ViTForImageClassification(config), args, train_dataset=data, data_collator=collate)
trainer.train()
