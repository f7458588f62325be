# verdict: does not learn
# finds: held-out-at-constant
# A prediction step that leaves the mode of the model alone; 75 steps are too few to learn from tweets.
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, eval_strategy="epoch")


class OwnTrainer(Trainer):
    def prediction_step(self, model, inputs, *rest, **options):
        inputs.pop("idx", None)
        return super().prediction_step(model, inputs, *rest, **options)


trainer = OwnTrainer(
    model,
    args,
    train_dataset=tokenized(tweets(400)),
    eval_dataset=tokenized(tweets(100, start=400)),
    processing_class=tokenizer(),
)
trainer.train()
