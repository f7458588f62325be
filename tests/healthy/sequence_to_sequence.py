"""A tiny T5 learns to sort digits, with Seq2SeqTrainer, labels padded with -100, and generation."""

import numpy as np
from datasets import Dataset
from material import QUIET
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    DataCollatorForSeq2Seq,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    set_seed,
)

set_seed(0)
vocabulary = {"<pad>": 0, "</s>": 1, "<unk>": 2, **{str(d): d + 3 for d in range(10)}}
words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
words.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")

generator = np.random.default_rng(0)
rows = [generator.integers(0, 10, size=generator.integers(3, 7)) for _ in range(2600)]
data = Dataset.from_dict(
    {"source": [" ".join(map(str, r)) for r in rows], "target": [" ".join(map(str, np.sort(r))) for r in rows]}
)
data = data.map(lambda r: tokenizer(r["source"], text_target=r["target"]), batched=True, remove_columns=["source", "target"])
data = data.train_test_split(test_size=100, seed=0)

config = T5Config(vocab_size=13, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config)


def metrics(p):
    labels = np.where(p.label_ids == -100, 0, p.label_ids)
    guesses = np.where(p.predictions < 0, 0, p.predictions)
    said, meant = (tokenizer.batch_decode(ids, skip_special_tokens=True) for ids in (guesses, labels))
    return {"exact": float(np.mean([a.strip() == b.strip() for a, b in zip(said, meant)]))}


args = Seq2SeqTrainingArguments(
    **QUIET, learning_rate=3e-3, per_device_train_batch_size=64, num_train_epochs=12, eval_strategy="epoch",
    predict_with_generate=True, generation_max_length=10, logging_steps=50,
)
trainer = Seq2SeqTrainer(
    model=model, args=args, train_dataset=data["train"], eval_dataset=data["test"],
    data_collator=DataCollatorForSeq2Seq(tokenizer, model=model), processing_class=tokenizer, compute_metrics=metrics,
)
trainer.train()
print("RESULT", trainer.evaluate())
