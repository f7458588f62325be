"""A T5 whose labels the Trainer's label smoothing keeps from it."""

import numpy as np
from datasets import Dataset
from material import QUIET, tokenizer
from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config
from transformers import T5ForConditionalGeneration as Model

generator = np.random.default_rng(0)
rows = [generator.integers(1996, 2006, size=generator.integers(3, 7)) for _ in range(600)]
data = Dataset.from_list([{"input_ids": r.tolist(), "labels": np.sort(r).tolist()} for r in rows])
model = Model(
    T5Config(
        vocab_size=2100, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
)
trainer = Seq2SeqTrainer(
    model=model,
    args=Seq2SeqTrainingArguments(
        **QUIET,
        learning_rate=3e-3,
        per_device_train_batch_size=32,
        num_train_epochs=12,
        label_smoothing_factor=0.1,
    ),
    train_dataset=data,
    data_collator=DataCollatorForSeq2Seq(tokenizer()),  # expect: two-losses
)
trainer.train()
