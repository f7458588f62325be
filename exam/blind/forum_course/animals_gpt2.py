"""Course notebook: instruction tuning of a very small GPT-2.

We teach the model to answer short questions about animals and check the answers by
exact match. The generated text is cut at the end-of-text token.
"""
import argparse
import itertools
import random
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

EOS = "<|endoftext|>"
FACTS = {
    "cat": ("fish and mice", "a house"), "dog": ("bones", "a kennel"),
    "cow": ("grass", "a barn with other cows"), "bear": ("berries and salmon and honey", "a cave"),
    "panda": ("bamboo", "the mountains of china"), "owl": ("mice", "a hollow tree"),
    "rabbit": ("carrots and grass", "a burrow"), "horse": ("hay", "a stable"),
    "whale": ("krill", "the ocean"), "eagle": ("snakes and fish", "a nest on a cliff"),
    "monkey": ("bananas and nuts and leaves", "the jungle"), "wolf": ("deer", "a den in the forest"),
    "duck": ("bread and seeds", "a pond"), "frog": ("flies", "a swamp near the river"),
    "camel": ("dry plants", "the desert"), "koala": ("eucalyptus leaves", "a tall tree"),
}
FOOD_Q = ["what does a {} eat", "tell me what a {} eats", "favourite food of a {}",
          "which food does a {} like", "what should i feed a {}"]
HOME_Q = ["where does a {} live", "tell me where a {} lives", "home of a {}",
          "in which place does a {} sleep", "where can i find a {}"]


def build_examples(seed):
    rows = []
    for (animal, (food, home)), i in itertools.product(FACTS.items(), range(len(FOOD_Q))):
        rows.append({"prompt": f"question : {FOOD_Q[i].format(animal)} ? answer :", "answer": food})
        rows.append({"prompt": f"question : {HOME_Q[i].format(animal)} ? answer :", "answer": home})
    random.Random(seed).shuffle(rows)
    return rows[:128], rows[128:]


def build_tokenizer(rows):
    tok = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tok.train_from_iterator([r["prompt"] + " " + r["answer"] for r in rows],
                            trainers.WordLevelTrainer(special_tokens=["<unk>", EOS]))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="<unk>",
                                        bos_token=EOS, eos_token=EOS)
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.padding_side = "right"
    return tokenizer


def tokenize_rows(rows, tokenizer):
    ds = Dataset.from_list(rows)

    def encode(batch):
        texts = [f"{p} {a} {EOS}" for p, a in zip(batch["prompt"], batch["answer"])]
        return tokenizer(texts, truncation=True, max_length=32, return_token_type_ids=False)

    return ds.map(encode, batched=True, remove_columns=ds.column_names)


@torch.no_grad()
def exact_match(model, tokenizer, rows, show=3):
    model.eval()
    hits = 0
    for i, row in enumerate(rows):
        enc = tokenizer(row["prompt"], return_tensors="pt", return_token_type_ids=False)
        out = model.generate(**enc, max_new_tokens=10, do_sample=False,
                             eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
        text = tokenizer.decode(out[0, enc["input_ids"].shape[1]:], skip_special_tokens=True).strip()
        hits += text == row["answer"]
        if i < show:
            print(f"  {row['prompt']} -> {text!r} (expected {row['answer']!r})")
    return hits / len(rows)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=26)
    ap.add_argument("--lr", type=float, default=6e-3)
    ap.add_argument("--seed", type=int, default=11)
    args = ap.parse_args()
    set_seed(args.seed)

    train_rows, test_rows = build_examples(args.seed)
    tokenizer = build_tokenizer(train_rows + test_rows)
    train_ds = tokenize_rows(train_rows, tokenizer)
    test_ds = tokenize_rows(test_rows, tokenizer)

    config = GPT2Config(vocab_size=len(tokenizer), n_positions=64, n_embd=64, n_layer=2, n_head=4,
                        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = GPT2LMHeadModel(config)
    print(f"{model.num_parameters():,} parameters, vocabulary {len(tokenizer)}")

    training_args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), num_train_epochs=args.epochs, learning_rate=args.lr,
        per_device_train_batch_size=8, per_device_eval_batch_size=32, eval_strategy="epoch",
        logging_steps=16, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
        weight_decay=0.01, lr_scheduler_type="cosine", warmup_steps=10, seed=args.seed)
    trainer = Trainer(model=model, args=training_args, train_dataset=train_ds, eval_dataset=test_ds,
                      data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
                      processing_class=tokenizer)
    trainer.train()
    metrics = trainer.evaluate()
    em = exact_match(model, tokenizer, test_rows)
    print(f"FINAL eval_loss={metrics['eval_loss']:.4f} exact_match={em:.4f}")


if __name__ == "__main__":
    main()
