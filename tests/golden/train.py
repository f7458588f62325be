"""A script that is only read, by the tests of the reports."""

from transformers import Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("distilbert-base-uncased")
args = TrainingArguments(
    output_dir="tweets",
    learning_rate=5.0,
    eval_strategy="epoch",
)
trainer = Trainer(model, args, train_dataset=tokenized["train"], eval_dataset=tokenized["test"])
trainer.train()
