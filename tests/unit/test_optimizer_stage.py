"""Schedules run dry against real training, and states that are put back exactly."""

import copy

import pytest
import torch
from torch import nn
from transformers import Trainer, TrainingArguments

from trainwright.adapters.torch.optimizer import update_growth
from trainwright.adapters.torch.schedule import dry_run, length_of
from trainwright.seams.torch.state import ModelState, OptimizerState

ROWS = [{"x": torch.randn(4, generator=torch.Generator().manual_seed(i)), "labels": i % 2} for i in range(24)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x, labels):
        logits = self.layers(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Recording(Trainer):
    """Keeps the rate of each update, as it is when the optimizer steps."""

    def _get_grad_norm(self, *args, **kwargs):
        self.rates = [*getattr(self, "rates", []), self.optimizer.param_groups[0]["lr"]]
        return super()._get_grad_norm(*args, **kwargs)


def trainer_with(tmp_path, *, given=None, **arguments):
    args = TrainingArguments(tmp_path, report_to="none", save_strategy="no", use_cpu=True, learning_rate=0.01,
                             per_device_train_batch_size=4, num_train_epochs=4, disable_tqdm=True, **arguments)  # fmt: skip
    model = Net()
    pair = (None, None)
    if given is not None:
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        pair = (optimizer, given(optimizer))
    return Recording(model, args, train_dataset=ROWS, optimizers=pair)


def trained_rates(trainer):
    trainer.train()
    return trainer.rates


SCHEDULES = {
    "linear": {"warmup_steps": 3},
    "cosine": {"lr_scheduler_type": "cosine", "warmup_steps": 2},
    "constant_with_warmup": {"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 5},
    "polynomial": {"lr_scheduler_type": "polynomial", "lr_scheduler_kwargs": {"power": 2.0, "lr_end": 1e-4}},
    "lambda": {"given": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda step: 1 / (1 + step))},
    "step": {"given": lambda o: torch.optim.lr_scheduler.StepLR(o, 5, gamma=0.5)},
    "sequential": {
        "given": lambda o: torch.optim.lr_scheduler.SequentialLR(
            o,
            [torch.optim.lr_scheduler.ConstantLR(o, 0.5, 4), torch.optim.lr_scheduler.ExponentialLR(o, 0.9)],
            milestones=[6],
        )
    },
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_dry_run_gives_the_rates_that_training_has(name, tmp_path):
    trainer = trainer_with(tmp_path, **SCHEDULES[name])
    trainer.create_optimizer()
    before = copy.deepcopy(trainer.lr_scheduler.state_dict()) if trainer.lr_scheduler is not None else None
    dry = dry_run(trainer, 24)
    if before is not None:
        assert str(trainer.lr_scheduler.state_dict()) == str(before)
    rates = trained_rates(trainer)
    assert len(rates) == 24
    assert [factor * 0.01 for _, factor in dry.points] == pytest.approx(rates, rel=1e-6, abs=1e-12)


def test_a_schedule_that_ends_before_the_run_says_so(tmp_path):
    trainer = trainer_with(tmp_path, given=lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.01, total_steps=10))
    dry = dry_run(trainer, 24)
    assert dry.failure is not None
    assert "number of total steps" in dry.failure.message


def test_a_schedule_that_follows_a_metric_is_not_run(tmp_path):
    trainer = trainer_with(tmp_path, given=torch.optim.lr_scheduler.ReduceLROnPlateau)
    assert dry_run(trainer, 24).points == ()


def test_the_length_of_a_cosine_is_known():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    assert length_of(torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=7)) == 7


def steps(model, optimizer, count, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        optimizer.zero_grad()
        x = torch.randn(6, 4, generator=generator)
        model(x, torch.tensor([0, 1] * 3))["loss"].backward()
        optimizer.step()
    return {n: v.clone() for n, v in model.state_dict().items()}


OPTIMIZERS = {
    "adam": lambda p: torch.optim.AdamW(p, lr=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_states_that_are_put_back_train_on_bit_for_bit(kind, taken):
    model = Net()
    optimizer = OPTIMIZERS[kind](model.parameters())
    steps(model, optimizer, taken, seed=1)
    states = ModelState(model), OptimizerState(optimizer)
    expected = steps(model, optimizer, 4, seed=2)
    optimizer.param_groups[0]["lr"] = 9.0
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
    optimizer.register_step_pre_hook(lambda *given: None)
    model.layers[0].weight.requires_grad_(False)
    model.eval()
    for state in states:
        state.put_back()
    assert model.training and len(optimizer.param_groups) == 1 and not optimizer._optimizer_step_pre_hooks
    again = steps(model, optimizer, 4, seed=2)
    assert all(torch.equal(expected[n], again[n]) for n in expected)


def test_gradients_are_put_back():
    model = Net()
    model(torch.randn(6, 4), torch.tensor([0, 1] * 3))["loss"].backward()
    kept = [p.grad.clone() for p in model.parameters()]
    state = ModelState(model)
    model.zero_grad()
    state.put_back()
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), kept))


class Unbuildable(torch.optim.SGD):
    def __init__(self, parameters, how, lr=0.1):
        super().__init__(parameters, lr=lr)


@pytest.mark.parametrize(
    ("make", "growth"),
    [
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), 4.0),
        (lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1), 1.0),
        (lambda p: torch.optim.RMSprop([{"params": p, "lr": 0.2}], lr=0.1), 1.0),
        (lambda p: Unbuildable(p, "own"), None),
    ],
    ids=["SGD", "AdamW", "RMSprop", "unbuildable"],
)
def test_how_an_update_grows_with_the_gradient(make, growth):
    optimizer = make([nn.Parameter(torch.ones(3))])
    found = update_growth(optimizer, 4.0)
    assert found is None if growth is None else found == pytest.approx(growth, rel=1e-2)
    assert not optimizer.state and update_growth(None, 4.0) is None
