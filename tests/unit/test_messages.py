"""The table of error messages: every wording is found, the more specific one first, and its rules exist."""

import re
import subprocess
import sys

import pytest

from trainwright.core.quotations import fixed_length
from trainwright.explain.answer import HANDFUL, rank_quotes
from trainwright.frameworks.messages import best, load_messages, matches
from trainwright.frameworks.messages.known import KnownMessage, read_entries
from trainwright.registry import load_rules

ENTRIES = load_messages()
TEXTS = [(known, text) for known in ENTRIES for text in known.texts]
RULES = {rule.name: rule for rule in load_rules()}
QUOTED = {text for rule in RULES.values() for text in rule.quotations}


def found(known: KnownMessage, message: str) -> None:
    match = best(known.type, message)
    assert match is not None and match.known is known


@pytest.mark.parametrize(("known", "text"), TEXTS, ids=lambda one: one[:50] if isinstance(one, str) else "")
def test_every_text_is_found_by_itself_and_filled_in(known: KnownMessage, text: str) -> None:
    found(known, text)
    found(known, text.replace("…", "torch.Size([8, 3]) of 'layer.0'"))
    found(known, f"{text.replace('…', '17')}, and some more words.\nOn a second line.")


@pytest.mark.parametrize("known", ENTRIES, ids=lambda known: known.texts[0][:50])
def test_every_entry_says_something_and_names_rules_that_exist(known: KnownMessage) -> None:
    assert set(known.rules) <= set(RULES)
    assert len(set(known.rules)) == len(known.rules)
    assert 60 < len(known.paragraph) < 900
    assert known.paragraph.endswith(".")


def test_no_text_is_there_twice_or_too_short_to_be_one_message() -> None:
    texts = [text for _, text in TEXTS]
    assert len(set(texts)) == len(texts)
    assert [text for known, text in TEXTS if fixed_length(text) < 10 and not known.type] == []


def test_the_table_holds_many_texts_that_no_rule_quotes() -> None:
    assert len({text for _, text in TEXTS} - QUOTED) >= 400


@pytest.mark.parametrize("text", sorted(QUOTED))
def test_a_rule_that_quotes_a_message_is_still_among_the_first_answers(text: str) -> None:
    message = text.replace("…", "17")
    shown = [hit.what for hit in rank_quotes(message, [])[:HANDFUL]]
    assert any(rule in shown for rule in RULES.values() if text in rule.quotations)


def test_the_longest_quotation_comes_first() -> None:
    specific = matches("TypeError", "Trainer.__init__() got an unexpected keyword argument 'tokenizer'")
    assert specific[0].text == "Trainer.__init__() got an unexpected keyword argument 'tokenizer'"
    hits = rank_quotes("IndexError: Target -1 is out of bounds.", [])
    assert hits[0].what is RULES["unignored-labels"]
    assert [hit.length for hit in hits] == sorted((hit.length for hit in hits), reverse=True)


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("No gradients provided for any variable: (['dense/kernel:0'],).", "labels-inside-inputs"),
        ("zero-dimensional tensor (at position 0) cannot be concatenated", "reshape(1)"),
        ("Blas GEMM launch failed : a.shape=(64, 784)", "nvidia-smi"),
    ],
)
def test_a_message_of_a_course_leads_to_the_cause_it_has_there(said: str, word: str) -> None:
    match = best("", said)
    assert match is not None and word in f"{match.known.paragraph} {match.known.rules}"


def test_an_error_that_passes_on_another_comes_after_it() -> None:
    said = "Exception encountered when calling Sequential.call().\n\n\x1b[1mInput 0 of layer 'dense' is incompatible with the layer"
    assert [match.known.wraps for match in matches("ValueError", said)] == [False, True]


def test_another_type_of_exception_is_another_error() -> None:
    assert best("numpy.exceptions.AxisError", "axis 1 is out of bounds for array of dimension 1") is not None
    assert best("ValueError", "axis 1 is out of bounds for array of dimension 1") is None
    assert best("", "axis 1 is out of bounds for array of dimension 1") is not None
    assert best("KeyError", "'eval_loss'").text == "KeyError: 'eval_loss'"
    assert best("AttributeError", "'eval_loss'") is None


@pytest.mark.parametrize("message", ["", " ", "…", "all went well", "Epoch 3: loss 0.1", "`", "x" * 100_000])
def test_what_is_no_known_error_is_not_answered(message: str) -> None:
    assert best("", message) is None
    assert best("RuntimeError", message) is None


def test_all_parts_of_an_entry_are_read() -> None:
    text = """# Title

- `first … wording`
- `` second `wording` ``

It means
this.

Type: KeyError. Passes on another error. Related rules: empty-dataset,
ragged-batch.

- `third wording`

It means that.
"""
    assert read_entries("one.md", text) == [
        KnownMessage(
            texts=("first … wording", "second `wording`"),
            paragraph="It means this.",
            rules=("empty-dataset", "ragged-batch"),
            type="KeyError",
            wraps=True,
        ),
        KnownMessage(texts=("third wording",), paragraph="It means that."),
    ]


ENTRY = "# Title\n\n- `a wording`\n- `another`\n\nIt means\nthis.\n\nRelated rules: empty-dataset.\n"


@pytest.mark.parametrize(
    ("right", "wrong", "line", "must"),
    [
        ("# Title\n", "\n", 1, "begin with its title"),
        ("- `a wording`\n- `another`\n\n", "", 3, "begin with its wordings"),
        ("- `another`", "- another", 4, "a wording must read"),
        ("- `another`", "- `another `one``", 4, "a wording must read"),
        ("- `another`\n\n", "- `another`\n", 5, "a wording must read"),
        ("It means\nthis.\n\n", "", 3, "must have a paragraph"),
        ("It means\nthis.\n\nRelated rules: empty-dataset.", "", 3, "must have a paragraph"),
        ("this.\n\nRelated rules", "this.\n- `b`\n\nRelated rules", 8, "must not begin like a list"),
        ("this.", "1) this.", 7, "must not begin like a list"),
        ("Related rules: empty-dataset.", "Related rules: empty-dataset", 9, "may have only"),
        ("Related rules: empty-dataset.", "Rules: empty-dataset.", 9, "may have only"),
        ("this.", "this.\n\nAnd that.", 11, "begin with its wordings"),
    ],
)
def test_the_error_on_a_malformed_entry_names_the_line_and_what_must_hold(
    right: str, wrong: str, line: int, must: str
) -> None:
    assert len(read_entries("one.md", ENTRY)) == 1 and right in ENTRY
    with pytest.raises(ValueError, match=rf"^one\.md:{line}: .*{re.escape(must)}.*; got "):
        read_entries("one.md", ENTRY.replace(right, wrong))


def test_an_empty_file_is_malformed() -> None:
    with pytest.raises(ValueError, match=r"^one\.md:1: .*title"):
        read_entries("one.md", "")


def test_a_command_that_meets_no_error_reads_no_entry() -> None:
    code = """
from trainwright import cli, output
from trainwright.frameworks import messages
try:
    cli.main()
except SystemExit:
    pass
print("read:", messages.load_messages.cache_info().currsize)
"""
    run = [sys.executable, "-c", code, "check", "--help"]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert "--budget" in said and said.endswith("read: 0\n")
