"""The measurements of the batch stage against slow, obvious re-implementations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import default_collate

from trainwright.adapters.torch.batches import (
    RecordingCollator,
    other_padding_labels,
    several_batches_facts,
    token_facts,
)
from trainwright.adapters.torch.collation import collator_facts
from trainwright.adapters.torch.vocabulary import kept_share, vocabulary_facts
from trainwright.probes.batches import measure_images, measure_label_count, measure_label_mask
from trainwright.stages import real_positions

PAD, EOS, WORDS = 0, 1, 5


class Reader:
    """As much of a tokenizer as the measurements ask for."""

    def __init__(self, pad: int | None, eos: int | None) -> None:
        self.pad_token_id, self.eos_token_id = pad, eos

    def __len__(self) -> int:
        return WORDS

    def decode(self, ids: torch.Tensor) -> str:
        return " ".join(map(str, ids.tolist()))


def _slow_real(row: list[int], mask: list[int] | None, pad: int | None, eos: int | None) -> list[bool]:
    if mask is not None:
        return [m != 0 for m in mask]
    real = [True] * len(row)
    for order in (list(range(len(row))), list(range(len(row)))[::-1]):
        run = []
        for position in order:
            if row[position] != pad:
                break
            run.append(position)
        if pad == eos and run and len(run) < len(row):
            run = run[:-1]  # the one next to the text is the text's own
        for position in run:
            real[position] = False
    return real


def _slow_mask(rows, labels, masks, pad, eos) -> dict[str, int]:
    found = dict.fromkeys(("live", "eos_inputs", "eos_live", "pad_live"), 0)
    for row, label, mask in zip(rows, labels, masks or [None] * len(rows)):
        real = _slow_real(row, mask, pad, eos)
        begun = False
        for token, value, is_real in zip(row, label, real):
            live = value != -100
            found["live"] += live
            if not is_real:
                found["pad_live"] += live
            elif begun and token == eos:
                found["eos_inputs"] += 1
                found["eos_live"] += live
            begun = begun or is_real
    return found


@st.composite
def batches(draw):
    rows, length = draw(st.integers(1, 4)), draw(st.integers(1, 7))

    def table(values):
        row = st.lists(st.sampled_from(values), min_size=length, max_size=length)
        return draw(st.lists(row, min_size=rows, max_size=rows))

    tokens = table([PAD, PAD, EOS, 2, 3, 4])
    kind = draw(st.sampled_from(["free", "copy", "shifted"]))
    labels = table([-100, -100, 0, 1, 2, 3])
    if kind == "copy":
        labels = [[t if v != -100 else -100 for t, v in zip(r, w)] for r, w in zip(tokens, labels)]
    if kind == "shifted":
        labels = [[*r[1:], -100] for r in tokens]
    masks = table([0, 1, 1]) if draw(st.booleans()) else None
    pad = draw(st.sampled_from([PAD, EOS, None]))
    return tokens, labels, masks, pad, draw(st.sampled_from([EOS, None]))


def _array(table):
    return np.array(table) if table is not None else None


@settings(deadline=None, max_examples=300)
@given(batches())
def test_the_label_mask_is_what_a_loop_over_positions_counts(batch) -> None:
    tokens, labels, masks, pad, eos = batch
    facts = measure_label_mask(_array(tokens), _array(labels), _array(masks), pad_id=pad, eos_id=eos)
    slow = _slow_mask(tokens, labels, masks, pad, eos)
    assert {name: getattr(facts, name) for name in slow} == slow
    pairs = [(t, v) for r, w in zip(tokens, labels) for t, v in zip(r, w) if v != -100]
    following = [(t, v) for r, w in zip(tokens, labels) for t, v in zip(r[1:], w) if v != -100]
    assert facts.equals_inputs == (bool(pairs) and all(t == v for t, v in pairs))
    assert facts.shifted_by_one == (bool(following) and all(t == v for t, v in following) and not facts.equals_inputs)
    assert facts.rows == len(tokens)


@settings(deadline=None, max_examples=200)
@given(batches())
def test_token_facts_are_what_a_loop_over_positions_counts(batch) -> None:
    tokens, labels, masks, pad, eos = batch
    given_batch = {"input_ids": torch.tensor(tokens), "labels": torch.tensor(labels)}
    if masks is not None:
        given_batch["attention_mask"] = torch.tensor(masks)
    facts = token_facts(given_batch, "labels", torch.nn.Identity(), Reader(pad, eos))
    several = several_batches_facts([given_batch, given_batch], "labels", torch.nn.Identity(), Reader(pad, eos))
    real = [_slow_real(r, m, pad, eos) for r, m in zip(tokens, masks or [None] * len(tokens))]
    flat = [(t, k) for row, kept in zip(tokens, real) for t, k in zip(row, kept)]
    if masks is None and pad is None:
        assert "padding_share" not in facts
    else:
        share = sum(not k for _, k in flat) / len(flat)
        assert facts["padding_share"] == pytest.approx(share)
        assert several["padding_shares"] == pytest.approx((share, share))
    assert facts["largest_token"] == max(t for row in tokens for t in row)
    if masks is not None and pad is not None and pad != eos:
        ends = [_slow_real(r, None, pad, None) for r in tokens]
        let_in = sum(k and not e for a, b in zip(real, ends) for k, e in zip(a, b))
        assert facts["attended_padding"] == let_in
        assert facts["hidden_tokens"] == sum(t != pad for t, k in flat if not k)
    assert several["masks"] == (facts["mask"], facts["mask"])


@settings(deadline=None, max_examples=100)
@given(batches())
def test_other_padding_labels_differ_at_padding_that_counts_and_nowhere_else(batch) -> None:
    tokens, labels, masks, pad, eos = batch
    given_batch = {"input_ids": torch.tensor(tokens), "labels": torch.tensor(labels)}
    if masks is not None:
        given_batch["attention_mask"] = torch.tensor(masks)
    changed = other_padding_labels(given_batch, "labels", pad, eos)
    if changed is None:
        return
    values = {v for row in labels for v in row if v != -100}
    for row, mask, old, new in zip(tokens, masks or [None] * len(tokens), labels, changed.tolist()):
        for real, before, after in zip(_slow_real(row, mask, pad, eos), old, new):
            assert (before != after) == (not real and before != -100)
            assert after in values or after == before


def test_labels_that_count_are_counted_in_any_shape() -> None:
    count = measure_label_count(np.array([[[1, -100], [-100, -100]], [[-100, -100], [-100, -100]]]))
    assert (count.rows, count.positions, count.live, count.dead_rows) == (2, 8, 1, 1)
    count = measure_label_count(np.array([-100, 2, 0]))
    assert (count.rows, count.positions, count.live, count.dead_rows) == (3, 3, 2, 1)


def test_an_end_that_begins_a_row_is_a_separator() -> None:
    tokens = np.array([[EOS, 3, 4, EOS], [3, 4, EOS, EOS]])
    mask = np.array([[1, 1, 1, 1], [1, 1, 1, 0]])
    facts = measure_label_mask(tokens, np.where(tokens == EOS, -100, tokens), mask, pad_id=EOS, eos_id=EOS)
    assert (facts.eos_inputs, facts.eos_live) == (2, 0)


def test_of_padding_that_is_the_end_the_one_next_to_the_text_is_its_own() -> None:
    tokens = np.array([[3, EOS, EOS, EOS], [EOS, EOS, 3, 4]])
    assert real_positions(tokens, None, pad_id=EOS, eos_id=EOS).tolist() == [
        [True, True, False, False],
        [False, True, True, True],
    ]


def test_smooth_images_are_rougher_when_read_in_another_order_and_noise_is_not() -> None:
    steps = np.linspace(0, 1, 16)
    smooth = np.sin(6 * steps[:, None] + 4 * steps[None]) * np.array([1.0, 0.5, 0.2])[:, None, None]
    images = np.stack([smooth, smooth * 0.7])
    right = measure_images("pixels", images)
    wrong = measure_images("pixels", images.transpose(0, 2, 3, 1).reshape(images.shape))
    noise = measure_images("pixels", np.random.default_rng(0).normal(size=(8, 3, 16, 16)))
    assert right is not None and wrong is not None and noise is not None
    assert right.reread_roughness > 2 * right.roughness
    assert wrong.roughness > 2 * wrong.reread_roughness
    assert noise.reread_roughness == pytest.approx(noise.roughness, rel=0.05)


@given(st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=1, max_size=4))
def test_all_tokens_are_kept_when_rows_come_back_as_they_were(rows) -> None:
    total = sum(map(len, rows))
    assert kept_share(rows, rows) == (1.0 if total else 0.0)
    assert kept_share(rows, [[9] * len(r) for r in rows]) == 0.0


def test_a_collator_that_makes_the_mask_is_told_from_one_that_passes_it_on() -> None:
    def collate(items):
        return {name: torch.tensor([item[name] for item in items]) for name in items[0]}

    recorder = RecordingCollator(collate)
    batch = recorder([{"input_ids": [3, 4], "attention_mask": [1, 1]}, {"input_ids": [3, 0], "attention_mask": [1, 0]}])
    facts = collator_facts(recorder, batch)
    assert facts["collator"] == "collate" and facts["item_columns"] == ("input_ids", "attention_mask")
    assert facts["collator_masks"] is False
    assert collator_facts(recorder, {**batch, "attention_mask": torch.ones(2, 2)})["collator_masks"] is True


def test_a_mask_is_the_collators_only_if_it_could_make_one_and_made_it_of_these_rows() -> None:
    stacks = RecordingCollator(default_collate)
    stacks([(torch.tensor([3, 4]), torch.tensor([1, 1])), (torch.tensor([3, 0]), torch.tensor([1, 0]))])
    batch = {"input_ids": torch.tensor([[3, 4], [3, 0]]), "attention_mask": torch.tensor([[1, 1], [1, 0]])}
    assert collator_facts(stacks, batch)["collator_masks"] is False
    ahead = RecordingCollator(lambda rows: rows)
    ahead([{"input_ids": [2, 4], "attention_mask": [1, 0]}])  # of the batch behind this one
    assert collator_facts(ahead, batch)["collator_masks"] is False
    ahead([{"input_ids": [3, 4], "attention_mask": [1, 0]}])
    assert collator_facts(ahead, batch)["collator_masks"] is True


class Speller:
    """A tokenizer whose words are numbers, after a sign of its own."""

    all_special_ids, name_or_path = (99,), "speller"

    def __init__(self, shift: int = 0) -> None:
        self.shift = shift

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        ids = [int(word) + self.shift for word in text.split() if word.isdigit()]
        return {"input_ids": [99, *ids] if add_special_tokens else ids}

    def decode(self, ids, clean_up_tokenization_spaces: bool = False) -> str:
        return " ".join(map(str, ids))


def test_token_ids_are_a_tokenizers_own_if_they_survive_decoding() -> None:
    items = [{"input_ids": [99, *range(20), 7], "attention_mask": [1] * 21 + [0]} for _ in range(100)]
    own = vocabulary_facts(items, Speller(), "", None)
    other = vocabulary_facts(items, Speller(shift=50), "", None)
    assert own is not None and other is not None
    assert (own.rows, own.kept_share, own.framed, own.first_share) == (64, 1.0, True, 1.0)
    assert other.kept_share == 0.0
    assert own.sample == "99 " + " ".join(map(str, range(20)))  # nothing that the mask hides


def test_rows_without_token_ids_have_no_vocabulary() -> None:
    assert vocabulary_facts([{"pixels": [1, 2]}], Speller(), "", None) is None
    assert vocabulary_facts([], Speller(), "", None) is None
