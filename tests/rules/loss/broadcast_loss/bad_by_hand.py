"""A Trainer subclass whose hand-written absolute error compares logits (N, 1) with labels (N)."""

from material import QUIET, tokenized, tokenizer, tweets

from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

class LengthTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = (outputs.logits - labels).abs().mean()  # expect: broadcast-loss
        return (loss, outputs) if return_outputs else loss

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=1)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
frame = tweets(400)
frame["label"] = frame["text"].str.len() / 140
trainer = LengthTrainer(model, args, train_dataset=tokenized(frame), processing_class=tokenizer())
trainer.train()
