"""The n-gram model and the most frequent rests of lines, against slow and obvious ones."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_evaluating import tokenizer_of, tokens_of
from trainwright_lm.evaluation.baselines import (
    BACKOFF,
    NgramDecoder,
    decode_stream,
    fit_ngrams,
    frequent_completer,
    last_words,
    line_completer,
    most_frequent_rest,
    sampled_stream,
)
from trainwright_lm.evaluation.cuts import Cut

LINES = "plt.show()\nplt.plot(x, y)\nplt.show()\nx = plt.figure()\n"


def cut_after(text: str, rest: str = "?", prompt_end: str = "") -> Cut:
    return Cut(document=0, text=text + rest, position=len(text), prompt_end=prompt_end)


def slow_score(stream: list[int], context: tuple[int, ...], token: int) -> float:
    """Stupid backoff as its paper writes it, over windows that have all four tokens before them."""
    if not context:
        return stream.count(token) / len(stream)
    followers = [stream[i] for i in range(4, len(stream)) if tuple(stream[i - len(context) : i]) == context]
    if token in followers:
        return followers.count(token) / len(followers)
    return BACKOFF * slow_score(stream, context[1:], token)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=5, max_size=60), st.lists(st.integers(0, 4), max_size=4))
def test_scores_are_those_of_stupid_backoff(stream, context) -> None:
    scores = fit_ngrams(np.array(stream, dtype=np.uint16), vocabulary_size=5).scores(context)
    assert scores == pytest.approx([slow_score(stream, tuple(context), token) for token in range(5)])


def test_only_the_last_four_tokens_count() -> None:
    model = fit_ngrams(np.arange(100) % 7, vocabulary_size=7)
    assert model.order == 5
    assert np.array_equal(model.scores([1, 1, 2, 3, 4, 5]), model.scores([6, 0, 2, 3, 4, 5]))
    assert model.scores([2, 3, 4, 5]).argmax() == 6


@pytest.mark.parametrize(
    ("vocabulary_size", "order"), [(1 << 16, 5), ((1 << 16) + 1, 4), (1 << 21, 4), ((1 << 21) + 1, 3)]
)
def test_large_vocabularies_look_back_less_and_stay_right(vocabulary_size, order) -> None:
    top = vocabulary_size - 1
    stream = np.array([top, 2, top, top, 1, 3] * 5, dtype=np.uint32)
    model = fit_ngrams(stream, vocabulary_size=vocabulary_size)
    assert model.order == order
    assert model.scores([top, top]).argmax() == 1
    assert model.scores([2, top]).argmax() == top


def test_a_stream_too_short_for_a_context_is_counted_alone() -> None:
    model = fit_ngrams(np.array([3, 3, 1]), vocabulary_size=4)
    assert model.scores([3]) == pytest.approx([0, BACKOFF / 3, 0, BACKOFF * 2 / 3])
    assert not fit_ngrams(np.array([], dtype=np.uint16), vocabulary_size=4).scores([3]).any()


def test_the_ngram_model_completes_a_line_it_has_seen_up_to_its_end() -> None:
    text = "total = price * count\nprint(total)\n" * 20
    tokenizer = tokenizer_of([text])
    model = fit_ngrams(np.array(tokenizer.encode(text)), vocabulary_size=tokenizer.vocabulary_size)
    complete = line_completer(NgramDecoder(model), tokenizer, limit=40)
    for typed in ("total = ", "total = pri", "print(t", "print(total)\nto"):  # some end inside of a token
        line = typed.split("\n")[-1]
        rest = next(one for one in text.split("\n") if one.startswith(line))[len(line) :]
        assert complete(cut_after(typed)).rstrip("\n") == rest


def test_the_ngram_model_stops_after_its_limit_and_at_the_end_token() -> None:
    tokenizer = tokenizer_of(["a b c d e f g h"])
    letters = tokenizer.encode(" a b c" * 30)
    model = fit_ngrams(np.array(letters), vocabulary_size=tokenizer.vocabulary_size)
    assert complete_length(model, tokenizer, " a b", 3) <= 3
    ended = fit_ngrams(
        np.array([*tokenizer.encode("x y"), tokenizer.end_id] * 30), vocabulary_size=tokenizer.vocabulary_size
    )
    assert line_completer(NgramDecoder(ended), tokenizer, limit=50)(cut_after("x y")) == ""


def complete_length(model, tokenizer, typed: str, limit: int) -> int:
    return len(tokenizer.encode(line_completer(NgramDecoder(model), tokenizer, limit=limit)(cut_after(typed))))


def test_a_sample_holds_whole_documents_within_its_budget(tmp_path) -> None:
    texts = [f"x{n} = {'y' * n}\n" for n in range(20)]
    tokenizer = tokenizer_of(texts)
    file = tokens_of(tmp_path / "train.bin", texts, tokenizer)
    stream = sampled_stream(file, token_budget=100, seed=3)
    documents = decode_stream(stream, tokenizer, byte_budget=10**6).decode().split("\n\n")[:-1]
    assert 0 < len(stream) <= 100 and len(documents) > 1
    assert {f"{one}\n" for one in documents} <= set(texts)
    assert np.array_equal(stream, sampled_stream(file, token_budget=100, seed=3))
    assert not np.array_equal(stream, sampled_stream(file, token_budget=100, seed=4))
    assert np.array_equal(np.sort(sampled_stream(file, token_budget=10**6, seed=0)), np.sort(file.tokens))
    assert len(sampled_stream(file, token_budget=1, seed=0)) > 1  # one document all the same
    assert len(decode_stream(stream, tokenizer, byte_budget=17)) == 17


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        ("plt.", "show()"),
        ("plt.p", "lot(x, y)"),
        ("x", " = plt.figure()"),  # not the one in `plot(x, y)`, met later: of several the first met
        ("lt.", ""),  # inside of a word
        ("absent", ""),
        (")", ""),  # only ends of lines follow
    ],
)
def test_the_most_frequent_rest_of_a_line_is_found(words, rest) -> None:
    expected = {"x": ", y)"}.get(words, rest)
    assert most_frequent_rest(LINES.encode(), words) == expected


WORDS = st.sampled_from(["ax", "b", "ü", "."])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["ax", "b", "ü", ".", " ", "\n", "("]), max_size=60).map("".join), WORDS)
def test_the_most_frequent_rest_is_that_of_a_slow_search(text, words) -> None:
    before = r"(?<!\w)" if words != "." else ""
    rests = [m[1].rstrip(" ") for m in re.finditer(f"{before}{re.escape(words)}(?=([^\n]*))", text)]
    common = Counter(rest for rest in rests if rest).most_common(1)
    assert most_frequent_rest(text.encode(), words) == (common[0][0] if common else "")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("    plt.sc", ["plt.sc", "sc"]),
        ("x = f(a, ", ["a, ", ", "]),
        ("x = ", ["x = ", "= "]),
        ("(", ["("]),
        ("return größ", ["größ"]),
    ],
)
def test_a_cut_is_looked_up_by_its_last_words(typed, words) -> None:
    assert list(last_words(cut_after(typed))) == words


def test_a_call_is_looked_up_by_what_makes_it_one() -> None:
    assert list(last_words(cut_after("y = model.fit(", prompt_end=".fit("))) == [".fit(", "("]


def test_the_completer_falls_back_to_the_last_sign_and_then_to_nothing() -> None:
    cuts = [cut_after(typed) for typed in ("a = plt.", "a = unknown.", "a = f[")]
    complete = frequent_completer(LINES.encode())
    assert [complete(cut) for cut in cuts] == ["show()", "show()", ""]
