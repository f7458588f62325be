"""Training speed and memory on the CPU: our update against transformers' Trainer and a plain loop as nanoGPT's.

    .venv/bin/python benchmarks/lm_training.py [--repeats N] [--updates N]

All train a GPT-2 of 4 layers x 256, vocabulary 8,192, on the same random windows, 32 x 128 tokens an update, without
dropout and without torch.compile, with AdamW and clipping at 1. Speed is tokens per second of processor time (all
threads), the median of repeats that take turns. Memory is the peak of a process that makes three updates, less what it
held before the first; a process each.
"""

import argparse
import datetime
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "lm" / "src"))

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LAYERS, HEADS, WIDTH, VOCABULARY, WINDOWS, CONTEXT = 4, 4, 256, 8_192, 32, 128
TOKENS = WINDOWS * CONTEXT
RATE = 5e-4
Row = tuple[str, str, str, str, str]


def measure(repeats: int = 5, updates: int = 4) -> list[Row]:
    """(what, reference, ours, ratio, goal) of each comparison."""
    data = windows((updates + 1) * WINDOWS)
    speeds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(repeats):
        for name, contender in CONTENDERS.items():
            speeds[name].append(updates * TOKENS / contender(data))
    speed = {name: statistics.median(found) for name, found in speeds.items()}
    peak = {name: peak_megabytes(name) for name in ("trainer fp32", "trainer bf16", "ours fp32", "ours bf16")}
    rows = []
    for reference, mine, goal in [
        ("trainer fp32", "ours bf16", "at least 2.2"),
        ("trainer bf16", "ours bf16", "at least 1.5"),
        ("nanogpt bf16", "ours bf16", "at least 1.17"),
        ("trainer fp32", "ours fp32", ""),
        ("nanogpt fp32", "ours fp32", ""),
        ("trainer bf16", "modern bf16", ""),
    ]:
        rows.append(
            (
                f"training, {LABELS[mine]}, against {LABELS[reference]}",
                f"{speed[reference]:,.0f} tokens/CPU-s",
                f"{speed[mine]:,.0f} tokens/CPU-s",
                f"{speed[mine] / speed[reference]:.2f}",
                goal,
            )
        )
    for precision in ("fp32", "bf16"):
        theirs, mine = peak[f"trainer {precision}"], peak[f"ours {precision}"]
        rows.append(
            (
                f"peak memory of an update, {precision}, against the Trainer",
                f"{theirs:,.0f} MB",
                f"{mine:,.0f} MB",
                f"{mine / theirs:.2f}",
                "at most 0.75",
            )
        )
    return rows


def windows(count: int) -> Tensor:
    """Random token ids, (count, CONTEXT + 1)."""
    return torch.randint(0, VOCABULARY, (count, CONTEXT + 1), generator=torch.Generator().manual_seed(0))


def processor_seconds() -> float:
    """Of this process, all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed(update: Callable[[Tensor], None], data: Tensor) -> float:
    """Processor seconds of all updates but the first."""
    batches = data.split(WINDOWS)
    update(batches[0])
    begun = processor_seconds()
    for batch in batches[1:]:
        update(batch)
    return processor_seconds() - begun


def ours(data: Tensor, precision: str, architecture: str = "gpt2", optimizer_name: str = "adamw") -> float:
    """Our model, loss and optimizer, as `trainwright lm train` puts them together."""
    from trainwright_lm.config import ModelConfig, OptimizerConfig
    from trainwright_lm.network.loss import training_loss
    from trainwright_lm.network.model import Transformer
    from trainwright_lm.training.optimizers import build_optimizer

    torch.manual_seed(0)
    model = Transformer(
        ModelConfig(
            architecture=architecture,
            layers=LAYERS,
            heads=HEADS,
            width=WIDTH,
            context=CONTEXT,
            vocabulary_size=VOCABULARY,
        )
    )
    optimizer = build_optimizer(model, OptimizerConfig(name=optimizer_name, learning_rate=RATE))

    def update(batch: Tensor) -> None:
        inputs, targets = batch[:, :-1], batch[:, 1:]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = training_loss(model, inputs, targets) / targets.numel()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return timed(update, data)


class PlainLayer(nn.Module):
    """A layer of the plain model: biasless LayerNorms and matrices, exact GELU, as nanoGPT's defaults."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH, bias=False) for _ in range(2))
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, positions, _ = x.shape
        parts = self.qkv(self.norms[0](x)).split(WIDTH, dim=2)
        query, key, value = (part.view(batch, positions, HEADS, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).contiguous().view(batch, positions, WIDTH))
        return x + self.mlp(self.norms[1](x))


class PlainModel(nn.Module):
    """GPT-2 written in the obvious way, with the ordinary loss."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.Sequential(*(PlainLayer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.token.weight
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        x = self.token(inputs) + self.position(torch.arange(inputs.shape[1]))
        logits = self.head(self.norm(self.layers(x)))
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.reshape(-1))


def nanogpt(data: Tensor, precision: str) -> float:
    """The plain loop: autocast, clipping, AdamW, as nanoGPT's train.py."""
    torch.manual_seed(0)
    model = PlainModel()
    decayed = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    spared = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": spared, "weight_decay": 0.0}], lr=RATE
    )

    def update(batch: Tensor) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = model(batch[:, :-1].contiguous(), batch[:, 1:].contiguous())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return timed(update, data)


def trainer(data: Tensor, precision: str) -> float:
    """transformers' Trainer with its own GPT-2, data collator and fused AdamW."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
    from transformers.trainer_callback import PrinterCallback

    transformers.logging.set_verbosity_error()
    marks: list[float] = []

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: object, state: object, control: object, **more: object) -> None:
            marks.append(processor_seconds())

    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=CONTEXT,
            n_embd=WIDTH,
            n_layer=LAYERS,
            n_head=HEADS,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            resid_pdrop=0.0,
        )
    )
    rows = [{"input_ids": row[:-1], "labels": row[:-1]} for row in data]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            per_device_train_batch_size=WINDOWS,
            num_train_epochs=1,
            learning_rate=RATE,
            weight_decay=0.1,
            bf16=precision == "bf16",
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        teacher = Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[Clock()])
        teacher.remove_callback(PrinterCallback)
        teacher.train()
    return marks[-1] - marks[0]


LABELS = {
    f"{name} {precision}": f"{label}, {precision}"
    for name, label in (("trainer", "the Trainer"), ("nanogpt", "a plain loop"), ("ours", "ours"))
    for precision in ("fp32", "bf16")
}
CONTENDERS: dict[str, Callable[[Tensor], float]] = {
    f"{name} {precision}": lambda data, function=function, precision=precision: function(data, precision)
    for name, function in (("trainer", trainer), ("nanogpt", nanogpt), ("ours", ours))
    for precision in ("fp32", "bf16")
}
LABELS["modern bf16"] = "ours with the presets' modern network and Muon, bf16"
CONTENDERS["modern bf16"] = lambda data: ours(data, "bf16", "modern", "muon")


def peak_megabytes(name: str) -> float:
    """Peak memory of a process that makes three updates, less what it held with everything imported."""
    done = subprocess.run([sys.executable, __file__, "--peak", name], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def print_peak(name: str) -> None:
    """Megabytes that three updates added to this process at most (Linux)."""
    if name.startswith("trainer"):
        import transformers.trainer  # noqa: F401
    data = windows(3 * WINDOWS)
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten; see man 5 proc
    base = memory_kilobytes("VmRSS")
    CONTENDERS[name](data)
    print((memory_kilobytes("VmHWM") - base) / 1024)


def memory_kilobytes(entry: str) -> int:
    """One entry of this process's status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{entry}:"))


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--peak", choices=CONTENDERS)
    options = parser.parse_args()
    if options.peak:
        print_peak(options.peak)
        return
    print(f"{datetime.date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, ", end="")
    print(f"{torch.get_num_threads()} thread(s), torch {torch.__version__}\n")
    print("| what | reference | ours | ratio | goal |\n|---|---|---|---|---|")
    for row in measure(options.repeats, options.updates):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
