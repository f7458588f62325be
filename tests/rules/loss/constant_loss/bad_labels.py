"""A loss of the labels with themselves."""

from material import QUIET, tokenized, tokenizer, tweets
from torch.nn import functional as F
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

frame = tweets(400)


class LossTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        one_hot = F.one_hot(labels, 3).float()
        loss = F.cross_entropy(one_hot, labels)  # expect: constant-loss
        return (loss, outputs) if return_outputs else loss


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = LossTrainer(model, args, train_dataset=tokenized(frame), processing_class=tokenizer())
trainer.train()
