"""Exact and near duplicates: what is kept, what is found, against slow and obvious re-implementations."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus import code
from trainwright_lm.corpus.dedup import (
    KEPT,
    NEAR,
    PERMUTATIONS,
    WORDS,
    Prints,
    exact_verdicts,
    jaccard,
    near_verdicts,
    shingles,
    signature,
    text_hash,
)

WORDS_OF_TEXTS = st.lists(st.sampled_from(["a", "b", "ab", "x1", "_", "é", "(", ".", "\n", " "]), max_size=30).map(
    "".join
)


def slow_shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[A-Za-z0-9_\u0080-\U0010ffff]+", text)
    if not words:
        return set()
    return {tuple(words[i : i + WORDS]) for i in range(max(len(words) - WORDS + 1, 1))}


def prints(texts: list[str]) -> Prints:
    signatures = [signature(shingles(text)) for text in texts]
    return Prints(
        hashes=np.array([text_hash(text) for text in texts], dtype="V16"),
        signatures=np.array(signatures, dtype=np.uint32).reshape(len(texts), PERMUTATIONS),
    )


def verdicts(texts: list[str]) -> np.ndarray:
    marks = prints(texts)
    found = exact_verdicts(marks.hashes)
    exact = found.copy()
    for position, verdict in near_verdicts(marks, exact, lambda at: shingles(texts[at])):
        found[position] = verdict
    return found


def family(seed: int, changed: int) -> str:
    """A text of 40 lines, some of them changed."""
    lines = code(seed, 40).splitlines()
    for at in range(changed):
        lines[3 * at + 2] = f"other_{seed}_{changed}_{at} = {at}"
    return "\n".join(lines)


@given(WORDS_OF_TEXTS, WORDS_OF_TEXTS)
def test_shingles_are_the_sets_of_five_words(one: str, other: str) -> None:
    a, b = slow_shingles(one), slow_shingles(other)
    assert len(shingles(one)) == len(a)
    assert jaccard(shingles(one), shingles(other)) == (len(a & b) / len(a | b) if a | b else 0.0)


def test_shingles_are_sorted_distinct_and_blind_to_layout() -> None:
    hashes = shingles(code(1) * 2)
    assert (np.diff(hashes.astype(object)) > 0).all()
    assert np.array_equal(shingles("f(a, b)\nc + d"), shingles("f ( a,b )   c+d"))
    assert shingles(" ...\n").size == 0


def test_shingles_of_long_texts_are_those_of_their_parts() -> None:
    """The tables of powers grow with the text: a long text's first words must hash as a short text's."""
    short, long = shingles("a b c d e"), shingles("a b c d e " + "f" * 200_000)
    assert np.isin(short, long).all()


def test_a_signature_estimates_the_jaccard_index() -> None:
    for changed in (0, 2, 6, 13):
        one, other = family(1, 0), family(1, changed)
        estimate = (signature(shingles(one)) == signature(shingles(other))).mean()
        assert abs(estimate - jaccard(shingles(one), shingles(other))) < 4 * 0.5 / PERMUTATIONS**0.5


@given(st.lists(st.sampled_from(["a = 1", " a = 1\n", "b = 2", "b = 2 ", "c"]), max_size=12))
def test_exactly_the_first_of_each_class_of_equal_texts_is_kept(texts: list[str]) -> None:
    found = exact_verdicts(np.array([text_hash(text) for text in texts], dtype="V16"))
    stripped = [text.strip() for text in texts]
    assert found.tolist() == [KEPT if (first := stripped.index(t)) == at else first for at, t in enumerate(stripped)]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8)), max_size=14))
def test_what_is_kept_is_pairwise_apart_and_kept_again(members: list[tuple[int, int]]) -> None:
    texts = [family(seed, changed) for seed, changed in members]
    found = verdicts(texts)
    kept = [text for text, verdict in zip(texts, found) if verdict == KEPT]
    sets = [shingles(text) for text in kept]
    assert all(jaccard(a, b) < NEAR for i, a in enumerate(sets) for b in sets[:i])
    for at, original in enumerate(found.tolist()):
        if original != KEPT:
            # An exact duplicate's first may itself be near one that is kept.
            root = original if found[original] == KEPT else int(found[original])
            assert found[root] == KEPT
            assert root < at
            assert jaccard(shingles(texts[at]), shingles(texts[root])) >= NEAR
    assert (verdicts(kept) == KEPT).all()


def test_candidates_below_the_threshold_are_kept() -> None:
    """Short bands make candidates of texts that are alike by half; the exact index decides."""
    texts = [family(1, 0), family(1, 4)]
    index = jaccard(*(shingles(text) for text in texts))
    marks = prints(texts)
    assert 0.4 < index < NEAR
    exact = exact_verdicts(marks.hashes)
    sets = [shingles(text) for text in texts]
    at = {t: dict(near_verdicts(marks, exact, sets.__getitem__, threshold=t)).get(1) for t in (index, index + 1e-9)}
    assert at == {index: 0, index + 1e-9: KEPT}


def test_texts_of_no_words_are_duplicates_only_when_equal() -> None:
    assert verdicts(["()", "[]", "()"]).tolist() == [KEPT, KEPT, 0]


def test_nothing_to_judge_is_nothing_found() -> None:
    assert verdicts([]).tolist() == []
