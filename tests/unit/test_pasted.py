"""Tracebacks and logs as people paste them: which exceptions they hold, and which line is the user's."""

import io

import pytest
from rich.console import Console

from trainwright.explain.answer import explain
from trainwright.explain.pasted import Frame, find_raised, users_frame

PLAIN = """\
Epoch 1: 100%|##########| 3/3
Traceback (most recent call last):
  File "/home/ada/train.py", line 31, in <module>
    main()
  File "/home/ada/train.py", line 20, in main
    loss = criterion(model(x), y)
           ^^^^^^^^^^^^^^^^^^^^^^
  File "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/loss.py", line 1179, in forward
    return F.cross_entropy(input, target)
IndexError: Target 10 is out of bounds.
"""
CHAINED = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 8, in load
    return rows["text"]
KeyError: 'eval_loss'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/ada/train.py", line 12, in <module>
    load()
ValueError: Data cardinality is ambiguous. Make sure all arrays contain the same number of samples.
"""
WORKER = """\
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    for x in loader:
  File "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py", line 633, in __next__
    data = self._next_data()
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/torch/utils/data/_utils/worker.py", line 308, in _worker_loop
    data = fetcher.fetch(index)
  File "/home/ada/rows.py", line 5, in collate
    return torch.stack(rows)
RuntimeError: stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1
"""
NOTEBOOK = """\
---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
Cell In[7], line 3
      1 trainer = Trainer(model)
      2 # go
----> 3 trainer.train()

File ~/miniconda3/lib/python3.10/site-packages/transformers/trainer.py:1885, in Trainer.train(self)
   1884     hf_hub_utils.enable_progress_bars()
-> 1885 return inner_training_loop(

ValueError: Unable to create tensor, you should probably activate truncation and/or padding
"""
OLD_NOTEBOOK = """\
RuntimeError                              Traceback (most recent call last)
<ipython-input-12-0abc> in <module>
      4 for x, y in loader:
----> 5     loss = model(x)

/usr/local/lib/python3.7/dist-packages/torch/nn/functional.py in linear(input, weight, bias)
-> 1848     return torch._C._nn.linear(input, weight, bias)

RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 3x2)
"""
COLAB = OLD_NOTEBOOK.replace("<ipython-input-12-0abc>", "[<ipython-input-12-0abc>](https://localhost:8080/#)")
WINDOWS = """\
Traceback (most recent call last):
  File "C:\\\\Users\\\\ada\\\\train.py", line 4, in <module>
    loader = iter(loader)
  File "C:\\\\Python311\\\\Lib\\\\multiprocessing\\\\spawn.py", line 132, in _main
    self = reduction.pickle.load(from_parent)
AttributeError: Can't pickle local object 'main.<locals>.<lambda>'
"""
RANKS = "".join(f"[rank1]: {line}\n" for line in PLAIN.splitlines()) + (
    "Traceback (most recent call last):\n"
    '  File "/opt/conda/bin/torchrun", line 8, in <module>\n'
    "    sys.exit(main())\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "train.py FAILED\n"
)


def answer(question: str) -> tuple[bool, str]:
    found, shown = explain(question)
    file = io.StringIO()
    Console(file=file, width=120).print(shown)
    return found, file.getvalue()


def test_a_traceback_has_one_exception_and_the_users_last_line() -> None:
    (one,) = find_raised(PLAIN)
    assert (one.type, one.message.strip()) == ("IndexError", "Target 10 is out of bounds.")
    assert len(one.frames) == 3
    assert users_frame([one]) == Frame(file="/home/ada/train.py", line=20, code="loss = criterion(model(x), y)")
    found, text = answer(PLAIN)
    assert found
    assert [line.rstrip() for line in text.splitlines()[:2]] == [
        "Raised from /home/ada/train.py:20",
        "    loss = criterion(model(x), y)",
    ]
    assert "TW401 label-out-of-range" in text


def test_a_cause_comes_before_what_it_caused_and_both_are_answered() -> None:
    assert [one.type for one in find_raised(CHAINED)] == ["KeyError", "ValueError"]
    assert users_frame(find_raised(CHAINED)) == Frame(file="/home/ada/train.py", line=8, code='return rows["text"]')
    text = answer(CHAINED)[1]
    assert text.index("Data cardinality is ambiguous") > 0
    assert text.index("KeyError: 'eval_loss'") > 0


def test_the_traceback_of_a_worker_comes_before_the_one_that_wraps_it() -> None:
    assert [one.message.split()[0] for one in find_raised(WORKER)] == ["stack", "Caught"]
    assert users_frame(find_raised(WORKER)) == Frame(file="/home/ada/rows.py", line=5, code="return torch.stack(rows)")
    text = answer(WORKER)[1]
    assert text.index("stack expects each tensor") < text.index("Caught … in DataLoader worker process")


@pytest.mark.parametrize(
    ("pasted", "frame", "rule"),
    [
        (NOTEBOOK, Frame(file="Cell In[7]", line=3, code="trainer.train()"), "TW201 ragged-batch"),
        (OLD_NOTEBOOK, Frame(file="<ipython-input-12-0abc>", line=5, code="loss = model(x)"), "TW301 layer-size-mismatch"),
        (COLAB, Frame(file="<ipython-input-12-0abc>", line=5, code="loss = model(x)"), "TW301 layer-size-mismatch"),
        (RANKS, Frame(file="/home/ada/train.py", line=20, code="loss = criterion(model(x), y)"), "TW401"),
    ],
    ids=["notebook", "old notebook", "colab", "ranks"],
)  # fmt: skip
def test_other_forms_of_tracebacks_are_read(pasted: str, frame: Frame, rule: str) -> None:
    assert users_frame(find_raised(pasted)) == frame
    found, text = answer(pasted)
    assert found
    assert rule in text


def test_a_traceback_of_windows_is_read() -> None:
    frame = users_frame(find_raised(WINDOWS))
    assert frame is not None and frame.file.endswith("train.py") and frame.line == 4
    assert "Can't pickle local object" in answer(WINDOWS)[1]


def test_what_launchers_add_comes_last() -> None:
    text = answer(RANKS)[1]
    assert text.index("label-out-of-range") < text.index("ChildFailedError")


def test_a_log_without_a_traceback_is_searched_for_exceptions_and_warnings() -> None:
    log = "step 1 loss 0.3\n/x/y.py:12: UserWarning: Detected call of lr_scheduler.step() before optimizer.step()\nstep 2\n"
    assert [one.type for one in find_raised(log)] == ["UserWarning"]
    assert "schedule-before-optimizer" in answer(log)[1]


def test_a_long_log_is_not_one_message() -> None:
    """No quotation starts in one line and ends in another that has nothing to do with it."""
    lines = ["Unable to allocate", *["epoch"] * 20, "for an array with shape"]
    assert not answer("\n".join(lines))[0]
    assert answer(" ".join([lines[0], "3 GiB", lines[-1]]))[0]


def test_an_unknown_error_is_said_to_be_unknown_with_its_place() -> None:
    found, text = answer(PLAIN.replace("IndexError: Target 10 is out of bounds.", "spam.Unheard: of this"))
    assert not found
    assert "Raised from /home/ada/train.py:20" in text
    assert "quotes this Unheard" in " ".join(text.split())
    assert "trainwright check SCRIPT" in " ".join(text.split())


def test_a_traceback_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    cut = PLAIN[: PLAIN.index("IndexError")]
    (one,) = find_raised(cut)
    assert one.type == ""
    assert users_frame([one]) is not None
    assert not answer(cut)[0]


def test_a_check_that_failed_on_the_gpu_is_read_from_the_lines_above_the_traceback() -> None:
    kernel = (
        "Indexing.cu:1146: indexSelectLargeIndex: block: [170,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
    )
    pasted = kernel * 3 + PLAIN.replace(
        "IndexError: Target 10 is out of bounds.", "RuntimeError: device-side assert triggered"
    )
    assert [one.type for one in find_raised(pasted)] == ["", "RuntimeError"]
    text = answer(pasted)[1]
    assert text.index("srcIndex < srcSelectDimSize") < text.index("device-side assert triggered")


def test_an_exception_that_was_ignored_is_not_the_error() -> None:
    noise = (
        "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\n"
        'Traceback (most recent call last):\n  File "a.py", line 1, in b\n    c\nAssertionError: can only test a child process\n'
    )
    assert [one.type for one in find_raised(noise + PLAIN)] == ["IndexError"]


@pytest.mark.parametrize(
    "text", ["", "\n\n", "Traceback (most recent call last):", "\x00", "Traceback (most recent call last):\n\n\n"]
)
def test_nothing_is_made_of_nothing(text: str) -> None:
    assert not answer(text)[0]
    assert users_frame(find_raised(text)) is None
