"""Patches give the program that they describe, or say why not."""

import json
from pathlib import Path

import pytest

from exam.patches import main, patches

EXAM = Path(__file__).parents[1]
PROGRAM = """for x, y in batches:
    optimizer.zero_grad()
    loss = criterion(model(x), y)

    loss.backward()
    optimizer.step()
for x, y in test:
    total += criterion(model(x), y)

    print(total)
"""


def changed(folder: Path, changes: str) -> str:
    (folder / "sound.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "faults.patch").write_text(f"Faults.\n\n--- sound.py\n+++ sound_bad.py\n{changes}", encoding="utf-8")
    [patch] = patches(folder / "faults.patch")
    assert (patch.program, patch.name) == ("sound.py", "sound_bad.py")
    return patch.text


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ("@@\n-    optimizer.zero_grad()\n", "    optimizer.zero_grad()\n", ""),
        ("@@ -5,2 +9 @@ wrong\n \n     loss.backward()\n+    clip()\n", "backward()\n", "backward()\n    clip()\n"),
        ("@@\n\n-    loss.backward()\n+    backward(loss)\n", "loss.backward()", "backward(loss)"),  # a space was lost
        ("@@\n-for x, y in test:\n+for x, y in rest:\n\n", "test", "rest"),  # an empty line ends the patch
    ],
)
def test_a_change_stands_where_its_lines_stand(tmp_path, changes, old, new):
    assert changed(tmp_path, changes) == PROGRAM.replace(old, new)


def test_a_patch_may_have_several_changes(tmp_path):
    text = changed(tmp_path, "@@\n-    optimizer.zero_grad()\n@@\n     optimizer.step()\n+    optimizer.zero_grad()\n")
    moved = PROGRAM.replace("    optimizer.zero_grad()\n", "").replace(
        "step()\n", "step()\n    optimizer.zero_grad()\n"
    )
    assert text == moved


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            "@@\n-    optimizer.clear()\n",
            r"must stand in sound.py exactly once; found 0 times. .*\n-    optimizer.clear",
        ),
        ("@@\n \n+    print(loss)\n", "found 2 times"),
        ("@@\n+import torch\n", "found 10 times"),
        ("@@\n-optimizer.step()\n", "found 0 times"),  # whole lines, their indentation included
        ("@@\noptimizer.step()\n", "must begin with a space, `-` or `\\+`; got 'optimizer"),
        ("-    optimizer.step()\n", "a line `@@` must stand"),
        ("", "a line `@@` must stand"),
    ],
)
def test_a_patch_that_does_not_apply_says_why(tmp_path, changes, said):
    with pytest.raises(ValueError, match=rf"(?s)^faults.patch, sound_bad.py: .*{said}"):
        changed(tmp_path, changes)


def test_the_command_writes_the_programs_of_a_file(tmp_path):
    changed(tmp_path, "@@\n-    optimizer.zero_grad()\n")
    main(str(tmp_path / "faults.patch"), str(tmp_path / "whole"))
    written = {p.name: p.read_text(encoding="utf-8") for p in (tmp_path / "whole").iterdir()}
    assert written == {"sound_bad.py": PROGRAM.replace("    optimizer.zero_grad()\n", "")}


@pytest.mark.parametrize("file", sorted(EXAM.glob("*/**/*.patch")), ids=lambda f: f"{f.parent.name}/{f.name}")
def test_the_exams_patches_apply(file):
    for patch in patches(file):
        compile(patch.text, patch.name, "exec")


@pytest.mark.parametrize("folder", [p.parent for p in EXAM.glob("blind/*/answers.json")], ids=lambda f: f.name)
def test_each_faulty_program_of_a_blind_author_has_a_fixed_form(folder):
    answers = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    fixed = {(one["script"], one["fixed"]) for one in answers if one["faulty"]}
    assert {(patch.program, patch.name) for patch in patches(folder / "fixed.patch")} == fixed
