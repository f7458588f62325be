import random
import tempfile

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments, losses
from sentence_transformers.models import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast, set_seed

set_seed(3)
random.seed(3)
EN = [f"word{i}" for i in range(40)]
XX = [f"mot{i}" for i in range(40)]  # XX[i] means EN[i]


def make_pairs(n):
    anchors, positives = [], []
    for _ in range(n):
        pick = random.sample(range(40), 4)
        anchors.append(" ".join(EN[i] for i in pick))
        random.shuffle(pick)
        positives.append(" ".join(XX[i] for i in pick))
    return anchors, positives


def build_model(folder):
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = specials + EN + XX
    with open(f"{folder}/vocab.txt", "w") as f:
        f.write("\n".join(tokens))
    BertTokenizerFast(vocab={t: i for i, t in enumerate(tokens)}).save_pretrained(folder)
    BertModel(BertConfig(vocab_size=len(tokens), hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=128,
                         max_position_embeddings=32)).save_pretrained(folder)
    word = Transformer(folder, max_seq_length=16)
    return SentenceTransformer(modules=[word, Pooling(64, pooling_mode="mean")], device="cpu")


def recall_at_1(model, pairs):
    a = model.encode(pairs[0], convert_to_tensor=True, normalize_embeddings=True)
    p = model.encode(pairs[1], convert_to_tensor=True, normalize_embeddings=True)
    return ((a @ p.T).argmax(1) == torch.arange(len(a))).float().mean().item()


with tempfile.TemporaryDirectory() as tmp:
    model = build_model(tmp)
    anchors, positives = make_pairs(960)
    train_dataset = Dataset.from_dict({"anchor": anchors, "positive": positives})
    test = make_pairs(100)
    before = recall_at_1(model, test)
    args = SentenceTransformerTrainingArguments(output_dir=tmp, num_train_epochs=4, per_device_train_batch_size=32, learning_rate=3e-3,
                                                warmup_steps=10, logging_steps=20, save_strategy="no", report_to="none",
                                                use_cpu=True, disable_tqdm=True)
    trainer = SentenceTransformerTrainer(model=model, args=args, train_dataset=train_dataset,
                                         loss=losses.MultipleNegativesRankingLoss(model))
    trainer.train()
    history = [h["loss"] for h in trainer.state.log_history if "loss" in h]
    print(f"loss {history[0]} -> {history[-1]}; recall@1 {before:.2f} -> {recall_at_1(model, test):.2f}")
