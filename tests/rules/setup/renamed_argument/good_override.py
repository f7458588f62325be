# slow

import torch
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
train, test = tokenized(tweets(400)), tokenized(tweets(100, start=400))
config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weight = torch.tensor([1.0, 2.0, 1.0])
        loss = torch.nn.functional.cross_entropy(outputs.logits, labels, weight=weight)
        return (loss, outputs) if return_outputs else loss


args = TrainingArguments(**QUIET, eval_strategy="epoch", learning_rate=1e-3, per_device_train_batch_size=16)
model = DistilBertForSequenceClassification(config)
trainer = WeightedTrainer(model, args, train_dataset=train, eval_dataset=test, processing_class=tokenizer())
trainer.train()
