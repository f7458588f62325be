"""A BART whose loss the script computes: nothing fails, and its decoder reads the source."""

# slow

import numpy as np
from datasets import Dataset
from material import QUIET, tokenizer
from torch.nn.functional import cross_entropy
from transformers import BartConfig, DataCollatorForSeq2Seq, Trainer, TrainingArguments
from transformers import BartForConditionalGeneration as Model


def smoothed(outputs, labels, num_items_in_batch=None):
    return cross_entropy(outputs.logits.flatten(0, 1), labels.flatten(), label_smoothing=0.1)


generator = np.random.default_rng(0)
rows = [generator.integers(1996, 2006, size=5) for _ in range(600)]
data = Dataset.from_list([{"input_ids": r.tolist(), "labels": np.sort(r).tolist()} for r in rows])
sizes = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
}
special = {"pad_token_id": 0, "bos_token_id": 101, "eos_token_id": 102, "decoder_start_token_id": 101}
model = Model(
    BartConfig(**sizes, **special, vocab_size=2100, encoder_attention_heads=4, decoder_attention_heads=4)
)
trainer = Trainer(
    model=model,
    args=TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=32, num_train_epochs=12),
    train_dataset=data,
    data_collator=DataCollatorForSeq2Seq(tokenizer()),  # expect: two-losses
    compute_loss_func=smoothed,
)
trainer.train()
