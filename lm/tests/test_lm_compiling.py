"""A training is compiled only if its gradients stay the same, and never where that fails."""

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from lm_material import small_recipe, write_data
from trainwright.errors import UsageError
from trainwright_lm.config import ModelConfig
from trainwright_lm.network import loss as losses
from trainwright_lm.network import model as network
from trainwright_lm.network.loss import linear_cross_entropy
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs.folder import open_run
from trainwright_lm.tokens.prepared import open_data
from trainwright_lm.training import processes
from trainwright_lm.training.compiling import compile_loss, is_wanted
from trainwright_lm.training.live import Live
from trainwright_lm.training.processes import Processes, SummedLoss
from trainwright_lm.training.train import train

CPU = Processes(device=torch.device("cpu"))
MODEL = ModelConfig(layers=2, heads=2, width=16, context=8, vocabulary_size=32)


@pytest.fixture(autouse=True)
def quick_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Traces as always, and writes no machine code."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    losses._compiled.cache_clear()
    torch._dynamo.reset()
    yield
    losses._compiled.cache_clear()
    torch._dynamo.reset()


def loss_and_windows(
    architecture: str = "modern", dropout: float = 0.0
) -> tuple[SummedLoss, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    config = ModelConfig(**{**vars(MODEL), "architecture": architecture, "dropout": dropout})
    ids = torch.randint(0, config.vocabulary_size, (3, config.context + 1))
    return SummedLoss(Transformer(config), z_loss=0.01), ids[:, :-1], ids[:, 1:]


@pytest.mark.parametrize("architecture", ["modern", "gpt2"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_right_gradients_are_kept_compiled(architecture: str, dropout: float) -> None:
    loss, inputs, targets = loss_and_windows(architecture, dropout)
    said = compile_loss(loss, inputs, targets, "fp32", CPU)
    assert said.startswith("Layers and loss compiled in ")
    assert loss.compiled and loss.training and all(layer._compiled_call_impl for layer in loss.model.layers)
    assert all(parameter.grad is None for parameter in loss.parameters())
    assert {m.p for m in loss.modules() if isinstance(m, torch.nn.Dropout)} == {dropout}


def test_wrong_gradients_are_found_and_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    rotated = network.rotate
    monkeypatch.setattr(network, "rotate", lambda x, c, s: rotated(x, c, -s if torch.compiler.is_compiling() else s))
    loss, inputs, targets = loss_and_windows()
    said = compile_loss(loss, inputs, targets, "fp32", CPU)
    assert said.startswith("Nothing is compiled: compiled by torch ") and ".attention." in said
    assert not loss.compiled and not any(layer._compiled_call_impl for layer in loss.model.layers)


def test_a_compiler_that_fails_is_named_and_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("Failed to find a C compiler.\nPlease install one")

    loss, inputs, targets = loss_and_windows()
    monkeypatch.setattr(torch, "compile", fail)
    said = compile_loss(loss, inputs, targets, "bf16", CPU)
    assert said == (
        "Nothing is compiled: the compiler failed with RuntimeError: Failed to find a C compiler. Training is right, but slower."
    )
    assert not loss.compiled


def test_a_compiler_that_fails_at_dropout_fails_before_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is trained is what was tried."""
    compiles = torch.compile

    def refuses(graph: torch.fx.GraphModule, given: object) -> object:
        assert not any("dropout" in str(node.target) and node.args[1] for node in graph.graph.nodes)
        return graph.forward

    monkeypatch.setattr(torch, "compile", lambda *a, **k: compiles.func(*a, **{**k, "backend": refuses}))
    loss, inputs, targets = loss_and_windows("gpt2", 0.5)
    assert compile_loss(loss, inputs, targets, "fp32", CPU).startswith("Nothing is compiled: the compiler failed with ")
    loss(inputs, targets).backward()


@pytest.mark.parametrize("z_loss", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_compiled_loss_is_the_loss(z_loss: float, weighted: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    hidden, weight = (torch.randn(n, 6, generator=generator, dtype=torch.float64) for n in (11, 9))
    targets = torch.randint(0, 9, (11,), generator=generator)
    targets[3] = -100
    weights = torch.rand(11, generator=generator, dtype=torch.float64) if weighted else None
    results = []
    for compiled in (False, True):
        inputs = [hidden.clone().requires_grad_(), weight.clone().requires_grad_()]
        loss = linear_cross_entropy(*inputs, targets, weights, z_loss=z_loss, chunk_rows=4, compiled=compiled)
        assert losses._compiled.cache_info().misses == compiled
        results.append((loss, *torch.autograd.grad(loss, inputs)))
    torch.testing.assert_close(results[0], results[1])


def test_a_compiled_run_ends_as_an_uncompiled_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(Live, "say", lambda self, text: said.append(text))
    data = open_data(write_data(tmp_path / "data"))
    runs = []
    for compiled in ("true", "false"):
        recipe = small_recipe(f"run.compile={compiled}", "run.sample_every=2", 'run.prompts=["import "]')
        train(data, tmp_path / compiled, recipe)
        runs.append(open_run(tmp_path / compiled).model.state_dict())
    torch.testing.assert_close(runs[0], runs[1], rtol=1e-4, atol=1e-5)
    assert sum("Layers and loss compiled" in text for text in said) == 1


def test_by_itself_only_a_gpus_training_is_compiled() -> None:
    gpu = Processes(device=torch.device("cuda"))
    assert is_wanted(small_recipe(), gpu) and not is_wanted(small_recipe(), CPU)
    assert is_wanted(small_recipe("run.compile=true"), CPU) and not is_wanted(small_recipe("run.compile=false"), gpu)


def test_each_process_needs_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "0")
    processes._check_launch(4)
    processes._check_launch(0)
    with pytest.raises(UsageError, match=r"torchrun started 4 on this machine, which has 2\. Use --nproc_per_node 2"):
        processes._check_launch(2)
    monkeypatch.setenv("LOCAL_RANK", "3")
    with pytest.raises(SystemExit):
        processes._check_launch(2)


def test_several_machines_are_not_restarted_by_their_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"GROUP_WORLD_SIZE": "2", "TORCHELASTIC_MAX_RESTARTS": "1", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="--max-restarts must be 0 on several machines"):
        processes._check_launch(0)
