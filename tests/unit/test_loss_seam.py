"""The observer sees losses however they were called, applies repairs to them, and leaves nothing behind."""

import math
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.functional import cross_entropy  # a name that a patch of the module would miss

from trainwright.adapters.torch.loss import loss_facts, per_row, token_offset
from trainwright.core import Call, Repair, Seam
from trainwright.rules.repairs import swap_activation
from trainwright.seams.torch.loss import KeptLoss, losses_of_rows
from trainwright.seams.torch.observer import Observer


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x)


@pytest.fixture
def batch():
    torch.manual_seed(0)
    return torch.randn(8, 4), torch.randint(0, 3, (8,))


def _line(text: str) -> int:
    """The line of this file that holds a comment."""
    return next(n for n, line in enumerate(Path(__file__).read_text().split("\n"), 1) if line.endswith(f"# {text}"))


def _by_import(scores, labels):
    return cross_entropy(scores, labels)  # by import


def _by_module(scores, labels):
    return nn.CrossEntropyLoss()(scores, labels)  # by module


def _by_path(scores, labels):
    return F.cross_entropy(input=scores, target=labels)  # by path


@pytest.mark.parametrize(
    ("loss", "comment"), [(_by_import, "by import"), (_by_module, "by module"), (_by_path, "by path")]
)
def test_cross_entropy_is_seen_however_it_was_imported_with_the_users_line(loss, comment, batch):
    model = Net()
    with Observer(model, detail=True).catching() as record:
        value = loss(model(batch[0]), batch[1])
        value.backward()
    (call,) = record.loss_calls
    assert call.function == "cross_entropy"
    assert call.value == pytest.approx(float(value.detach()))
    assert call.at is not None and call.at.file.endswith("test_loss_seam.py") and call.at.line == _line(comment)
    assert (call.smallest_target, call.largest_target) == (int(batch[1].min()), int(batch[1].max()))


def test_the_loss_inside_a_transformers_model_is_seen_without_a_line_of_the_users():
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    config = DistilBertConfig(dim=16, hidden_dim=32, n_layers=1, n_heads=2, vocab_size=50, num_labels=3)
    model = DistilBertForSequenceClassification(config)
    with Observer(model, detail=True).catching() as record:
        model(input_ids=torch.randint(0, 50, (4, 6)), labels=torch.tensor([0, 1, 2, 0])).loss.backward()
    assert [c.function for c in record.loss_calls] == ["cross_entropy"]
    assert record.loss_calls[0].inputs.shape == (4, 3)


def test_a_repair_changes_what_the_loss_is_given_and_which_loss_it_is(batch):
    model, seen = Net(), []

    def change(call: Call) -> Call:
        seen.append((call["function"], call["number"], call["label_smoothing"]))
        return call.replace(function="mse_loss", targets=torch.zeros(8, 3))

    with Observer(model, [Repair("use the mean square", Seam.LOSS, change)]).catching():
        scores = model(batch[0])
        value = F.cross_entropy(scores, batch[1], label_smoothing=0.1)
    assert seen == [("cross_entropy", 0, 0.1)]
    assert value.item() == pytest.approx((scores**2).mean().item())


def test_options_given_by_position_are_known_by_name(batch):
    weight = torch.tensor([1.0, 2.0, float("inf")])
    with Observer(Net(), detail=True).catching() as record:
        F.cross_entropy(torch.randn(8, 3), batch[1], weight)
    assert record.loss_calls[0].options["has_weight"] == 1
    assert record.loss_calls[0].options["non_finite_weights"] == 1


def test_a_term_can_be_trained_unseen_and_seen_untrained(batch):
    model = Net()

    def repair(**wanted):
        return [Repair("", Seam.LOSS, lambda call: call.replace(**wanted))]

    def step(repairs):
        model.zero_grad()
        with Observer(model, repairs).catching() as record:
            value = F.cross_entropy(model(batch[0]), batch[1])
            if value.requires_grad:
                value.backward()
        assert record.failure is None
        grad = model.layer.weight.grad
        return value.item(), None if grad is None else grad.clone()

    plain, gradient = step([])
    unseen, same = step(repair(shown=False))
    seen, none = step(repair(trained=False))
    tenth, smaller = step(repair(scale=0.1))
    assert unseen == 0 and torch.equal(same, gradient)
    assert seen == pytest.approx(plain) and none is None
    assert tenth == pytest.approx(plain / 10) and torch.allclose(smaller, gradient / 10)


def test_the_factor_of_each_term_in_the_sum_is_measured(batch):
    model = Net()
    with Observer(model, detail=True).catching() as record:
        scores = model(batch[0])
        (F.cross_entropy(scores, batch[1]) + 0.25 * F.mse_loss(scores, torch.zeros(8, 3))).backward()
    facts = loss_facts(record, {}, batch[1])
    assert [c.factor for c in facts.calls] == [1.0, 0.25]
    assert model.layer.weight.grad is not None


def test_what_a_loss_raises_is_kept_and_raised(batch):
    model = Net()
    with Observer(model, detail=True).catching() as record:
        F.cross_entropy(model(batch[0]), batch[1] + 3)  # out of range
    assert record.failure is not None and record.failure.type == "IndexError"
    assert record.loss_calls[0].failure is not None
    assert record.loss_calls[0].at.line == _line("out of range")


def test_nothing_is_left_behind(batch):
    model = Net()
    before = torch.get_rng_state(), F.cross_entropy, dict(vars(model.layer)), len(model._forward_hooks)
    with Observer(model, detail=True).catching():
        F.cross_entropy(model(batch[0]), batch[1])
    assert torch.equal(torch.get_rng_state(), before[0])
    assert F.cross_entropy is before[1] is cross_entropy
    assert vars(model.layer) == before[2] and len(model._forward_hooks) == before[3] == 0
    with Observer(model).catching() as record:
        pass
    F.cross_entropy(model(batch[0]), batch[1])
    assert record.loss_calls == []


WEIGHT = torch.tensor([1.0, 0.5, 2.0])
ROWS = [
    ("cross_entropy", (8, 3), (8,), {}),
    ("cross_entropy", (8, 3), (8,), {"weight": WEIGHT, "reduction": "sum"}),
    ("cross_entropy", (8, 3, 5), (8, 5), {"label_smoothing": 0.1}),
    ("nll_loss", (8, 3), (8,), {}),
    ("mse_loss", (8, 2), (8, 2), {"reduction": "sum"}),
    ("binary_cross_entropy_with_logits", (8,), (8,), {}),
]


@pytest.mark.parametrize(("function", "scores", "targets", "options"), ROWS)
def test_the_losses_of_rows_are_those_of_the_rows_one_by_one(function, scores, targets, options):
    torch.manual_seed(1)
    given = torch.randn(scores)
    classes = function in ("cross_entropy", "nll_loss")
    wanted = torch.randint(0, 3, targets) if classes else torch.rand(targets)
    each = losses_of_rows(KeptLoss(function=function, scores=given, targets=wanted, options=options))
    slow = [
        float(
            getattr(F, function)(
                given[i : i + 1], wanted[i : i + 1], **{**options, "reduction": "none"}
            ).mean()
        )
        for i in range(8)
    ]  # fmt: skip
    assert each.tolist() == pytest.approx(slow, rel=1e-5)


def test_rows_are_told_with_their_labels_and_infinite_weights_show_in_them():
    labels = torch.tensor([0, 2, 1, 2])
    kept = KeptLoss(function="cross_entropy", scores=torch.zeros(4, 3), targets=labels,
                    options={"weight": torch.tensor([1.0, 1.0, float("inf")])})  # fmt: skip
    losses, names = per_row(kept)
    assert names == (0, 2, 1, 2)
    assert [math.isfinite(x) for x in losses] == [True, False, True, False]


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_the_offset_of_the_targets_is_found_in_either_layout(offset):
    tokens = torch.randint(5, 1000, (3, 12))
    targets = torch.full((3, 12), -100)
    targets[:, : 12 - offset] = tokens[:, offset:]
    for laid_out in (targets, targets.reshape(-1), targets[:, :11], targets[:, :11].reshape(-1)):
        kept = KeptLoss(function="cross_entropy", scores=torch.zeros(1), targets=laid_out)
        assert token_offset(kept, tokens) == offset


def test_an_ambiguous_offset_is_none():
    same = torch.full((2, 6), 7)
    assert token_offset(KeptLoss(function="cross_entropy", scores=torch.zeros(1), targets=same), same) is None


@pytest.mark.parametrize(("axis", "rows", "width"), [(0, 8, 3), (1, 8, 3), (0, 4, 4), (0, 1, 3), (None, 8, 3)])
def test_scores_normalised_over_the_rows_are_told_from_those_over_the_classes(axis, rows, width):
    """Square scores (rows against rows) and single rows say nothing."""
    torch.manual_seed(0)
    scores, labels = torch.randn(rows, width), torch.randint(0, width, (rows,))
    for log in (False, True):
        with Observer(Net(), detail=True) as observer:
            given = scores if axis is None else torch.softmax(scores, dim=axis)
            F.cross_entropy(torch.log(given) if log and axis is not None else given, labels)
        (seen,) = observer.record.loss_calls
        wanted = axis == 0 and rows > 1 and rows != width
        assert (seen.columns_sum_to_one, seen.columns_log_normalised) == (wanted and not log, wanted and log)
        assert (seen.softmax_at is not None) == (axis is not None)


class Rectified(Net):
    def __init__(self, shared) -> None:
        super().__init__()
        self.inner, self.shared = nn.Linear(4, 4), shared

    def forward(self, x):
        self.hidden = self.shared(self.inner(x))
        return self.shared(self.layer(self.hidden))


@pytest.mark.parametrize("shared", [F.relu, nn.ReLU()])
def test_only_the_last_of_the_calls_of_one_activation_is_exchanged(shared, batch):
    """Functions of one forward, and a module that it calls twice, go by one name."""
    model = Rectified(shared)
    with Observer(model, detail=True).catching() as record:
        F.cross_entropy(model(batch[0]), batch[1])
    change = swap_activation("identity", record.loss_calls[0])
    with Observer(model, repairs=[change]).catching():
        scores = model(batch[0])
    assert model.hidden.min() == 0 > scores.min()


def test_an_activation_is_exchanged_on_whatever_line_its_model_is_called(batch):
    """The evaluation calls the model elsewhere than the training does."""
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    with Observer(model, detail=True).catching() as record:
        F.cross_entropy(model(batch[0]), batch[1])
    with Observer(model, repairs=[swap_activation("identity", record.loss_calls[0])]).catching():
        scores = model(batch[0])
    assert scores.min() < 0


def test_with_a_gradient_for_each_row_their_weighted_sum_is_minimized(batch):
    model = Net()
    with Observer(model, detail=True).catching() as record:
        each = F.cross_entropy(model(batch[0]), batch[1], reduction="none")
        each.backward(torch.full((8,), 0.125))
    assert record.failure is None
    assert record.minimised == pytest.approx([float(each.mean())])
