"""Validation: whole groups, about the wanted share, and a proof that compares every pair."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus import code
from trainwright_lm.corpus import split as module
from trainwright_lm.corpus.dedup import jaccard, shingles
from trainwright_lm.corpus.split import SplitProof, prove, validation_groups
from trainwright_lm.documents import Document

GROUPS = st.dictionaries(st.text(max_size=5), st.integers(1, 10**9), min_size=2, max_size=30)


def document(text: str, path: str = "a.py", group: str = "g") -> Document:
    return Document(text=text, path=path, group=group)


def proof(train: list[Document], validation: list[Document], threshold: float = 0.7) -> SplitProof:
    return prove(lambda: train, lambda: validation, threshold=threshold)


@given(GROUPS, st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_part_of_the_groups_is_held_out_never_all_and_never_none(
    groups: dict[str, int], share: float, seed: int
) -> None:
    chosen = validation_groups(groups, share=share, seed=seed)
    assert chosen
    assert chosen < set(groups)
    size = sum(groups[group] for group in chosen)
    assert size <= share * sum(groups.values()) or (len(chosen) == 1 and size == min(groups.values()))


@given(GROUPS, st.randoms())
def test_the_choice_does_not_depend_on_the_order(groups: dict[str, int], random: object) -> None:
    names = list(groups)
    random.shuffle(names)  # type: ignore[attr-defined]
    assert validation_groups({n: groups[n] for n in names}, share=0.2) == validation_groups(groups, share=0.2)


def test_of_many_groups_about_the_share_is_held_out_and_seeds_choose_others() -> None:
    groups = {f"g{i}": 1000 + i for i in range(500)}
    choices = [validation_groups(groups, share=0.1, seed=seed) for seed in range(3)]
    for chosen in choices:
        assert 0.098 < sum(groups[group] for group in chosen) / sum(groups.values()) <= 0.1
    assert len(set(choices)) == 3


def test_where_none_fits_the_smallest_group_is_held_out() -> None:
    assert validation_groups({"a": 70, "b": 30}, share=0.01) == {"b"}


def test_sides_that_share_nothing_are_proven_to() -> None:
    found = proof([document(code(i), group="t") for i in range(5)], [document(code(9), group="v")])
    assert found == SplitProof(
        near=(), train_documents=5, validation_documents=1, groups=frozenset(), equal=frozenset()
    )


def test_a_shared_group_text_or_near_text_is_found() -> None:
    changed = code(2).replace("df.", "frame.", 1)
    train = [document(code(1), "t0", "both"), document("\n()  ", "t1", "t"), document(changed, "t2", "v")]
    found = proof(train, [document(code(2), "v2", "v"), document("()", "v3", "v"), document(code(5), "v5", "both")])
    assert found.near == (2,)  # and so its group does not count
    assert (found.groups, found.equal, found.train_documents) == ({"both"}, {"t1"}, 2)


TEXTS = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=14).map(" ".join), max_size=6)


@settings(deadline=None)
@given(TEXTS, TEXTS, st.sampled_from([0.3, 0.7, 1.0]))
def test_the_proof_finds_what_comparing_all_pairs_finds(
    train: list[str], validation: list[str], threshold: float
) -> None:
    held_out = [shingles(text) for text in validation]
    slow = [at for at, text in enumerate(train) if any(jaccard(shingles(text), v) >= threshold for v in held_out)]
    found = proof([document(t, group="t") for t in train], [document(t, group="v") for t in validation], threshold)
    assert list(found.near) == slow


def test_validation_in_several_blocks_is_proven_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    train = [document(code(i), f"t{i}", "t") for i in range(6)]
    validation = [document(code(i), f"v{i}", "v") for i in (3, 10, 5, 11)]
    whole = proof(train, validation)
    monkeypatch.setattr(module, "_BLOCK_SHINGLES", 100)
    assert proof(train, validation) == whole
    assert whole.near == (3, 5)
