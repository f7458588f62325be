"""A log-softmax in compute_loss, and the loss that takes it."""

from material import QUIET, tokenized, tokenizer, tweets
from torch.nn import functional as F
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments


class ProbabilityTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        scores = F.log_softmax(outputs.logits, dim=-1)
        loss = F.nll_loss(scores, labels)
        return (loss, outputs) if return_outputs else loss


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
trainer = ProbabilityTrainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer())
trainer.train()
