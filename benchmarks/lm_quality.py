"""Quality for a budget: the tokens our recipe needs to reach the Trainer's final validation loss on the same data.

    .venv/bin/python benchmarks/lm_quality.py [--data DATA] [--minutes N] [--rate R] [--set section.key=value]

The reference is the recipe of the Hugging Face course, chapter 7.6, at the size of preset `tiny`: a GPT-2 with dropout 0.1,
trained by transformers' Trainer with AdamW (5e-4, weight decay 0.1), cosine with 1.5 % of warm-up (its 1,000 of 65,242
steps) and clipping at 1, for so many minutes of processor time (`--updates` instead fixes their number). `--rate` gives it
another learning rate. Ours is `trainwright lm train` with preset `tiny`: as many layers, as wide, the same windows an
update, parameters within 2 %. Each of our trainings is a whole one, its schedule ended, with a tenth of the reference's
updates or two tenths and so on; the fewest that reach its loss are looked for by bisection, so about 1.5 times the
reference's tokens are trained on besides. Both losses are nats per token over the same held-out windows.
"""

import argparse
import contextlib
import dataclasses
import datetime
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "lm" / "src"))

import numpy as np
import torch
from torch.nn import functional as F

from trainwright_lm.config import Recipe, load_recipe
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs.folder import open_run
from trainwright_lm.tokens.pack import Windows
from trainwright_lm.tokens.prepared import PreparedData, open_data
from trainwright_lm.training.processes import Processes, SummedLoss, mean_nats
from trainwright_lm.training.train import train

PARTS = 10
"""Our trainings have so many tenths of the reference's updates."""
HELD_OUT_WINDOWS = 512
"""Spread evenly over all of them."""
WARMUP_SHARE = 1000 / 65_242
TIMED_UPDATES = 5
Row = tuple[str, str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """How the Trainer ended."""

    loss: float
    """Nats per held-out token."""
    updates: int
    parameters: int
    seconds: float
    """Of the processor."""


def measure(
    folder: Path | None = None,
    minutes: float = 10.0,
    updates: int = 0,
    rate: float = 5e-4,
    settings: Sequence[str] = (),
) -> list[Row]:
    """Rows of: what, reference, ours, ratio, goal.

    Args:
        folder: Prepared data; None: `installed` is prepared as `make lm-demo` does.
        minutes: Of processor time for the reference, if `updates` is 0.
        rate: The reference's learning rate.
        settings: Change our recipe, each as section.key=value.
    """
    with tempfile.TemporaryDirectory() as name:
        data = open_data(folder or installed(Path(name) / "data"))
        recipe = load_recipe("tiny", settings=[*QUIET, *settings])
        check_parameters(data, recipe)
        reference = train_reference(data, recipe, minutes, updates, rate, Path(name))
        say(f"Trainer: {reference.loss:.4f} nats a token after {reference.updates} updates, {reference.seconds:.0f} s")

        def reaches(tenths: int) -> bool:
            count = math.ceil(reference.updates * tenths / PARTS)
            loss = train_ours(data, lasting(recipe, count), Path(name) / f"run-{tenths}")
            say(f"ours:    {loss:.4f} nats a token after {count} updates, {tenths / PARTS:.0%} of the tokens")
            return loss <= reference.loss

        tenths = fewest(reaches)
        return [row_of(reference, recipe, tenths, rate)]


QUIET = (
    "run.check=false", "run.evaluate_every=0", "run.evaluate_windows=1", "run.sample_every=0", "run.save_every=0",
    "run.precision=fp32",
)  # fmt: skip


def fewest(reaches: Callable[[int], bool]) -> int:
    """The fewest tenths that reach the loss, looked for from the goal on; 0 if all ten do not."""
    low, high, tried = 0, PARTS + 1, 6
    while high - low > 1:
        low, high = (low, tried) if reaches(tried) else (tried, high)
        tried = (low + high) // 2
    return high if high <= PARTS else 0


def row_of(reference: Reference, recipe: Recipe, tenths: int, rate: float) -> Row:
    """The row; the ratio is at most what it says, as tenths are what is tried."""
    per_update = recipe.data.windows * recipe.model.context
    ours = math.ceil(reference.updates * tenths / PARTS) * per_update
    what = f"tokens to a validation loss of {reference.loss:.3f} nats, {reference.parameters / 1e6:.1f} M parameters"
    return (
        f"{what} (the Trainer's learning rate: {rate:g})",
        f"{reference.updates * per_update:,} tokens",
        f"at most {ours:,} tokens" if tenths else f"not with {reference.updates * per_update:,} tokens",
        f"at most {tenths / PARTS:.1f}" if tenths else "above 1",
        "at most 0.60",
    )


def train_ours(data: PreparedData, recipe: Recipe, folder: Path) -> float:
    """The held-out loss of a whole training of ours."""
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
        train(data, folder, recipe)
    loss = SummedLoss(open_run(folder, "last").model)
    return mean_nats(loss, held_out(data, recipe), Processes(device=torch.device("cpu")), limit=HELD_OUT_WINDOWS)


def lasting(recipe: Recipe, updates: int) -> Recipe:
    """The recipe for so many updates; no more than a fifth of them are warm-up."""
    warmup = min(recipe.schedule.warmup_updates, updates // 5)
    return dataclasses.replace(
        recipe,
        run=dataclasses.replace(recipe.run, updates=updates),
        schedule=dataclasses.replace(recipe.schedule, warmup_updates=warmup),
    )


def check_parameters(data: PreparedData, recipe: Recipe) -> None:
    """Stop if our model and the reference differ in size by more than 2 %."""
    config = dataclasses.replace(recipe.model, vocabulary_size=data.tokenizer.vocabulary_size)
    ours = sum(parameter.numel() for parameter in Transformer(config).parameters())
    theirs = course_model(data, recipe).num_parameters()
    say(f"{ours:,} parameters, the Trainer's model {theirs:,}")
    if abs(ours / theirs - 1) > 0.02:
        raise SystemExit("They must not differ by more than 2 %; choose another shape with --set.")


def held_out(data: PreparedData, recipe: Recipe) -> Windows:
    """The windows that both are measured on."""
    return Windows(data.validation, recipe.model.context)


def train_reference(
    data: PreparedData, recipe: Recipe, minutes: float, updates: int, rate: float, folder: Path
) -> Reference:
    """The course's recipe with transformers' Trainer; how long is found out by a few updates first."""
    if not updates:
        begun = time.process_time()
        run_trainer(data, recipe, TIMED_UPDATES, rate, folder)
        updates = max(PARTS, int(minutes * 60 / (time.process_time() - begun) * TIMED_UPDATES))
    begun = time.process_time()
    model = run_trainer(data, recipe, updates, rate, folder)
    seconds = time.process_time() - begun
    return Reference(
        loss=loss_of(model, held_out(data, recipe)), updates=updates, parameters=model.num_parameters(), seconds=seconds
    )


def run_trainer(data: PreparedData, recipe: Recipe, updates: int, rate: float, folder: Path) -> torch.nn.Module:
    """A GPT-2 trained by the Trainer for so many updates."""
    from transformers import Trainer, TrainingArguments, set_seed

    set_seed(0)
    model, windows = course_model(data, recipe), Windows(data.train, recipe.model.context)
    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"), per_device_train_batch_size=recipe.data.windows, max_steps=updates,
        learning_rate=rate, weight_decay=0.1, lr_scheduler_type="cosine", warmup_steps=math.ceil(WARMUP_SHARE * updates),
        save_strategy="no", report_to="none", logging_strategy="no", disable_tqdm=True, use_cpu=True, seed=0,
    )  # fmt: skip
    with contextlib.redirect_stdout(sys.stderr):  # it prints its own numbers
        Trainer(model=model, args=arguments, train_dataset=CourseWindows(windows)).train()
    return model.eval()


def course_model(data: PreparedData, recipe: Recipe) -> torch.nn.Module:
    """A GPT-2 of our model's layers, heads, width and context, with GPT-2's dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel

    shape, end = recipe.model, data.tokenizer.end_id
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=data.tokenizer.vocabulary_size, n_positions=shape.context, n_embd=shape.width,
            n_layer=shape.layers, n_head=shape.heads, bos_token_id=end, eos_token_id=end,
        )
    )  # fmt: skip


class CourseWindows(torch.utils.data.Dataset):
    """The windows as the course makes them: so many tokens, which are inputs and labels."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = torch.from_numpy(self.windows.batch(np.array([index]))[0, :-1])
        return {"input_ids": ids, "labels": ids}


@torch.inference_mode()
def loss_of(model: torch.nn.Module, windows: Windows) -> float:
    """Nats per token over the held-out windows, as `mean_nats` chooses and counts them."""
    count = min(HELD_OUT_WINDOWS, len(windows))
    chosen = np.arange(count) * len(windows) // count
    nats = 0.0
    for some in np.array_split(chosen, max(1, count // 16)):
        rows = torch.from_numpy(windows.batch(some))
        logits = model(rows[:, :-1]).logits
        nats += F.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten(), reduction="sum").item()
    return nats / (count * windows.context)


def installed(folder: Path, size: int = 12_000_000, vocabulary: int = 2048) -> Path:
    """So many bytes of this environment's packages, prepared in a folder; if not said otherwise, as `make lm-demo` does."""
    from trainwright_lm.corpus.options import PrepareOptions
    from trainwright_lm.corpus.prepare import prepare

    prepare(
        folder, PrepareOptions(max_bytes=size, max_group_bytes=size // 12, validation=0.1, vocabulary_size=vocabulary)
    )
    return folder


def say(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Print the row as Markdown, with date and machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="prepared data; left out: prepared as make lm-demo does")
    parser.add_argument("--minutes", type=float, default=10.0, help="of processor time for the reference")
    parser.add_argument("--updates", type=int, default=0, help="of the reference, instead of minutes")
    parser.add_argument("--rate", type=float, default=5e-4, help="the reference's learning rate")
    parser.add_argument("--set", action="append", default=[], help="section.key=value of our recipe")
    options = parser.parse_args()
    rows = measure(options.data, options.minutes, options.updates, options.rate, options.set)
    print(f"{datetime.date.today()}, {platform.processor() or platform.machine()}, torch {torch.__version__}\n")
    print("| what | reference | ours | ratio | goal |\n|---|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
