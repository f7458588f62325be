import torch
from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)
model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-5)
trainer = Trainer(
    model,
    TrainingArguments(**QUIET, learning_rate=5e-5, per_device_train_batch_size=8),
    train_dataset=tokenized(tweets(400), length=16),
    data_collator=DataCollatorWithPadding(tokenizer()),
    optimizers=(optimizer, None),
)
trainer.train()
