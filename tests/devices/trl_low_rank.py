"""TRL with PEFT's adapters on a model that was moved, in fp16."""

from datasets import Dataset
from material import tokenizer, tweets
from peft import LoraConfig
from transformers import GPT2Config, GPT2LMHeadModel
from trl import SFTConfig, SFTTrainer

words = tokenizer()
words.eos_token = words.sep_token
texts = Dataset.from_dict({"text": tweets(120)["text"].tolist()})
sizes = {"n_layer": 2, "n_head": 2, "n_embd": 64, "n_positions": 128, "vocab_size": len(words)}
ends = {"bos_token_id": words.cls_token_id, "eos_token_id": words.sep_token_id, "pad_token_id": words.pad_token_id}
model = GPT2LMHeadModel(GPT2Config(**sizes, **ends))

args = SFTConfig(output_dir="/tmp/trainwright-test", report_to="none", save_strategy="no", max_length=32, fp16=True,
                 per_device_train_batch_size=8, learning_rate=1e-2, gradient_checkpointing=False)  # fmt: skip
adapters = LoraConfig(task_type="CAUSAL_LM", r=8, target_modules=["c_attn"], fan_in_fan_out=True)
model.to("cuda")
SFTTrainer(model=model, args=args, train_dataset=texts, processing_class=words, peft_config=adapters).train()
# slow
