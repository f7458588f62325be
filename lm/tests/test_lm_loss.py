"""The fused loss is the plain one: its value, its gradients, its weights; key tokens are those of the tokenizer."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from trainwright_lm.config import ModelConfig
from trainwright_lm.network.loss import (
    IGNORED,
    key_token_ids,
    linear_cross_entropy,
    told_spellings,
    training_loss,
    window_weights,
)
from trainwright_lm.network.model import Transformer


def plain(hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, weights_N: Tensor | None, z_loss: float) -> Tensor:
    """The same, written as it is defined."""
    logits_NV = hidden_ND @ weight_VD.t()
    nats_N = F.cross_entropy(logits_NV, targets_N, ignore_index=IGNORED, reduction="none")
    counted_N = (targets_N != IGNORED).to(nats_N.dtype)
    counts_N = counted_N if weights_N is None else counted_N * weights_N
    return (counts_N * (nats_N + z_loss * logits_NV.logsumexp(1).square())).sum()


@st.composite
def problems(draw: st.DrawFn, largest: float = 10.0) -> dict[str, object]:
    rows, width, vocabulary = draw(st.integers(1, 40)), draw(st.integers(1, 12)), draw(st.integers(1, 30))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    scale = draw(st.floats(0.1, largest))
    targets_N = torch.randint(0, vocabulary, (rows,), generator=generator)
    targets_N[torch.rand(rows, generator=generator) < draw(st.sampled_from([0.0, 0.3, 1.0]))] = IGNORED
    weighted = draw(st.booleans())
    return {
        "hidden": scale * torch.randn(rows, width, generator=generator, dtype=torch.float64),
        "weight": torch.randn(vocabulary, width, generator=generator, dtype=torch.float64),
        "targets": targets_N,
        "weights": 4 * torch.rand(rows, generator=generator, dtype=torch.float64) if weighted else None,
        "z_loss": draw(st.sampled_from([0.0, 1e-4, 0.1])),
        "chunk_rows": draw(st.integers(1, 45)),
    }


def both(problem: dict[str, Tensor], dtype: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
    """Loss and gradients of ours and of the plain computation, both divided by 7."""
    results = []
    for ours in (True, False):
        hidden = problem["hidden"].to(dtype, copy=True).requires_grad_()
        weight = problem["weight"].to(dtype, copy=True).requires_grad_()
        weights = None if problem["weights"] is None else problem["weights"].to(dtype)
        if ours:
            loss = linear_cross_entropy(
                hidden, weight, problem["targets"], weights, z_loss=problem["z_loss"], chunk_rows=problem["chunk_rows"]
            )
        else:
            loss = plain(hidden, weight, problem["targets"], weights, problem["z_loss"])
        (loss / 7).backward()
        results.append([loss.detach(), hidden.grad, weight.grad])
    return results[0], results[1]


@settings(max_examples=80, deadline=None)
@given(problems())
def test_loss_and_gradients_equal_the_plain_computation(problem: dict[str, Tensor]) -> None:
    for mine, expected in zip(*both(problem, torch.float64), strict=True):
        torch.testing.assert_close(mine, expected, atol=1e-9, rtol=1e-9)


@settings(max_examples=40, deadline=None)
@given(problems(largest=1.0))
def test_in_fp32_they_are_equal_to_one_in_a_million(problem: dict[str, Tensor]) -> None:
    for mine, expected in zip(*both(problem, torch.float32), strict=True):
        scale = max(1.0, expected.abs().max().item())
        torch.testing.assert_close(mine / scale, expected / scale, atol=1e-6, rtol=0)


def test_under_bf16_autocast_gradients_are_as_near_as_torchs_own() -> None:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(700, 32, generator=generator)
    weight = 0.2 * torch.randn(100, 32, generator=generator)
    targets = torch.randint(0, 100, (700,), generator=generator)
    exact = torch.autograd.grad(
        plain(h := hidden.clone().requires_grad_(), w := weight.clone().requires_grad_(), targets, None, 0.0), (h, w)
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = linear_cross_entropy(
            h := hidden.clone().requires_grad_(), w := weight.clone().requires_grad_(), targets, chunk_rows=128
        )
        torchs = F.cross_entropy(
            F.linear(h2 := hidden.clone().requires_grad_(), w2 := weight.clone().requires_grad_()).float(),
            targets,
            reduction="sum",
        )
    assert loss.dtype == torch.float32
    for mine, theirs, reference in zip(
        torch.autograd.grad(loss, (h, w)), torch.autograd.grad(torchs, (h2, w2)), exact, strict=True
    ):
        assert mine.dtype == torch.float32
        assert (mine - reference).norm() < max(1.2 * (theirs - reference).norm(), 0.004 * reference.norm())


def test_large_logits_stay_finite() -> None:
    hidden = torch.full((3, 4), 300.0, requires_grad=True)
    weight = torch.tensor([[1.0] * 4, [-1.0] * 4], requires_grad=True)
    loss = linear_cross_entropy(hidden, weight, torch.tensor([0, 1, 0]))
    loss.backward()
    assert loss.item() == 2400.0 and hidden.grad.isfinite().all() and weight.grad.isfinite().all()


class Largest(TorchDispatchMode):
    """Elements of the largest tensor that any operation returned."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **kwargs or {})
        for tensor in result if isinstance(result, tuple) else (result,):
            if isinstance(tensor, Tensor):
                self.elements = max(self.elements, tensor.numel())
        return result


def test_the_full_logits_never_exist() -> None:
    hidden = torch.randn(256, 8, requires_grad=True)
    weight = torch.randn(500, 8, requires_grad=True)
    with Largest() as largest:
        linear_cross_entropy(hidden, weight, torch.zeros(256, dtype=torch.long), chunk_rows=32).backward()
    assert largest.elements == 32 * 500


def test_without_gradients_none_are_computed() -> None:
    hidden, weight = torch.randn(9, 4), torch.randn(6, 4, requires_grad=True)
    targets = torch.arange(9) % 6
    with torch.no_grad():
        loss = linear_cross_entropy(hidden, weight, targets)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, plain(hidden, weight, targets, None, 0.0))


def test_an_evaluation_shows_its_scores_to_who_watches_torchs_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    plain = F.cross_entropy
    monkeypatch.setattr(F, "cross_entropy", lambda *a, **k: seen.append((a[0], a[1])) or plain(*a, **k))
    hidden, weight, targets = torch.randn(5, 4), torch.randn(7, 4), torch.tensor([0, 6, -100, 2, 3])
    found = linear_cross_entropy(hidden, weight, targets, torch.arange(5.0), z_loss=0.1, chunk_rows=2)
    logits = hidden @ weight.T
    nats = plain(logits, targets, reduction="none") + 0.1 * logits.logsumexp(1).square() * (targets >= 0)
    torch.testing.assert_close(found, (nats * torch.arange(5.0)).sum())
    torch.testing.assert_close(torch.cat([scores for scores, _ in seen]), logits)
    assert torch.equal(torch.cat([labels for _, labels in seen]), targets)


def test_the_backward_pass_may_run_twice() -> None:
    hidden, weight = torch.randn(9, 4, requires_grad=True), torch.randn(6, 4, requires_grad=True)
    loss = linear_cross_entropy(hidden, weight, torch.arange(9) % 6)
    loss.backward(retain_graph=True)
    once = hidden.grad.clone()
    loss.backward()
    torch.testing.assert_close(hidden.grad, 2 * once)


def tiny() -> Transformer:
    torch.manual_seed(0)
    return Transformer(ModelConfig(vocabulary_size=50, layers=1, width=16, heads=2, context=12))


def windows(batch: int) -> tuple[Tensor, Tensor]:
    tokens = torch.randint(0, 50, (batch, 13), generator=torch.Generator().manual_seed(3))
    return tokens[:, :-1], tokens[:, 1:]


@pytest.mark.parametrize("micro", [1, 2, 4, 8])
def test_weighted_gradients_do_not_depend_on_accumulation(micro: int) -> None:
    """Defect 9: the sum is divided by the weight of the whole update, whatever micro-batches it came in."""
    inputs, targets = windows(8)
    weights = window_weights(inputs, [3, 7, 11], 2.0)
    assert weights.unique().numel() > 1
    model = tiny()
    total = inputs.shape[1] * weights.sum()
    for rows in torch.arange(8).split(micro):
        (training_loss(model, inputs[rows], targets[rows], weights[rows]) / total).backward()
    grads = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    nats = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), reduction="none").view(8, 12)
    ((nats * weights[:, None]).sum() / (12 * weights.sum())).backward()
    for mine, parameter in zip(grads, model.parameters(), strict=True):
        torch.testing.assert_close(mine, parameter.grad, atol=1e-6, rtol=1e-5)


def test_equal_weights_change_nothing() -> None:
    """Defect 9: without normalization, weights of 5 would be a rate five times as high."""
    inputs, targets = windows(4)
    model = tiny()
    plain_loss = training_loss(model, inputs, targets) / targets.numel()
    fives = torch.full((4,), 5.0)
    weighted = training_loss(model, inputs, targets, fives) / (5 * targets.numel())
    assert weighted.item() == pytest.approx(plain_loss.item(), rel=1e-6)


class Letters:
    """Encodes known words as one token, others letter by letter."""

    known = ("plt", " plt", "fit")

    def encode(self, text: str) -> list[int]:
        return [1000 + self.known.index(text)] if text in self.known else [ord(letter) for letter in text]


def test_key_words_that_are_not_one_token_are_named() -> None:
    ids, split = key_token_ids(Letters().encode, ["plt", "fit", "predict"])
    assert ids == [1000, 1001, 1002]
    assert split == [" fit", "predict", " predict"]


def test_a_key_word_is_listed_once() -> None:
    ids, split = key_token_ids(Letters().encode, ["plt", " plt", "fit", "predict", " predict"])
    assert ids == [1000, 1001, 1002] and split == [" fit", "predict", " predict"]
    assert told_spellings(split) == "' fit', 'predict' (with and without a blank)"


def test_a_windows_weight_grows_with_its_key_tokens() -> None:
    inputs = torch.tensor([[1, 2, 3, 4], [7, 7, 1, 9], [9, 7, 9, 7]])
    assert window_weights(inputs, [7, 9], 0.5).tolist() == [1.0, 2.5, 3.0]
    assert window_weights(inputs, [], 0.5).tolist() == [1.0, 1.0, 1.0]
