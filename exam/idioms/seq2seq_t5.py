import tempfile
import numpy as np
import torch
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration, set_seed

# task: spell numbers; source = digits with their place, target = one word per digit, in order
set_seed(5)
PAD, EOS, DIGIT0, WORD0 = 0, 1, 2, 22
MAX_SRC, MAX_TGT = 4, 4


class SpellNumbers(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.items = [rng.integers(0, 10, rng.integers(1, 3)).tolist() for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        digits = self.items[i]
        src = [DIGIT0 + 10 * place + d for place, d in enumerate(digits)] + [EOS]
        tgt = [WORD0 + (3 * d + 1) % 10 for d in digits] + [EOS]
        return {"input_ids": src, "labels": tgt}


def collate(features):
    input_ids = torch.full((len(features), MAX_SRC), PAD)
    labels = torch.full((len(features), MAX_TGT), -100)
    for i, f in enumerate(features):
        input_ids[i, :len(f["input_ids"])] = torch.tensor(f["input_ids"])
        labels[i, :len(f["labels"])] = torch.tensor(f["labels"])
    return {"input_ids": input_ids, "attention_mask": (input_ids != PAD).long(), "labels": labels}


def compute_metrics(p):
    hits = 0
    for pred, digits in zip(p.predictions, eval_set.items):
        got = [t for t in pred.tolist() if t not in (-100, PAD, EOS)]
        hits += got == [WORD0 + (3 * d + 1) % 10 for d in digits]
    return {"exact_match": hits / len(p.label_ids)}


eval_set = SpellNumbers(200, 1)
config = T5Config(vocab_size=34, d_model=64, d_kv=16, d_ff=96, num_layers=1, num_decoder_layers=1, num_heads=4, dropout_rate=0.0,
                  decoder_start_token_id=PAD, pad_token_id=PAD, eos_token_id=EOS)
model = T5ForConditionalGeneration(config)
with tempfile.TemporaryDirectory() as tmp:
    args = Seq2SeqTrainingArguments(output_dir=tmp, num_train_epochs=6, per_device_train_batch_size=32, per_device_eval_batch_size=100,
                                    learning_rate=5e-3, logging_strategy="epoch", save_strategy="no", eval_strategy="no",
                                    predict_with_generate=True, generation_max_length=7, report_to="none", use_cpu=True,
                                    remove_unused_columns=False, disable_tqdm=True)
    trainer = Seq2SeqTrainer(model=model, args=args, train_dataset=SpellNumbers(960, 0), eval_dataset=eval_set,
                             data_collator=collate, compute_metrics=compute_metrics)
    trainer.train()
    metrics = trainer.evaluate()
print(f"eval loss {metrics['eval_loss']:.3f} exact match {metrics['eval_exact_match']:.3f}")
