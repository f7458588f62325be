"""Small prepared data and runs for the tests of `lm eval`."""

from pathlib import Path

import torch

from trainwright_lm.config import Recipe, recipe_from
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs.folder import Run, create_run, open_run
from trainwright_lm.tokens.pack import TokenFile, open_tokens, write_tokens
from trainwright_lm.tokens.prepared import PreparedData
from trainwright_lm.tokens.tokenizer import Tokenizer, train_tokenizer

SCRIPT = '''"""Plots of numbers."""
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.linear_model import LinearRegression


def show_{name}(path):
    """Show {name}."""
    df = pd.read_csv(path)  # with a header
    plt.plot(df["x"], df["y"])
    plt.show()
    model = LinearRegression().fit(df[["x"]], df["y"])
    return model.predict(df[["x"]])
'''
TRAINING = [SCRIPT.format(name=name) for name in ("costs", "prices", "rates", "größen")]
HELD_OUT = [SCRIPT.format(name=name) for name in ("sales", "weights")]


def tokenizer_of(texts: list[str], vocabulary_size: int = 320) -> Tokenizer:
    return train_tokenizer(texts, vocabulary_size=vocabulary_size, byte_budget=1_000_000)


def tokens_of(file: Path, texts: list[str], tokenizer: Tokenizer) -> TokenFile:
    write_tokens(file, map(tokenizer.encode, texts), tokenizer.vocabulary_size, end_id=tokenizer.end_id)
    return open_tokens(file)


def prepared(
    folder: Path, training: list[str] = TRAINING, held_out: list[str] = HELD_OUT, fingerprint: str = "f00d"
) -> PreparedData:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer_of(training)
    keywords = ["pandas", "sklearn", "matplotlib", "seaborn"]
    return PreparedData(
        folder=folder,
        tokenizer=tokenizer,
        train=tokens_of(folder / "train.bin", training, tokenizer),
        validation=tokens_of(folder / "validation.bin", held_out, tokenizer),
        manifest={"fingerprint": fingerprint, "options": {"filters": {"keywords": keywords}}, "folder": str(folder)},
    )


def tiny_recipe(tokenizer: Tokenizer, context: int = 16) -> Recipe:
    shape = {"layers": 1, "heads": 2, "width": 16, "context": context}
    return recipe_from({"model": {**shape, "vocabulary_size": tokenizer.vocabulary_size}})


def tiny_model(tokenizer: Tokenizer, context: int = 16, seed: int = 0) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(tiny_recipe(tokenizer, context).model).eval()


def tiny_run(folder: Path, data: PreparedData) -> Run:
    """A run whose model has learned nothing."""
    model = tiny_model(data.tokenizer)
    create_run(folder, tiny_recipe(data.tokenizer), data.tokenizer, data.manifest, model)
    return open_run(folder)
