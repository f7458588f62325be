"""Scripts written for a GPU are checked where there is none: the sound in silence, the faulty by name and line."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from checks import check_script, expected, loud, said
from trainwright.core import Report
from trainwright.core.report import from_dict
from trainwright.report import words
from trainwright.report.html import render as as_page
from trainwright.seams.devices.cpu_for_gpu import ended_for_want
from trainwright.seams.devices.redirection import Redirection

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[1] / "devices"
SOUND = sorted(HERE.glob("*.py"))
FAULTY = sorted((HERE / "faulty").glob("*.py"))
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
# What their scripts ask for, by the report's words; all others ask for cuda.
ASKED = {
    "picks_by_availability": None,
    "apple": ("mps",),
    "accelerate_fp16": ("cuda", "fp16"),
    "distributed": ("cuda", "torchrun", "nccl"),
    "half_model": ("cuda", "fp16"),
    "keras_mixed_float16": ("GPU",),
    "keras_on_gpu": ("GPU",),
    "lightning_gpus": ("cuda", "fp16"),
    "mixed_precision": ("cuda", "fp16"),
    "trainer_fp16": ("fp16",),
    "trl_defaults": ("bf16",),
}


@without_gpu
@pytest.mark.parametrize("script", SOUND, ids=lambda s: s.stem)
def test_a_script_for_a_gpu_is_checked_in_silence_and_the_report_says_where(script: Path) -> None:
    report = check_script(script, budget=120)
    assert not loud(report) and not report.faulty, said(report)
    assert not [s for s in report.stages if s.status in ("failed", "repaired")], said(report)
    asked = ASKED.get(script.stem, ("cuda",))
    if asked is None:
        assert report.redirected is None
    else:
        assert report.redirected is not None, said(report)
        assert set(asked) <= set(report.redirected.asked)
        assert report.redirected.precision == ("fp32" if {"fp16", "bf16"} & set(report.redirected.asked) else None)


@without_gpu
@pytest.mark.parametrize("script", FAULTY, ids=lambda s: s.stem)
def test_a_fault_of_a_script_for_a_gpu_is_named_at_its_line(script: Path) -> None:
    name, line = expected(script)
    report = check_script(script, budget=120)
    first = report.first_cause
    assert first is not None and first.name == name, said(report)
    assert first.where is not None and first.where.line == line, said(report)
    assert report.redirected is not None
    assert not report.internal_errors, said(report)


@without_gpu
def test_a_tensor_that_goes_to_a_gpu_is_a_copy_there_and_none_where_it_is_already(tmp_path: Path) -> None:
    """As on a GPU: what is written into the copy does not reach the data, and a leaf that moves is no leaf."""
    report = _check_of(tmp_path, """
import torch
data = torch.zeros(3)
there = data.cuda()
there += 1
assert data.sum() == 0 and there.cuda() is there and there.is_cuda and not data.is_cuda
assert there.cpu() is not there and there.cpu().sum() == 3
leaf = torch.zeros(3, requires_grad=True)
assert not leaf.to("cuda").is_leaf and torch.zeros(3, device="cuda", requires_grad=True).is_leaf
assert torch.ones(2, device="cuda", dtype=torch.float16).dtype == torch.float32
assert torch.as_tensor(data, device="cuda").data_ptr() != data.data_ptr()
assert isinstance(torch.Generator("cuda"), torch.Generator) and isinstance(torch.default_generator, torch.Generator)
assert isinstance(torch.cuda.Event(), torch.cuda.Event)
assert torch.jit.script(made)(2).shape == (2,)
""".replace("import torch\n", "import torch\ndef made(n: int):\n    return torch.zeros(n)\n", 1))  # fmt: skip
    assert report.failure is None, said(report)
    assert report.message.startswith("The script ended without reaching"), said(report)


@without_gpu
def test_a_scaler_still_watches_its_use(tmp_path: Path) -> None:
    report = _check_of(tmp_path, """
import torch
net = torch.nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda", init_scale=2.0**16)
assert scaler.get_scale() == 1 and scaler.is_enabled() and scaler.state_dict()
scaler.scale(net(torch.ones(1, 2, device="cuda")).sum()).backward()
scaler.unscale_(optimizer)
scaler.unscale_(optimizer)
""")  # fmt: skip
    assert report.failure is not None and "unscale_() has already been called" in report.failure.message, said(report)


@without_gpu
def test_weights_in_8_bits_cannot_be_checked_and_the_report_says_so(tmp_path: Path) -> None:
    report = _check_of(tmp_path, """
from material import MINILM
from transformers import AutoModelForSequenceClassification, BitsAndBytesConfig
AutoModelForSequenceClassification.from_pretrained(
    MINILM, quantization_config=BitsAndBytesConfig(load_in_8bit=True), device_map="auto"
)
""")  # fmt: skip
    assert "need a GPU: this cannot be checked here" in report.message, said(report)


@without_gpu
def test_a_failure_that_has_nothing_to_do_with_the_device_is_not_looked_at_twice(tmp_path: Path) -> None:
    report = _check_of(tmp_path, """
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
with open("started", "a+") as file:
    file.write("x")
    file.seek(0)
    raise ValueError(file.read())
""")  # fmt: skip
    assert report.failure is not None and report.failure.message == "x"
    assert report.redirected is None


@without_gpu
def test_run_does_not_train_where_the_gpu_is_missing_and_says_so(tmp_path: Path) -> None:
    ended = _command("run", HERE / "whole_set_on_device.py", tmp_path / "r.json")
    assert ended.returncode == 1, ended.stderr
    report = from_dict(json.loads((tmp_path / "r.json").read_text("utf-8")))
    assert "was not run for real: it asks for cuda, and there is no GPU here" in report.message


def test_device_cpu_keeps_to_the_cpu_where_there_is_a_gpu_too(tmp_path: Path) -> None:
    ended = _command("check", HERE / "mixed_precision.py", tmp_path / "r.json", "--device", "cpu")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    report = from_dict(json.loads((tmp_path / "r.json").read_text("utf-8")))
    line = "checked on the CPU in fp32: the script asks for cuda and fp16, and --device cpu keeps to the CPU"
    assert words.redirected(report) == line
    assert line in " ".join(ended.stdout.split())
    assert line in as_page(report)


def test_a_device_that_cannot_be_chosen_is_refused() -> None:
    ended = _command("check", HERE / "mixed_precision.py", None, "--device", "tpu")
    assert ended.returncode == 2
    assert "--device must be auto or cpu; got 'tpu'." in ended.stderr


@pytest.mark.parametrize("source", [
    "if not available:\n    raise RuntimeError('nothing to run on')",
    "assert available",
    "assert 0, 'CUDA missing'",
    "if torch.cuda.is_available():\n    pass\nelse:\n    raise SystemExit(1)",
])  # fmt: skip
def test_an_ending_is_explained_by_the_condition_around_it(source: str, tmp_path: Path) -> None:
    error = _ending(tmp_path, source)
    assert ended_for_want(Redirection(questions={"cuda": "script.py"}), error)
    assert not ended_for_want(Redirection(), error)


@pytest.mark.parametrize(("source", "trains"), [
    ("if torch.cuda.is_available():\n    train(model)", True),
    ("n = torch.cuda.device_count()\nif n > 0:\n    for epoch in range(3):\n        step()", True),
    ("mp.spawn(main, nprocs=torch.cuda.device_count())", True),
    ("if torch.cuda.is_available():\n    torch.backends.cudnn.benchmark = True\nprint(len(table))", False),
    ("device = 'cuda' if torch.cuda.is_available() else 'cpu'", False),
])  # fmt: skip
def test_a_script_that_did_nothing_is_run_again_only_if_it_would_train_on_a_gpu(
    source: str, trains: bool, tmp_path: Path
) -> None:
    """A script that is no training is not to do its work twice."""
    file = tmp_path / "script.py"
    file.write_text(source + "\n", encoding="utf-8")
    assert ended_for_want(Redirection(questions={"cuda": str(file)}), None) == trains


def test_another_ending_is_not_explained(tmp_path: Path) -> None:
    error = _ending(tmp_path, "raise ValueError('no such file')")
    assert not ended_for_want(Redirection(questions={"cuda": "script.py"}), error)


def _ending(folder: Path, source: str) -> BaseException:
    """The exception of a script in which no GPU is available."""
    file = folder / "script.py"
    text = f"available = torch.cuda.is_available()\n{source}\n"
    file.write_text(text, encoding="utf-8")
    ast.parse(text)

    class Nothing:
        class cuda:
            is_available = staticmethod(lambda: False)

    try:
        exec(compile(text, str(file), "exec"), {"torch": Nothing})
    except BaseException as error:
        return error
    raise AssertionError("the script did not end")


def _check_of(folder: Path, source: str) -> Report:
    script = folder / "train.py"
    script.write_text(source, encoding="utf-8")
    kept = Path.cwd()
    os.chdir(folder)
    try:
        return check_script(script)
    finally:
        os.chdir(kept)


def _command(name: str, script: Path, target: Path | None, *options: str) -> "subprocess.CompletedProcess[str]":
    wanted = [*options, *(["--json", str(target)] if target else [])]
    command = [sys.executable, "-m", "trainwright", name, *wanted, str(script)]
    return subprocess.run(command, capture_output=True, text=True, check=False)
