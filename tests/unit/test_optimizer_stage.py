"""Schedules run dry against real training, and states that are put back exactly."""

import weakref
from types import SimpleNamespace as Namespace

import pytest
import torch
from torch import nn

from trainwright.adapters.torch.optimizer import continue_rates, schedule_facts, update_growth
from trainwright.look.look import Looking
from trainwright.look.state import Look
from trainwright.look.training_facts import add_end
from trainwright.rules.optimizer.schedules import schedule_in_wrong_unit
from trainwright.seams.torch.state import ModelState, OptimizerState
from trainwright.stages import OptimizerFacts, SetupFacts


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x, labels):
        logits = self.layers(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def _sequence(optimizer):
    parts = [
        torch.optim.lr_scheduler.ConstantLR(optimizer, 0.5, 4),
        torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9),
    ]
    return torch.optim.lr_scheduler.SequentialLR(optimizer, parts, milestones=[6])


@pytest.mark.parametrize(
    "make",
    [
        lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12),
        lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step)),
        lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=13),
        _sequence,
    ],
)
def test_a_schedule_is_followed_without_a_step_of_the_scripts_own(make):
    optimizer = torch.optim.Adam([nn.Parameter(torch.zeros(1))], lr=0.1)
    schedule, rates, told = make(optimizer), [], []
    for update in range(12):
        if update == 5:
            told = continue_rates(schedule, 7)
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert told == pytest.approx(rates[5:])


def test_a_schedule_that_raises_or_follows_a_metric_gives_fewer_rates():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    assert len(continue_rates(torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=5), 20)) < 20
    assert continue_rates(torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer), 3) == []


def test_the_length_of_a_cosine_is_known():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=7)
    assert schedule_facts(schedule)["schedule_length"] == 7
    schedule.load_state_dict({**schedule.state_dict(), "last_epoch": 5})  # resumed, and two steps made since
    assert schedule_facts(schedule, 2)["schedule_length"] == 4


def test_the_rest_of_a_schedule_is_as_long_as_the_rest_of_a_resumed_training():
    """Resumed in the middle, with two batches per update, its whole length was that of the rest in micro-batches."""
    model, setup = nn.Linear(2, 2), SetupFacts(accumulation=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=200)
    schedule.load_state_dict({**schedule.state_dict(), "last_epoch": 160})
    look, looking = (
        Look(updates=100, rates=[1 - update / 200 for update in range(100, 200)], schedule_steps=60),
        Looking(),
    )
    look.facts = {OptimizerFacts: OptimizerFacts(schedule_kind="LinearLR")}
    look.measured = Namespace(view={}, key="", tokenizer=None, suspects={}, optimizers=[optimizer])
    look.schedules, look.optimizers = [schedule], [weakref.ref(optimizer)]
    looking.watched = Namespace(count_planned={1: 100}.get)
    add_end(look, looking, is_ended=True)
    assert look.facts[OptimizerFacts].schedule_length == 100
    assert not list(schedule_in_wrong_unit.function(look.facts[OptimizerFacts], setup))


@pytest.mark.parametrize(
    ("seen", "source"),
    [
        (40, "in the run: "),
        (10, "10 updates of the run, then a dry run: "),
        (1, "1 update of the run, "),
        (0, "in a dry run: "),
    ],
)
def test_rates_are_said_to_be_from_where_they_are_and_a_plateau_has_a_fix_of_its_own(seen, source):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    told = schedule_facts(torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=0))
    points = tuple((update, 1.0 if update < 4 else 1e-6) for update in range(40))
    facts = OptimizerFacts(planned_updates=40, schedule=points, schedule_steps=5, schedule_seen=seen, **told)
    (found,) = schedule_in_wrong_unit.function(facts, SetupFacts())
    assert found.proof.fact.startswith(source)
    assert "length" not in found.measured
    assert 'mode="max"' in found.fix.does
    assert "per epoch" not in found.fix.does


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
