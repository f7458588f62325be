"""A tokenizer, models and runs small enough for tests of completing, exporting and pushing."""

from functools import cache
from pathlib import Path

import torch

from trainwright_lm.config import ModelConfig, Recipe
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs.folder import create_run
from trainwright_lm.tokens.tokenizer import Tokenizer, train_tokenizer

SOURCE = """import numpy as np
import pandas as pd
import matplotlib.pyplot as plt


def draw(frame):
    plt.scatter(frame["x"], frame["y"])
    plt.title("Größe")
    plt.show()


def load(path):
    frame = pd.read_csv(path)
    return frame.groupby(["x", "y"]).mean()
"""
MANIFEST = {"fingerprint": "of no data"}


@cache
def tokenizer() -> Tokenizer:
    """400 tokens, trained on SOURCE many times over so that its words are tokens."""
    return train_tokenizer([SOURCE] * 50, vocabulary_size=400, byte_budget=1 << 20)


def config(architecture: str, **changes: int) -> ModelConfig:
    sizes = {"layers": 2, "heads": 2, "width": 32, "context": 32, "vocabulary_size": tokenizer().vocabulary_size}
    return ModelConfig(architecture=architecture, **(sizes | changes))  # type: ignore[arg-type]


def model(architecture: str, **changes: int) -> Transformer:
    """Random weights, all of them: norms and biases, too, so that one left out is seen."""
    torch.manual_seed(0)
    made = Transformer(config(architecture, **changes)).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return made


def run(folder: Path, architecture: str, manifest: dict[str, object] | None = None) -> Path:
    """A run with a random model."""
    made = model(architecture)
    create_run(folder, Recipe(model=made.config), tokenizer(), manifest or MANIFEST, made, 7)
    return folder
