"""Text to ids and back: round trips, both encoders alike, control tokens in text, files that are refused."""

import json
import re
import warnings
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers

from trainwright.errors import ReadError
from trainwright_lm.tokens.tokenizer import _PART_CHARACTERS, END, PIECES, Tokenizer, load_tokenizer, train_tokenizer

CODE = [file.read_text(encoding="utf-8") for file in sorted(Path(__file__).parents[1].glob("*/test_*.py"))]
ALPHABET = [*" \n\t\r_.('\"#09aZ", "\r\n", "    ", "def ", "self._", "é", "漢", "🙂", "\x00", "\u00a0", "\u2028", END]
any_text = st.one_of(st.text(), st.lists(st.sampled_from(ALPHABET)).map("".join))


@pytest.fixture(scope="module")
def fast() -> Tokenizer:
    return train_tokenizer(CODE, vocabulary_size=1500, byte_budget=200_000)


@pytest.fixture(scope="module")
def slow(fast) -> Tokenizer:
    """The same tokenizer without tiktoken."""
    return Tokenizer(fast._backend, fast._bytes, None)


@pytest.fixture(scope="module")
def saved(fast, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    fast.save(file)
    return file


def changed(saved: Path, folder: Path, change) -> Path:
    """A copy of the tokenizer's file with its layout changed."""
    layout = json.loads(saved.read_text(encoding="utf-8"))
    change(layout)
    file = folder / "changed.json"
    file.write_text(json.dumps(layout), encoding="utf-8")
    return file


@given(text=any_text)
def test_any_text_comes_back_and_both_encoders_agree_and_no_id_is_the_end(fast, slow, text) -> None:
    ids = fast.encode(text)
    assert fast.decode(ids) == text
    assert fast.decode_bytes(ids) == text.encode()
    assert ids == slow.encode(text) == fast.encode_array(text).tolist() == slow.encode_array(text).tolist()
    assert fast.end_id not in ids


@given(text=st.text(st.characters(categories=["Cs", "L", "Zs"])))
def test_lone_surrogates_become_the_replacement_character(fast, slow, text) -> None:
    expected = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    ids = fast.encode(text)
    assert fast.decode(ids) == expected
    assert ids == slow.encode(text) == fast.encode_array(text).tolist()


def test_surrogates_in_pairs_are_the_character_they_stand_for(fast) -> None:
    assert fast.decode(fast.encode("a\ud83d\ude42b\ud83d")) == "a🙂b\ufffd"


def test_python_is_encoded_by_both_alike_whole_files_at_once(fast, slow) -> None:
    assert fast._encoding is not None
    assert [*map(fast.encode, CODE)] == [*map(slow.encode, CODE)]


def test_threads_change_nothing(fast) -> None:
    assert [ids.tolist() for ids in fast.encode_arrays(CODE, threads=3)] == [*map(fast.encode, CODE)]


@given(text=any_text)
def test_every_character_lies_in_a_piece_and_the_backend_cuts_at_the_same_places(fast, text) -> None:
    pieces = re.findall(PIECES, text)
    assert "".join(pieces) == text
    cut = fast._backend.pre_tokenizer.pre_tokenize_str(text)
    assert [text[start:end] for _, (start, end) in cut] == pieces


def test_lines_words_and_marks_are_cut_apart() -> None:
    code = "def f(x):\n\n    df  = pd.read_csv(self._path, 12345)  # don't\r\n\tx.__init__()"
    assert "|".join(re.findall(PIECES, code)) == (
        "def| f|(|x|):|\n\n    |df|  |=| pd|.|read|_csv|(|self|.|_path|,| 123|45|)|  |#| don|'|t|\r\n\t|x|.|__init|__|()"
    )


def test_every_byte_has_a_token_and_the_end_is_the_last_id(fast) -> None:
    tokens = [fast.token_bytes(id) for id in range(fast.vocabulary_size)]
    assert {bytes([byte]) for byte in range(256)} <= set(tokens)
    assert len(set(tokens)) == len(tokens) == 1500
    assert fast.end_id == 1499 and fast.token_bytes(fast.end_id) == b""


def test_a_control_token_in_text_stays_text_also_in_training() -> None:
    trained = train_tokenizer([f"x = '{END}'\n"] * 500, vocabulary_size=400, byte_budget=1_000_000)
    assert END.encode() not in {trained.token_bytes(id) for id in range(trained.vocabulary_size)}
    for tokenizer in (trained, Tokenizer(trained._backend, trained._bytes, None)):
        ids = tokenizer.encode(END + "a" + END)
        assert trained.end_id not in ids and tokenizer.decode(ids) == END + "a" + END
        assert [*map(tokenizer.encode, [END + "a" + END])] == [ids]


def test_a_saved_tokenizer_gives_the_same_ids_and_leaves_no_other_file(fast, saved) -> None:
    loaded = load_tokenizer(saved)
    assert loaded._encoding is not None
    assert (loaded.vocabulary_size, loaded.end_id) == (fast.vocabulary_size, fast.end_id)
    assert [*map(loaded.encode, CODE)] == [*map(fast.encode, CODE)]
    assert [file.name for file in saved.parent.iterdir()] == ["tokenizer.json"]


def test_transformers_opens_the_file_and_gives_the_same_ids(fast, saved) -> None:
    from transformers import PreTrainedTokenizerFast

    theirs = PreTrainedTokenizerFast(tokenizer_file=str(saved), eos_token=END)
    assert (len(theirs), theirs.eos_token_id) == (fast.vocabulary_size, fast.end_id)
    texts = [text for text in CODE if END not in text]
    assert theirs(texts)["input_ids"] == [*map(fast.encode, texts)]
    assert theirs.decode(fast.encode("plt.scatter( x )")) == "plt.scatter( x )"


def test_training_stops_reading_at_the_budget() -> None:
    read = []

    def texts():
        for text in ["abcabc\n", "abdabd\n", "éé" * 4, "never\n"]:
            read.append(text)
            yield text

    budgeted = train_tokenizer(texts(), vocabulary_size=300, byte_budget=17)
    assert read == ["abcabc\n", "abdabd\n", "éé" * 4]
    # 14 bytes, then three of the "é"s' two bytes each: the half of a character is left out.
    whole = train_tokenizer(["abcabc\n", "abdabd\n", "é"], vocabulary_size=300, byte_budget=99)
    assert budgeted._backend.to_str() == whole._backend.to_str()


def test_a_long_text_is_trained_on_as_many_texts_of_its_parts_would_be() -> None:
    part = ("x = y\n" * 11_000)[:_PART_CHARACTERS]
    long = train_tokenizer([part + part + "z"], vocabulary_size=300, byte_budget=1 << 30)
    parts = train_tokenizer([part, part, "z"], vocabulary_size=300, byte_budget=1 << 30)
    assert long._backend.to_str() == parts._backend.to_str()


def test_too_little_text_gives_a_smaller_vocabulary_that_is_stated() -> None:
    tokenizer = train_tokenizer(["ab ab"], vocabulary_size=50_000, byte_budget=1000)
    assert tokenizer.vocabulary_size == 258  # bytes, "ab", the end; " ab" was seen once
    assert tokenizer.end_id == 257
    assert tokenizer.decode(tokenizer.encode("ab ab ñ")) == "ab ab ñ"


def test_the_least_vocabulary_is_bytes_and_the_end() -> None:
    tokenizer = train_tokenizer(CODE[:3], vocabulary_size=257, byte_budget=1000)
    assert tokenizer.vocabulary_size == 257
    assert len(tokenizer.encode("naïve")) == 6


@settings(max_examples=25)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_refused(saved, tmp_path_factory, share) -> None:
    whole = saved.read_bytes()
    file = tmp_path_factory.mktemp("truncated") / "tokenizer.json"
    file.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ReadError, match=r"readable tokenizer\.json"):
        load_tokenizer(file)


def without_end(layout) -> None:
    layout["added_tokens"] = []


def without_a_byte(layout) -> None:
    del layout["model"]["vocab"]["Ġ"]


def with_text_for_tokens(layout) -> None:
    layout["model"]["vocab"]["漢字"] = 1498


def without_a_merged_token(layout) -> None:
    del layout["model"]["vocab"][next(reversed(layout["model"]["vocab"]))]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda layout: layout.clear(), "no model"),
        (lambda layout: layout["model"].update(type="WordPiece"), "WordPiece"),
        (lambda layout: layout["model"].update(dropout=0.1), "dropout"),
        (lambda layout: layout.update(normalizer={"type": "NFC"}), "normalizer"),
        (lambda layout: layout.update(pre_tokenizer={"type": "Whitespace"}), "regular expression"),
        (without_end, "no such token"),
        (without_a_byte, "single-byte"),
        (with_text_for_tokens, "not written as bytes"),
        (without_a_merged_token, "cannot read it"),
    ],
)
def test_another_kind_of_tokenizer_is_refused_with_the_reason(saved, tmp_path, change, said) -> None:
    file = changed(saved, tmp_path, change)
    with pytest.raises(ReadError, match=said):
        load_tokenizer(file)


@pytest.mark.parametrize("content", [b"[]", b"\xff\xfe", b"3"])
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path, content) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(ReadError):
        load_tokenizer(file)
    with pytest.raises(ReadError, match="readable"):
        load_tokenizer(tmp_path / "missing.json")


def test_limits_and_padding_that_another_program_left_in_the_file_have_no_effect(fast, saved, tmp_path) -> None:
    def limit(layout) -> None:
        layout["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}

    loaded = load_tokenizer(changed(saved, tmp_path, limit))
    slow = Tokenizer(loaded._backend, loaded._bytes, None)
    assert slow.encode(CODE[0]) == loaded.encode(CODE[0]) == fast.encode(CODE[0])


def by_hand(merges: list[tuple[str, str]], **cutter) -> tokenizers.Tokenizer:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: id for id, token in enumerate([*letters, *("".join(merge) for merge in merges)])}
    backend = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, **cutter)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([END])
    return backend


def test_a_tokenizer_cut_as_gpt2_is_loaded_with_the_fast_encoder(tmp_path) -> None:
    file = tmp_path / "tokenizer.json"
    backend = by_hand([("a", "b"), ("Ġ", "ab"), ("'", "s")])
    backend.save(str(file))
    loaded = load_tokenizer(file)
    assert loaded._encoding is not None
    text = "ab  ab's ab\n ab"
    assert loaded.encode(text) == backend.encode(text).ids


def test_a_million_spaces_are_too_many_for_no_tokenizer(fast, tmp_path) -> None:
    file = tmp_path / "tokenizer.json"
    by_hand([("Ġ", "Ġ")]).save(str(file))
    text = "x" + " " * 1_000_001 + "x"
    for tokenizer in (fast, load_tokenizer(file)):
        assert tokenizer._encoding is not None
        ids = tokenizer.encode_array(text)
        assert tokenizer.decode_bytes(ids.tolist()) == text.encode()
        assert len(ids) < 600_000


def test_merges_that_tiktoken_does_not_reproduce_fall_back_with_a_warning(tmp_path) -> None:
    """b and c merge first, so that "abc" is never reached by a merge; tiktoken looks for whole pieces first."""
    file = tmp_path / "tokenizer.json"
    backend = by_hand([("b", "c"), ("a", "b"), ("ab", "c")])
    backend.save(str(file))
    with pytest.warns(UserWarning, match="tiktoken gives different ids"):
        loaded = load_tokenizer(file)
    assert loaded._encoding is None
    assert [loaded.token_bytes(id) for id in loaded.encode("abc")] == [b"a", b"bc"]
    assert loaded.encode_array("abc").tolist() == loaded.encode("abc") == backend.encode("abc").ids


def test_words_added_to_the_vocabulary_fall_back_too(saved, tmp_path) -> None:
    backend = tokenizers.Tokenizer.from_file(str(saved))
    backend.add_tokens(["self.x"])
    file = tmp_path / "added.json"
    backend.save(str(file))
    with pytest.warns(UserWarning, match="tiktoken gives different ids"):
        loaded = load_tokenizer(file)
    assert loaded.token_bytes(loaded.encode("aself.xb")[1]) == b"self.x"
    assert loaded.decode(loaded.encode("aself.xb")) == "aself.xb"


def test_a_tokenizer_of_our_own_never_warns(saved) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_tokenizer(saved)
        train_tokenizer(CODE[:5], vocabulary_size=600, byte_budget=50_000)
