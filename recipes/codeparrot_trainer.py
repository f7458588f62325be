"""Train a GPT-2 from scratch on Python code, with the Trainer.

python codeparrot_trainer.py --tiny
accelerate launch codeparrot_trainer.py --precision bf16 --hub huggingface-course/codeparrot-ds-train --files 600000
"""

import math

from codeparrot_data import build_model, complete, prepare, read_arguments
from transformers import DataCollatorForLanguageModeling, Trainer, TrainerCallback, TrainingArguments, set_seed

args = read_arguments(__doc__, out="codeparrot-ds", schedule="cosine")
set_seed(0)
tokenizer, train, valid = prepare(args)
model = build_model(args, tokenizer)
print(f"{len(train):,} blocks, {len(valid):,} to validate, {model.num_parameters():,} parameters")


class Perplexity(TrainerCallback):
    """Add the perplexity to every logged loss of the validation blocks."""

    def on_log(self, args, state, control, logs, **kwargs):
        if "eval_loss" in logs:
            logs["eval_perplexity"] = math.exp(logs["eval_loss"])


arguments = TrainingArguments(
    args.out,
    num_train_epochs=args.epochs,
    per_device_train_batch_size=args.batch,
    per_device_eval_batch_size=args.batch,
    gradient_accumulation_steps=args.accumulation,  # the Trainer divides by the labels of all these batches
    learning_rate=args.rate,
    lr_scheduler_type=args.schedule,
    warmup_steps=args.warmup,  # updates, as the Trainer's schedule counts them
    weight_decay=0.1,  # the Trainer leaves out biases and norms
    bf16=args.precision == "bf16",
    fp16=args.precision == "fp16",
    eval_strategy="steps",
    eval_on_start=True,
    eval_steps=args.evaluate_every,
    save_steps=args.evaluate_every,
    logging_steps=args.log_every,
    report_to=args.report or "none",
    push_to_hub=bool(args.push),
    hub_model_id=args.push,
)
trainer = Trainer(
    model,
    arguments,
    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),  # labels are the inputs; the model shifts them
    train_dataset=train,
    eval_dataset=valid,
    processing_class=tokenizer,
    callbacks=[Perplexity()],
)
trainer.train()
trainer.evaluate()
trainer.save_model()
if args.push:
    trainer.push_to_hub()
if trainer.is_world_process_zero():
    complete(trainer.model, tokenizer)
