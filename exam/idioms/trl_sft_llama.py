"""Supervised fine-tuning of a toy Llama with TRL on a dataset made in memory."""
import random
import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

set_seed(0)
random.seed(0)
CAPITALS = {"france": "paris", "italy": "rome", "spain": "madrid", "japan": "tokyo", "peru": "lima", "kenya": "nairobi",
            "egypt": "cairo", "norway": "oslo", "greece": "athens", "cuba": "havana", "iraq": "baghdad", "chile": "santiago"}
TEMPLATES = ["the capital of {} is {}", "in {} the main city is {}", "{} has its seat in {}"]


def make_texts(n):
    out = []
    for _ in range(n):
        country = random.choice(list(CAPITALS))
        out.append({"text": random.choice(TEMPLATES).format(country, CAPITALS[country])})
    return out


def build_tokenizer():
    words = sorted({w for t in TEMPLATES for w in t.replace("{}", "").split()} | set(CAPITALS) | set(CAPITALS.values()))
    vocab = {w: i for i, w in enumerate(["<pad>", "<s>", "</s>", "<unk>"] + words)}
    tok = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def main():
    tokenizer = build_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=64, pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    with tempfile.TemporaryDirectory() as out:
        args = SFTConfig(output_dir=out, max_length=32, per_device_train_batch_size=16, per_device_eval_batch_size=32,
                         num_train_epochs=3, learning_rate=5e-3, lr_scheduler_type="cosine", warmup_steps=5, logging_steps=10,
                         eval_strategy="epoch", save_strategy="no", report_to="none", use_cpu=True, bf16=False,
                         gradient_checkpointing=False, disable_tqdm=True, dataset_num_proc=None)
        trainer = SFTTrainer(model=model, args=args, train_dataset=Dataset.from_list(make_texts(320)),
                             eval_dataset=Dataset.from_list(make_texts(64)), processing_class=tokenizer)
        before = trainer.evaluate()["eval_loss"]
        trainer.train()
        after = trainer.evaluate()["eval_loss"]
    print(f"eval loss before {before:.3f} after {after:.3f}")
    model.eval()
    enc = tokenizer("the capital of japan is", return_tensors="pt")
    gen = model.generate(input_ids=enc["input_ids"], attention_mask=enc["attention_mask"], max_new_tokens=1, do_sample=False)
    print(tokenizer.decode(gen[0]))


if __name__ == "__main__":
    main()
