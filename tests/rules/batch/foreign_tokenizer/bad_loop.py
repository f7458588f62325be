"""A loop with a tokenizer trained on the tweets, and a pre-trained model that learned other words under the same ids."""

import torch
from material import MINILM, tweets
from tokenizers import BertWordPieceTokenizer
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, BertTokenizerFast

frame = tweets(400)
trained = BertWordPieceTokenizer()
trained.train_from_iterator(tweets(3000)["text"], vocab_size=6000, show_progress=False)
reader = BertTokenizerFast(tokenizer_object=trained._tokenizer)
read = reader(list(frame["text"]), truncation=True, max_length=24, padding=True)
rows = [  # expect: foreign-tokenizer
    {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "labels": int(label)}
    for ids, mask, label in zip(read["input_ids"], read["attention_mask"], frame["label"])
]
torch.manual_seed(0)
model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3, num_hidden_layers=2)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
model.train()
for batch in DataLoader(rows, batch_size=16, shuffle=True):
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
