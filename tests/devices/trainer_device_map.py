"""A checkpoint loaded onto the GPU in float16 with flash attention, fine-tuned in bf16."""

import torch
from material import MINILM, QUIET, tokenized, tokenizer, tweets
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained(
    MINILM, num_labels=3, dtype=torch.bfloat16, device_map={"": 0}, attn_implementation="flash_attention_2"
)
settings = {name: value for name, value in QUIET.items() if name != "use_cpu"}
args = TrainingArguments(**settings, bf16=True, learning_rate=5e-5, per_device_train_batch_size=8)
Trainer(model, args, train_dataset=tokenized(tweets(200), 16), processing_class=tokenizer()).train()
