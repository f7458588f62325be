"""Edits change what they name and nothing else."""

from trainwright.core import RemoveKeyword, RenameKeyword, SetKeyword
from trainwright.fixes.edits import diff
from trainwright.fixes.rewriting import apply
from trainwright.seams.scripts.edited_files import standing_in

SOURCE = """\
model = load(path)  # a comment
args = TrainingArguments(
    "out",
    evaluation_strategy="epoch",  # kept
    learning_rate=1e-1,
)
trainer = Trainer(model, args, tokenizer=tokenizer)
"""


def test_a_keyword_is_renamed_in_its_call_only():
    after = apply(SOURCE, [RenameKeyword("x.py", 4, "evaluation_strategy", "eval_strategy")])
    assert after == SOURCE.replace("evaluation_strategy", "eval_strategy")


def test_a_keyword_gets_another_value_and_comments_stay():
    after = apply(SOURCE, [SetKeyword("x.py", 2, "learning_rate", "1e-3")])
    assert after == SOURCE.replace("1e-1", "1e-3")


def test_a_diff_is_of_the_text_that_stands_in_for_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "x.py"
    file.write_text(SOURCE)
    with standing_in({str(file.resolve()): f"import os\n\n{SOURCE}"}):
        moved = diff([SetKeyword("x.py", 7, "learning_rate", "1e-3")])
    assert "@@ -6,3 +6,3 @@" in moved and "@@ -4,3 +4,3 @@" in diff([SetKeyword("x.py", 5, "learning_rate", "1e-3")])


def test_a_keyword_is_added_on_a_line_of_its_own_where_the_others_are():
    after = apply(SOURCE, [SetKeyword("x.py", 3, "seed", "1", function="TrainingArguments")])
    assert after == SOURCE.replace("learning_rate=1e-1,\n", "learning_rate=1e-1,\n    seed=1,\n")


def test_a_keyword_is_added_behind_the_last_in_a_call_of_one_line():
    after = apply(SOURCE, [SetKeyword("x.py", 1, "num_labels", "3", function="load")])
    assert after == SOURCE.replace("load(path)", "load(path, num_labels=3)")


def test_an_argument_that_is_given_without_its_name_is_exchanged_where_it_stands():
    edit = SetKeyword("x.py", 1, "loss", "Other()", function="compile", position=1)
    assert apply('m.compile("adam", "mse", metrics=[a])\n', [edit]) == 'm.compile("adam", Other(), metrics=[a])\n'
    assert apply('m.compile("adam", loss="mse")\n', [edit]) == 'm.compile("adam", loss=Other())\n'
    assert apply("m.compile(*given)\n", [edit]) == "m.compile(*given, loss=Other())\n"


def test_a_class_may_be_named_by_the_end_of_its_name():
    """Seq2SeqTrainingArguments takes what TrainingArguments takes."""
    source = SOURCE.replace("TrainingArguments", "Seq2SeqTrainingArguments")
    after = apply(source, [SetKeyword("x.py", 2, "learning_rate", "1e-3", function="TrainingArguments")])
    assert after == source.replace("1e-1", "1e-3")
    assert apply(SOURCE, [SetKeyword("x.py", 1, "num_labels", "3", function="oad")]) is None


def test_edits_of_several_lines_are_made_from_below_so_that_no_line_moves():
    removed = RemoveKeyword("x.py", 4, "evaluation_strategy")
    after = apply(SOURCE, [removed, RenameKeyword("x.py", 7, "tokenizer", "processing_class")])
    assert after == SOURCE.replace('    evaluation_strategy="epoch",  # kept\n', "").replace(
        "tokenizer=", "processing_class="
    )


def test_a_keyword_is_removed():
    after = apply(SOURCE, [RemoveKeyword("x.py", 7, "tokenizer")])
    assert after == SOURCE.replace("args, tokenizer=tokenizer", "args")


def test_brackets_and_comments_stay_where_they_are():
    source = "m = f(\n    a,\n    b=(1),  # é\n)\nn = g(a, b=(1))\nh(b=(1),)\n"
    added = apply(source, [SetKeyword("x.py", 2, "c", "2", function="f")])
    assert added == source.replace("# é\n", "# é\n    c=2,\n")
    assert apply(source, [RemoveKeyword("x.py", 3, "b")]) == source.replace(",\n    b=(1)", "")
    assert apply(source, [SetKeyword("x.py", 5, "c", "2", function="g")]) == source.replace("a, b=(1)", "a, b=(1), c=2")
    assert apply(source, [RemoveKeyword("x.py", 6, "b")]) == source.replace("h(b=(1),)", "h()")
    assert apply("sum(x for x in y)\n", [SetKeyword("x.py", 1, "c", "2", function="sum")]) is None


def test_an_edit_that_does_not_fit_changes_nothing():
    assert apply(SOURCE, [SetKeyword("x.py", 1, "num_labels", "3", function="from_pretrained")]) is None
    assert apply(SOURCE, [RenameKeyword("x.py", 1, "evaluation_strategy", "eval_strategy")]) is None
    assert apply("def broken(:\n", [RemoveKeyword("x.py", 1, "x")]) is None


def test_the_diff_of_several_edits_is_one_text(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(SOURCE)
    text = diff(
        [
            RenameKeyword(str(file), 4, "evaluation_strategy", "eval_strategy"),
            SetKeyword(str(file), 2, "learning_rate", "1e-3"),
        ]
    )
    assert text is not None
    assert '-    evaluation_strategy="epoch",  # kept' in text
    assert "+    learning_rate=1e-3," in text


def test_a_file_that_is_gone_has_no_diff():
    assert diff([RemoveKeyword("/nowhere/x.py", 1, "x")]) is None
