"""Everything in main(), with arguments from the command line and a guard."""

import argparse
import logging

import numpy as np
from material import MINILM, QUIET, tokenized, tokenizer, tweets  # slow
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments, set_seed

logger = logging.getLogger(__name__)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def build_trainer(options):
    train, test = tokenized(tweets(options.rows), 24), tokenized(tweets(80, start=5000), 24)
    model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=3)
    args = TrainingArguments(
        **QUIET, learning_rate=options.learning_rate, num_train_epochs=options.epochs, seed=options.seed, eval_strategy="epoch"
    )

    def compute_metrics(prediction):
        return {"accuracy": np.mean(prediction.predictions.argmax(-1) == prediction.label_ids)}

    return Trainer(
        model=model, args=args, train_dataset=train, eval_dataset=test, compute_metrics=compute_metrics,
        data_collator=DataCollatorWithPadding(tokenizer()),
    )


def main():
    logging.basicConfig(level=logging.INFO)
    options = parse()
    set_seed(options.seed)
    logger.info("training with %s", options)
    trainer = build_trainer(options)
    trainer.train()
    print("RESULT", trainer.evaluate())


if __name__ == "__main__":
    main()
