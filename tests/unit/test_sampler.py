"""What a sampler draws by: weights, or a list of rows."""

import torch
from torch.utils.data import DataLoader, Sampler, SubsetRandomSampler, TensorDataset, WeightedRandomSampler

from trainwright.adapters.torch.sampler import sampler_facts
from trainwright.probes.splits.census import measure_split
from trainwright.stages.dataset import Split

LABELS = torch.tensor([0, 0, 0, 1, 1, 2])
DATA = TensorDataset(torch.randn(6, 3), LABELS)
SPLIT = Split(name="train", rows=6, columns={"0": DATA.tensors[0].numpy(), "1": LABELS.numpy()}, read=6)
FACTS = measure_split(SPLIT, ["1"], ["0"])


def facts(sampler):
    return sampler_facts(DataLoader(DATA, 2, sampler=sampler), SPLIT, FACTS)


def test_the_weight_of_each_class_is_read_from_the_rows():
    seen = facts(WeightedRandomSampler(torch.tensor([0.2, 0.3, 0.6])[LABELS], 6))
    assert seen is not None and seen.weights == 6
    assert {c: round(w, 3) for c, w in seen.by_class.items()} == {0: 0.2, 1: 0.3, 2: 0.6}


def test_rows_of_a_class_with_several_weights_tell_nothing_of_classes():
    seen = facts(WeightedRandomSampler([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 6))
    assert seen is not None and seen.by_class == {}


def test_fewer_weights_than_rows_are_counted():
    seen = facts(WeightedRandomSampler([1.0, 2.0, 3.0], 6))
    assert seen is not None and (seen.weights, seen.by_class) == (3, {})


class Balanced(Sampler):
    """A sampler of the user's own, whose weights are what it makes of them."""

    weights = torch.ones(3)

    def __iter__(self):
        return iter(range(6))

    def __len__(self):
        return 6


def test_other_samplers_are_none():
    assert facts(Balanced()) is None
    assert sampler_facts(DataLoader(DATA, 2, shuffle=True), SPLIT, FACTS) is None


def test_a_list_of_rows_tells_how_many_are_different() -> None:
    found = facts(SubsetRandomSampler([0, 1, 0, 1, 0]))
    assert found is not None and (found.drawable, found.draws, found.weights) == (2, 5, 0)


def test_weights_of_zero_are_never_drawn_and_another_loader_may_read_their_rows() -> None:
    sampler = WeightedRandomSampler([0.0] * (len(DATA) - 1) + [1.0], 40)
    loader = DataLoader(DATA, 2, sampler=sampler)
    alone, beside = (
        sampler_facts(loader, SPLIT, FACTS, others) for others in ([loader], [loader, DataLoader(DATA, 2)])
    )
    assert alone is not None and beside is not None
    assert (alone.drawable, alone.draws, beside.drawable) == (1, 40, 0)
