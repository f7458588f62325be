"""`explain` answers a name, a code, an error message, or words."""

import io

from rich.console import Console

from trainwright.core.rule import load_rules
from trainwright.explain import explain, mentioning, near


def answer(question: str) -> tuple[bool, str]:
    found, shown = explain(question)
    file = io.StringIO()
    Console(file=file, width=100).print(shown)
    return found, " ".join(file.getvalue().split())


def test_a_word_lists_the_rules_that_mention_it_those_named_for_it_first() -> None:
    names = [r.name for r in mentioning("padding")]
    assert names[:2] == ["unmasked-padding", "mostly-padding"]
    assert "ragged-batch" in names
    found, text = answer("padding")
    assert found
    assert text.startswith(f"{len(names)} rules mention padding")
    assert "TW201 ragged-batch error batch" in text


def test_all_of_several_words_must_be_mentioned_in_whatever_form() -> None:
    assert [r.name for r in mentioning("Learning Rates")][:2] == [
        "excessive-learning-rate",
        "negligible-learning-rate",
    ]
    assert {r.code for r in mentioning("tw4")} == {r.code for r in load_rules() if r.code.startswith("TW4")}
    assert mentioning("padding spaghetti") == []


def test_a_word_that_one_rule_mentions_prints_its_page() -> None:
    only = [r for r in load_rules() if [r] == mentioning(r.name.replace("-", " "))]
    assert only
    found, text = answer(only[0].name.replace("-", " "))
    assert found
    assert "Why it matters" in text


def test_a_long_text_is_an_error_message_and_its_words_are_not_looked_for() -> None:
    assert mentioning("the loss of this batch with these labels and weights") == []


def test_a_name_that_is_misspelt_is_answered_with_those_near_to_it() -> None:
    assert near("raged batch") == ["ragged-batch"]
    found, text = answer("renamed-arguement")
    assert not found
    assert "Near to it: renamed-argument." in text
    assert "Near" not in answer("zzz")[1]
    assert not answer("")[0]
