"""Libraries' warnings are heard without a trace, told once, and are evidence for the findings they speak for."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from checks import check_script, said
from trainwright.core import Report
from trainwright.report import words

pytestmark = pytest.mark.slow

# What a script can do with its warnings and its log. It ends with a digest of everything that it saw.
WATCHING = """
import hashlib, logging, sys, traceback, warnings
import numpy as np
import torch
from torch import nn
from transformers.utils import logging as transformers_logging

seen = []
quotient = lambda: np.log(np.zeros(2))


def note(*what):
    seen.append(repr(what))


def loss():
    return nn.functional.mse_loss(torch.zeros(4, 1), torch.zeros(4))


loss(), loss()
for action in ("ignore", "once", "always", "default", "module"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        quotient(), quotient()
    note(action, [(w.category.__name__, str(w.message), w.filename == __file__, w.lineno, w.line) for w in caught])
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try:
        quotient()
    except RuntimeWarning as error:
        note("raised", error, [f.name for f in traceback.extract_tb(error.__traceback__)])
shown = warnings.showwarning


def own(message, category, filename, lineno, file=None, line=None):
    note("own", category.__name__, message, filename == __file__, lineno)


warnings.showwarning = own
quotient()
note("kept", warnings.showwarning is own)
warnings.showwarning = shown
quotient()


def deep():
    warnings.warn("from two levels", UserWarning, stacklevel=2)


deep()
note("own registry", sorted(k[0] for k in __warningregistry__ if k != "version"))


class Handler(logging.Handler):
    def emit(self, record):
        frame, depth = sys._getframe(1), 1
        while frame.f_code.co_filename == logging.__file__:
            frame, depth = frame.f_back, depth + 1
        note("record", record.name, record.levelname, record.getMessage(), record.funcName, frame.f_code.co_name, depth)


def counted(record):
    note("filter", record.name)
    return "unwanted" not in record.msg


log = transformers_logging.get_logger("transformers.own")
log.addHandler(Handler())
log.addFilter(counted)
log.warning("a %s", "record")
log.warning("an unwanted one")
log.info("below the level")
log.warning_once("once"), log.warning_once("once")
plain = logging.getLogger("plain")
plain.warning("last resort")
plain.addHandler(logging.NullHandler())
plain.warning("to nobody")
logging.captureWarnings(True)
logging.getLogger("py.warnings").addHandler(Handler())
quotient()
logging.captureWarnings(False)
note("filters", [(f[0], f[2].__name__) for f in warnings.filters])
note("logging", logging.Logger.filter.__qualname__ == "Filterer.filter")
sys.exit(f"{len(seen)} notes, {hashlib.md5(repr(seen).encode()).hexdigest()}")
"""


def run(folder: Path, *command: str) -> str:
    """What a script and a check print."""
    ended = subprocess.run(
        [sys.executable, *command, str(folder / "watching.py")],
        cwd=folder, capture_output=True, text=True, check=False, timeout=200, env={**os.environ, "COLUMNS": "300"},
    )  # fmt: skip
    return ended.stdout + ended.stderr


@pytest.mark.parametrize("flags", [(), ("-W", "always"), ("-W", "ignore")], ids=" ".join)
def test_a_script_sees_its_warnings_as_without_us(tmp_path: Path, flags: tuple[str, ...]) -> None:
    (tmp_path / "watching.py").write_text(WATCHING, encoding="utf-8")
    seen = run(tmp_path, *flags).splitlines()[-1]
    assert int(seen.split()[0]) > 12
    assert seen in run(tmp_path, *flags, "-m", "trainwright", "check")


def checked(folder: Path, text: str) -> Report:
    script = folder / "train.py"
    script.write_text(text, encoding="utf-8")
    return check_script(script)


LOOP = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
{before}
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True) + 0.1 * torch.randn(64, 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def forward(self, x):
        {forward}
        return self.inner(x)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for epoch in range(4):
    for start in range(0, 64, 16):
        loss = nn.functional.mse_loss(model(x[start:start + 16]), y[start:start + 16]{targets})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def loop(folder: Path, *, before: str = "", forward: str = "pass", targets: str = "") -> Report:
    return checked(folder, LOOP.format(before=before, forward=forward, targets=targets))


def test_a_warning_of_the_step_is_told_at_its_line_and_cited_by_the_finding(tmp_path: Path) -> None:
    report = loop(tmp_path, targets="[:, 0]")
    [warning] = report.warnings
    assert (warning.library, warning.category, warning.rule) == ("torch", "UserWarning", "broadcast-loss")
    assert warning.where is not None and warning.where.line == 26
    finding = next(f for f in report.findings if f.name == "broadcast-loss")
    [cited] = finding.warned
    assert cited.startswith(f"torch warned at {warning.where}: Using a target size")
    assert not any(f.warned for f in report.findings if f is not finding)


def test_a_warning_before_training_is_told_once_and_is_no_finding(tmp_path: Path) -> None:
    report = loop(
        tmp_path,
        before="for n in (1e3, 1e4, 1e5): np.exp(np.array([n])), np.zeros(1).mean(), np.float64(1e308) * 1e308",
    )
    assert [w.phase for w in report.warnings] == ["before training"] * len(report.warnings)
    assert [w.text for w in report.warnings].count("overflow encountered in exp") == 1
    assert report.warnings[0].where is not None and report.warnings[0].where.line == 7
    assert not report.findings and not report.faulty, said(report)
    assert words.warnings(report)


def test_what_a_check_provokes_is_not_told(tmp_path: Path) -> None:
    provoked = "if not self.training: np.log(np.zeros(1))"
    assert loop(tmp_path, forward=provoked).warnings == ()


def test_what_the_script_suppresses_or_records_is_not_told(tmp_path: Path) -> None:
    ignoring = "import warnings; warnings.filterwarnings('ignore')"
    assert loop(tmp_path, before=ignoring, targets="[:, 0]").warnings == ()
    recording = "import warnings; kept = warnings.catch_warnings(record=True); kept.__enter__()"
    assert loop(tmp_path, before=recording, targets="[:, 0]").warnings == ()


def test_a_library_that_records_warnings_in_the_step_gets_them(tmp_path: Path) -> None:
    recording = (
        "import warnings\n        with warnings.catch_warnings(record=True) as kept:\n"
        "            warnings.simplefilter('always'); np.log(np.zeros(1))\n        assert len(kept) == 1"
    )
    report = loop(tmp_path, forward=recording)
    assert report.warnings == () and not report.faulty, said(report)


def test_a_trainers_log_is_heard_before_training(tmp_path: Path) -> None:
    report = checked(
        tmp_path,
        """
from tokenizers import Tokenizer, models
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, Trainer, TrainingArguments

words = Tokenizer(models.WordLevel({"[PAD]": 0, "a": 1, "b": 2}, unk_token="a"))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="a", model_max_length=4)
rows = [{**tokenizer(["ab"[i % 2]] * 6, is_split_into_words=True), "labels": i % 2} for i in range(32)]
sizes = dict(vocab_size=3, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
model = BertForSequenceClassification(BertConfig(**sizes))
arguments = TrainingArguments("out", report_to=[], per_device_train_batch_size=8, learning_rate=1e-2)
Trainer(model=model, args=arguments, train_dataset=rows).train()
""",
    )
    [warning] = report.warnings
    assert (warning.category, warning.phase) == ("transformers.tokenization_utils_base", "before training")
    assert warning.where is not None and warning.where.line == 8


def test_the_step_of_a_lightning_module_is_heard(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    report = checked(
        tmp_path,
        """
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def training_step(self, batch, number):
        return nn.functional.mse_loss(self.inner(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)


x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1)), batch_size=16)
lightning.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False).fit(Module(), loader)
""",
    )
    assert [(w.library, w.rule, w.where and w.where.line) for w in report.warnings] == [("torch", "broadcast-loss", 14)]


@pytest.mark.keras
def test_the_step_of_a_keras_model_is_heard(tmp_path: Path) -> None:
    if find_spec("keras") is None:
        pytest.skip("Keras is not installed")
    report = checked(
        tmp_path,
        """
import keras
import numpy as np

x = np.random.default_rng(0).random((64, 4)).astype("float32")
y = (x.sum(1, keepdims=True) > 2).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="softmax")])
model.compile("adam", "categorical_crossentropy")
model.fit(x, y, epochs=2, batch_size=16, verbose=0)
""",
    )
    assert {w.rule for w in report.warnings} == {"one-unit-softmax"}
    finding = next(f for f in report.findings if f.name == "one-unit-softmax")
    assert finding.warned
