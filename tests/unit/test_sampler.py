"""What a sampler draws the rows of each class by."""

import torch
from torch.utils.data import DataLoader, Sampler, TensorDataset, WeightedRandomSampler

from trainwright.adapters.torch.loaders import sampler_weights
from trainwright.probes.splits.census import measure_split
from trainwright.stages import Split

LABELS = torch.tensor([0, 0, 0, 1, 1, 2])
DATA = TensorDataset(torch.randn(6, 3), LABELS)
SPLIT = Split(name="train", rows=6, columns={"0": DATA.tensors[0].numpy(), "1": LABELS.numpy()}, read=6)
FACTS = measure_split(SPLIT, ["1"], ["0"])


def weights(sampler):
    return sampler_weights(DataLoader(DATA, 2, sampler=sampler), SPLIT, FACTS)


def test_the_weight_of_each_class_is_read_from_the_rows():
    seen = weights(WeightedRandomSampler(torch.tensor([0.2, 0.3, 0.6])[LABELS], 6))
    assert {c: round(w, 3) for c, w in seen.items()} == {0: 0.2, 1: 0.3, 2: 0.6}


def test_rows_of_a_class_with_several_weights_tell_nothing_of_classes():
    assert weights(WeightedRandomSampler([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 6)) == {}


def test_fewer_weights_than_rows_are_no_weights_of_classes():
    assert weights(WeightedRandomSampler([1.0, 2.0, 3.0], 6)) == {}


class Balanced(Sampler):
    """A sampler of the user's own, whose weights are what it makes of them."""

    weights = torch.ones(3)

    def __iter__(self):
        return iter(range(6))

    def __len__(self):
        return 6


def test_other_samplers_have_none():
    assert weights(Balanced()) == {}
    assert sampler_weights(DataLoader(DATA, 2, shuffle=True), SPLIT, FACTS) == {}
