"""Probes of the forward pass see what tiny modules are known to do, and leave no trace."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from trainwright.adapters.torch.called_model import CalledModel, take_rows
from trainwright.adapters.torch.forward_probes import rows_that_work, run_probes
from trainwright.adapters.torch.memory import SavedBytes, largest_fitting, measure_memory
from trainwright.adapters.torch.token_probes import predicts_next_token
from trainwright.seams.devices.memory_owners import is_device_error
from trainwright.tensors.torch import objects as tensors

ROWS, LENGTH, WORDS = 6, 8, 11


def tokens(seed=0):
    return torch.randint(1, WORDS, (ROWS, LENGTH), generator=torch.Generator().manual_seed(seed))


class Causal(nn.Module):
    """Scores at t are those of the mean of the tokens up to t, or of all tokens."""

    def __init__(self, leaks):
        super().__init__()
        self.embed, self.head, self.leaks = nn.Embedding(WORDS, 16), nn.Linear(16, WORDS), leaks

    def forward(self, input_ids, labels=None):
        seen = self.embed(input_ids)
        summed = seen.cumsum(1) if not self.leaks else seen.sum(1, keepdim=True).expand_as(seen)
        return {"logits": self.head(summed)}


class Rows(nn.Module):
    """A linear layer over features, with one thing done to them."""

    def __init__(self, change):
        super().__init__()
        self.layer, self.change = nn.Linear(4, 3), change

    def forward(self, x):
        return self.layer(self.change(x))


def features(seed=0):
    return torch.randn(ROWS, 4, generator=torch.Generator().manual_seed(seed))


def probe_rows(change, **more):
    return run_probes(CalledModel(model=Rows(change), inputs={"x": features()}, other={"x": features(1)}, **more))


@pytest.mark.parametrize("leaks", [True, False])
def test_a_leak_of_later_tokens_is_seen(leaks):
    inputs = {"input_ids": tokens(), "labels": tokens()}
    found = run_probes(CalledModel(model=Causal(leaks), inputs=inputs, vocabulary=WORDS))
    assert (found["future_leak"] > 0.01) == leaks
    assert (found.get("future_from") is not None) == leaks


def test_the_first_call_that_leaks_is_named():
    found = run_probes(CalledModel(model=Causal(True), inputs={"input_ids": tokens()}, vocabulary=WORDS))
    assert found["future_from"].operation == "expand_as"
    assert found["future_from"].where.file.endswith("test_forward_probes.py")


def test_rows_that_are_kept_apart_do_not_leak():
    assert probe_rows(lambda x: x * 2)["leaking_rows"] < 1e-6


def test_rows_that_are_mixed_leak_and_the_call_is_named():
    found = probe_rows(lambda x: x.T.reshape(ROWS, 4))
    assert found["leaking_rows"] > 0.01
    assert found["leak_from"].operation == "reshape"


def test_scores_of_rows_against_rows_are_no_leak():
    class Matched(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x):
            seen = self.layer(x)
            return seen @ seen.T

    assert "leaking_rows" not in run_probes(CalledModel(model=Matched(), inputs={"x": features()}))


def test_a_fixed_number_of_rows_is_seen_at_the_batch_that_has_another():
    met = {"the last training batch": (2, True)}
    found = probe_rows(lambda x: x.view(ROWS, 4), met_rows=met)
    assert found["fails_at_rows"] == 2
    assert found["other_rows_from"] == "the last training batch"
    assert found["fixed_at"].file.endswith("test_forward_probes.py")
    assert "fails_at_rows" not in probe_rows(lambda x: x.view(-1, 4), met_rows=met)


def test_a_number_of_rows_that_works_is_found_where_the_batch_fails():
    probe = CalledModel(model=Rows(lambda x: x.view(16, 4)), inputs={"x": features()})
    assert rows_that_work(probe) == 16
    assert rows_that_work(CalledModel(model=Rows(lambda x: x), inputs={"x": features()})) is None


def test_a_row_that_a_model_refuses_is_no_matter_of_their_number():
    def refuse(x):
        if (x == x.new_tensor(7.0)).any():
            raise ValueError("seven")
        return x

    inputs = features()
    inputs[ROWS - 1, 0] = 7
    assert rows_that_work(CalledModel(model=Rows(refuse), inputs={"x": inputs})) is None


def test_an_output_without_its_input_is_seen_and_a_head_of_zeros_is_none():
    found = probe_rows(lambda x: x * 0 + 1)
    assert found["same_for_other_inputs"]
    assert found["same_when_perturbed"]
    model = Rows(lambda x: x)
    nn.init.zeros_(model.layer.weight)
    found = run_probes(CalledModel(model=model, inputs={"x": features()}, other={"x": features(1)}))
    assert found["same_for_other_inputs"]
    assert not found["same_when_perturbed"]


def test_an_input_without_effect_is_named():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x, y):
            return self.layer(x)

    found = run_probes(CalledModel(model=Two(), inputs={"x": features(), "y": features(1)}))
    assert found["ignored_inputs"] == ("y",)


def test_targets_one_further_are_next_tokens_and_others_are_not():
    ids = tokens()
    inputs = {"input_ids": ids}
    padded = torch.cat([ids[:, 1:], torch.full((ROWS, 1), -100)], 1)
    assert predicts_next_token(ids[:, 1:].flatten(), inputs, ("labels",))
    assert predicts_next_token(padded.flatten(), inputs, ("labels",))
    assert not predicts_next_token(ids.flatten(), inputs, ("labels",))
    assert not predicts_next_token(torch.zeros(ROWS, dtype=torch.long), inputs, ("labels",))
    assert not predicts_next_token(None, inputs, ("labels",))


class Restless(nn.Module):
    """Draws random numbers, counts its calls in a buffer, and has batch statistics and dropout."""

    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(WORDS, 16), nn.BatchNorm1d(16)
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(16, WORDS)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, input_ids, attention_mask):
        self.calls += 1
        seen = self.embed(input_ids) + random.random() + float(np.random.rand()) + torch.rand(1)
        return self.head(self.drop(self.norm(seen.flatten(0, 1)))).view(*input_ids.shape, WORDS)


def test_probes_leave_weights_buffers_modes_and_random_numbers_as_they_were():
    model = Restless()
    model.drop.eval()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    modes = {n: m.training for n, m in model.named_modules()}
    drawn = (torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy(), np.random.get_state()[2])
    mask = torch.ones(ROWS, LENGTH, dtype=torch.long)
    inputs, other = ({"input_ids": tokens(), "attention_mask": mask}, {"input_ids": tokens(1), "attention_mask": mask})
    met = {"one": (2, True), "other": (3, False)}
    run_probes(CalledModel(model=model, inputs=inputs, other=other, vocabulary=WORDS, met_rows=met))
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert {n: m.training for n, m in model.named_modules()} == modes
    assert torch.equal(torch.get_rng_state(), drawn[0])
    assert random.getstate() == drawn[1]
    assert (np.random.get_state()[1] == drawn[2]).all()
    assert np.random.get_state()[2] == drawn[3]
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("limit", [0, 1, 5, 31, 62, 63])
def test_bisection_finds_the_largest_batch_that_fits(limit):
    tried = []
    assert largest_fitting(64, lambda rows: not tried.append(rows) and rows <= limit) == limit
    assert len(tried) <= 7


def test_what_holds_the_memory_is_counted():
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2))
    optimizer = torch.optim.Adam(model.parameters())

    def step(batch):
        if len(batch["x"]) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        model(batch["x"]).sum().backward()

    def update():
        optimizer.step()
        return optimizer

    facts = measure_memory(model, {"x": torch.randn(8, 10)}, step, update)
    numbers = sum(p.numel() for p in model.parameters())
    assert facts.largest_rows == 5
    assert facts.batch_rows == 8
    assert facts.weights_bytes == facts.gradients_bytes == 4 * numbers
    assert 8 * numbers <= facts.optimizer_bytes <= 8 * numbers + 4 * 4
    # What a linear layer and a rectifier keep of one row: 10 inputs and 20 outputs, in float32.
    assert facts.activations_bytes == 8 * 4 * (10 + 20)


def test_a_storage_that_two_operations_keep_is_counted_once():
    weight, x = nn.Linear(1, 1), torch.randn(100, requires_grad=True)
    with SavedBytes(weight) as saved:
        (x * x).sum()
    assert saved.total == 400


def test_an_error_of_the_device_is_known_and_the_end_of_its_memory_is_none():
    assert is_device_error(RuntimeError("CUDA error: device-side assert triggered"))
    assert not is_device_error(torch.OutOfMemoryError("CUDA out of memory."))
    assert not is_device_error(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_device_error(None)


def test_rows_that_a_list_holds_are_taken_with_those_of_the_tensors():
    """Sequences of several lengths, which forward packs by itself, are no tensor."""
    parts = [torch.ones(n) for n in (1, 2, 3)]
    taken = take_rows({"labels": torch.arange(3), "parts": parts, "names": ["a", "b"]}, [2, 0])
    assert taken["labels"].tolist() == [2, 0] and [len(p) for p in taken["parts"]] == [3, 1]
    assert taken["names"] == ["a", "b"]
    assert len(tensors.take_rows({"labels": torch.arange(3), "parts": parts}, 2)["parts"]) == 2


@pytest.mark.parametrize(
    ("layers", "affine"),
    [
        ([nn.Linear(4, 8), nn.Linear(8, 3)], True),
        ([nn.Linear(4, 8), nn.Dropout(), nn.BatchNorm1d(8), nn.Linear(8, 3)], True),
        ([nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)], False),
        ([nn.Linear(4, 8), nn.LeakyReLU(0.9), nn.Linear(8, 3)], False),
        ([nn.Linear(4, 8), nn.Linear(8, 3), nn.Softmax(dim=1)], False),
    ],
)
def test_a_model_without_an_activation_is_affine(layers, affine):
    assert run_probes(CalledModel(model=nn.Sequential(*layers), inputs={"0": features()}))["affine"] is affine


@pytest.mark.parametrize("scale", [1e-3, 0.03, 0.3, 30.0])
@pytest.mark.parametrize("activation", [nn.Tanh(), nn.GELU(), nn.Softplus(), nn.ReLU()])
def test_an_activation_that_the_inputs_hardly_bend_is_one(activation, scale):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 32), activation, nn.Linear(32, 3))
    for inputs in (scale * features(), scale * features() + 100 * scale):
        assert run_probes(CalledModel(model=model, inputs={"0": inputs}))["affine"] is not True


def test_tokens_and_an_output_that_is_the_same_for_all_rows_tell_nothing_of_that():
    class Constant(nn.Module):
        def forward(self, x):
            return torch.ones(len(x), 3)

    assert run_probes(CalledModel(model=Constant(), inputs={"0": features()}))["affine"] is None
    embedded = nn.Sequential(nn.Embedding(WORDS, 4), nn.Linear(4, 3))
    assert run_probes(CalledModel(model=embedded, inputs={"0": tokens()}))["affine"] is None
