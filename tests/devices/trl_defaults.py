"""TRL's SFTTrainer as it comes: in bf16."""
# slow

from datasets import Dataset
from material import tokenizer, tweets
from transformers import GPT2Config, GPT2LMHeadModel
from trl import SFTConfig, SFTTrainer

words = tokenizer()
words.eos_token = words.sep_token
texts = Dataset.from_dict({"text": tweets(120)["text"].tolist()})
sizes = {"n_layer": 2, "n_head": 2, "n_embd": 64, "n_positions": 128, "vocab_size": len(words)}
ends = {"bos_token_id": words.cls_token_id, "eos_token_id": words.sep_token_id, "pad_token_id": words.pad_token_id}
model = GPT2LMHeadModel(GPT2Config(**sizes, **ends))

args = SFTConfig(output_dir="/tmp/trainwright-test", report_to="none", save_strategy="no", max_length=32,
                 per_device_train_batch_size=8, learning_rate=1e-3)  # fmt: skip
SFTTrainer(model=model, args=args, train_dataset=texts, processing_class=words).train()
