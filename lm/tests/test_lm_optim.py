"""Weight decay spares norms and biases, Muon is Muon, schedules count updates, and the state comes back bit for bit."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from trainwright.errors import ReadError, UsageError
from trainwright_lm.config import ModelConfig, OptimizerConfig, ScheduleConfig
from trainwright_lm.network.loss import training_loss
from trainwright_lm.network.model import FUSED, Transformer
from trainwright_lm.training.optimizers import (
    build_optimizer,
    load_optimizer_tensors,
    optimizer_tensors,
    orthogonal,
    rate_share,
)

EACH = pytest.mark.parametrize("name", ["adamw", "muon"])


def small(architecture: str = "gpt2", seed: int = 0) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(
        ModelConfig(architecture=architecture, vocabulary_size=60, layers=1, width=16, heads=2, context=8)
    )


def loss_of(model: Transformer) -> Tensor:
    tokens = torch.randint(0, 60, (4, 9), generator=torch.Generator().manual_seed(5))
    return training_loss(model, tokens[:, :-1], tokens[:, 1:]) / 32


def stepped(model: Transformer, optimizer: torch.optim.Optimizer, updates: int) -> list[float]:
    losses = []
    for _ in range(updates):
        loss = loss_of(model)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return losses


NORMS_AND_BIASES = {
    "gpt2": {
        *(f"layers.0.{norm}.{part}" for norm in ("attention_norm", "mlp_norm") for part in ("weight", "bias")),
        *(f"layers.0.attention.{part}.bias" for part in ("query_key_value", "output")),
        *(f"layers.0.mlp.{part}.bias" for part in ("up", "down")),
        "norm.weight",
        "norm.bias",
    },
    "modern": {
        "layers.0.attention_norm.weight",
        "layers.0.attention.query_norm.weight",
        "layers.0.attention.key_norm.weight",
        "layers.0.mlp_norm.weight",
        "norm.weight",
    },
}


@EACH
@pytest.mark.parametrize("architecture", ["gpt2", "modern"])
def test_norms_and_biases_never_decay_and_all_else_does(architecture: str, name: str) -> None:
    """Defect 6: the course's filter names modules that GPT-2 does not have, so everything decays."""
    model = small(architecture)
    optimizer = build_optimizer(model, OptimizerConfig(name=name, weight_decay=0.3))
    spared = {n for g in optimizer.param_groups if g["weight_decay"] == 0 for n in g["param_names"]}
    decayed = {n for g in optimizer.param_groups if g["weight_decay"] == 0.3 for n in g["param_names"]}
    assert spared == NORMS_AND_BIASES[architecture]
    assert decayed == {n for n, _ in model.named_parameters()} - spared


@EACH
def test_a_gradient_of_zero_moves_only_what_decays(name: str) -> None:
    model = small()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0)
            parameter.grad = torch.zeros_like(parameter)
    build_optimizer(model, OptimizerConfig(name=name)).step()
    moved = {n for n, parameter in model.named_parameters() if not parameter.eq(1.0).all()}
    assert moved == {n for n, _ in model.named_parameters()} - NORMS_AND_BIASES["gpt2"]


def test_muon_takes_the_layers_matrices_and_adamw_the_rest() -> None:
    optimizer = build_optimizer(small("modern"), OptimizerConfig(name="muon"))
    muon = {n: g["parts"] for g in optimizer.param_groups if g["parts"] for n in g["param_names"]}
    assert muon == {
        "layers.0.attention.query_key_value.weight": 3,
        "layers.0.attention.output.weight": 1,
        "layers.0.mlp.gate_up.weight": 2,
        "layers.0.mlp.down.weight": 1,
    }
    assert {g["base_lr"] for g in optimizer.param_groups if g["parts"]} == {0.02}
    assert {g["base_lr"] for g in optimizer.param_groups if not g["parts"]} == {5e-4}


@pytest.mark.parametrize("shape", [(1, 24, 24), (1, 48, 24), (1, 24, 64), (3, 24, 24)])
def test_an_update_of_muon_is_nearly_orthogonal(shape: tuple[int, int, int]) -> None:
    left, values, right = torch.linalg.svd(
        torch.randn(shape, generator=torch.Generator().manual_seed(0)), full_matrices=False
    )
    spread = torch.linspace(0.1, 1.0, 24).expand_as(values)
    result = orthogonal(left @ torch.diag_embed(spread) @ right)
    after = torch.linalg.svdvals(result)
    assert after.min() > 0.5 and after.max() < 1.3
    torch.testing.assert_close(result, left @ right, atol=0.3, rtol=0)


@pytest.mark.parametrize("decay", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        ("output", (24, 24)),
        ("output", (48, 24)),
        ("output", (24, 64)),
        ("output", (8, 3)),
        ("gate_up", (96, 24)),
        ("query_key_value", (72, 24)),
        ("query_key_value", (24, 24)),
    ],
)
def test_muon_equals_torchs(layer: str, shape: tuple[int, int], decay: float) -> None:
    """Each of the matrices that lie below each other in a fused parameter is one of torch's parameters."""
    torch.manual_seed(0)
    before = torch.randn(shape)
    parts = before.chunk(FUSED.get(layer, 1))
    ours = nn.ModuleDict({"layers": nn.ModuleDict({layer: nn.Linear(1, 1, bias=False)})})
    weight = ours["layers"][layer].weight = nn.Parameter(before.clone())
    theirs = [nn.Parameter(part.clone()) for part in parts]
    mine = build_optimizer(ours, OptimizerConfig(name="muon", weight_decay=decay))
    reference = torch.optim.Muon(theirs, lr=0.02, weight_decay=decay)
    kept = 1.0
    for step in range(12):
        rate = 0.02 * (12 - step) / 12
        mine.param_groups[0]["lr"] = reference.param_groups[0]["lr"] = rate
        kept *= 1 - rate * decay
        gradient = torch.randn(shape, generator=torch.Generator().manual_seed(step))
        weight.grad = gradient.clone()
        for parameter, part in zip(theirs, gradient.chunk(len(parts)), strict=True):
            parameter.grad = part.clone()
        mine.step()
        reference.step()
    steps = torch.cat(theirs) - kept * before
    # Both compute in bf16, whose roundings are 0.4 %; a momentum of 0.9 for 0.95 makes 9 % and more.
    assert (weight - torch.cat(theirs)).norm() < 0.02 * steps.norm()


def test_adamw_within_muon_equals_torchs() -> None:
    model, other = small(), small()
    mine = build_optimizer(model, OptimizerConfig(name="muon", muon_learning_rate=0.0))
    theirs = build_optimizer(other, OptimizerConfig(name="adamw"))
    assert type(theirs) is torch.optim.AdamW
    for name, parameter in other.named_parameters():
        parameter.requires_grad_(not (name.startswith("layers.") and parameter.ndim == 2))
    for _ in range(3):
        stepped(model, mine, 1)
        stepped(other, theirs, 1)
    for (name, one), two in zip(model.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, atol=1e-7, rtol=1e-6, msg=name)


@EACH
def test_it_learns(name: str) -> None:
    model = small("modern")
    losses = stepped(model, build_optimizer(model, OptimizerConfig(name=name, learning_rate=5e-3)), 30)
    assert losses[-1] < losses[0] / 2


@EACH
def test_a_restored_optimizer_goes_on_bit_for_bit(name: str) -> None:
    config = OptimizerConfig(name=name)
    model = small()
    optimizer = build_optimizer(model, config)
    stepped(model, optimizer, 3)
    saved = {key: tensor.clone() for key, tensor in optimizer_tensors(optimizer).items()}
    other = small(seed=1)
    other.load_state_dict(model.state_dict())
    restored = build_optimizer(other, config)
    load_optimizer_tensors(restored, saved)
    assert stepped(model, optimizer, 3) == stepped(other, restored, 3)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


@EACH
def test_an_optimizer_that_has_not_stepped_has_no_state(name: str) -> None:
    optimizer = build_optimizer(small(), OptimizerConfig(name=name))
    assert optimizer_tensors(optimizer) == {}
    load_optimizer_tensors(optimizer, {})


def test_a_foreign_state_is_refused() -> None:
    model = small()
    optimizer = build_optimizer(model, OptimizerConfig(name="adamw"))
    stepped(model, optimizer, 1)
    saved = optimizer_tensors(optimizer)
    with pytest.raises(ReadError, match='exp_avg" is unexpected'):
        load_optimizer_tensors(optimizer, saved | {"layers.7.norm.weight:exp_avg": torch.zeros(16)})
    with pytest.raises(ReadError, match=r"has shape \(3,\)"):
        load_optimizer_tensors(optimizer, saved | {"norm.weight:exp_avg": torch.zeros(3)})
    with pytest.raises(ReadError, match=r'"norm.weight:exp_avg" is missing'):
        load_optimizer_tensors(optimizer, {k: v for k, v in saved.items() if k != "norm.weight:exp_avg"})
    with pytest.raises(ReadError, match="another recipe"):
        load_optimizer_tensors(build_optimizer(small(), OptimizerConfig(name="muon")), saved)


def shares(total: int, **settings: object) -> list[float]:
    return [rate_share(update, total, ScheduleConfig(**settings)) for update in range(total)]


def test_warm_up_rises_to_one_and_no_update_is_idle() -> None:
    assert shares(8, shape="constant", warmup_updates=4) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_cosine_falls_to_its_floor() -> None:
    rates = shares(100, shape="cosine", warmup_updates=20, floor=0.1)
    assert rates[19] == rates[20] == 1.0
    assert rates[60] == pytest.approx(0.55)
    assert 0.1 < rates[99] < 0.101
    assert rate_share(100, 100, ScheduleConfig(shape="cosine", floor=0.1)) == pytest.approx(0.1)


def test_linear_falls_by_equal_steps() -> None:
    assert shares(5, shape="linear") == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])


def test_wsd_is_stable_until_its_last_share() -> None:
    rates = shares(100, shape="wsd", warmup_updates=10, decay_share=0.25)
    assert rates[9:76] == [1.0] * 67
    assert rates[76] == pytest.approx(1 - math.sqrt(1 / 25))
    assert rates[99] == pytest.approx(1 - math.sqrt(24 / 25))


@given(
    total=st.integers(1, 300),
    warmup=st.floats(0, 0.99),
    shape=st.sampled_from(["cosine", "linear", "wsd", "constant"]),
    decay=st.floats(0, 1),
    floor=st.floats(0, 1),
)
def test_every_rate_is_above_zero_and_falls_after_warm_up(
    total: int, warmup: float, shape: str, decay: float, floor: float
) -> None:
    warmup_updates = int(warmup * total)
    rates = shares(total, shape=shape, warmup_updates=warmup_updates, decay_share=decay, floor=floor)
    assert all(0 < rate <= 1 for rate in rates)
    assert rates[warmup_updates] == 1.0
    assert rates[warmup_updates:] == sorted(rates[warmup_updates:], reverse=True)


def test_the_courses_schedule_reaches_its_end() -> None:
    """Defect 7: a length counted in micro-batches, eight an update, leaves the rate near its highest at the end."""
    rates = shares(1_000, shape="linear", warmup_updates=100)
    assert rates[-1] < 0.002


@pytest.mark.parametrize("warmup", [10, 11])
def test_warm_up_that_takes_every_update_is_refused(warmup: int) -> None:
    with pytest.raises(UsageError, match=f"less than the number of updates; got {warmup} of 10"):
        rate_share(0, 10, ScheduleConfig(warmup_updates=warmup))
