"""Completes a recipe's prompts during training."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from trainwright_lm.completion.complete import complete
from trainwright_lm.config import Recipe
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs.folder import Run
from trainwright_lm.tokens.tokenizer import Tokenizer


def sample(model: Transformer, tokenizer: Tokenizer, recipe: Recipe, update: int) -> dict[str, str]:
    """The greedy completion of each prompt to the end of the line; draws no random numbers."""
    training = model.training
    run = Run(folder=Path(), recipe=recipe, model=model.eval(), tokenizer=tokenizer, step=update)
    try:
        return {prompt: complete(run, prompt) for prompt in recipe.run.prompts}
    finally:
        model.train(training)


def unsharded(recipe: Recipe, tensors: dict[str, Tensor]) -> Transformer:
    """A separate model with these weights, for completions while the trained one is sharded."""
    model = Transformer(recipe.model)
    model.load_state_dict(tensors)
    return model
