"""`%load_ext trainwright` and `%%check`: in an interactive shell and in a kernel."""

import os
from pathlib import Path

import pytest
from test_notebooks import DATA, HEALTHY, MODEL, UNCLEARED

from checks import said
from trainwright.core import Report

pytestmark = pytest.mark.slow


@pytest.fixture
def shell(tmp_path, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    one = InteractiveShell.instance(config=config)
    one.run_cell("%load_ext trainwright", store_history=True)
    yield one
    InteractiveShell.clear_instance()


def ran(shell, text):
    return shell.run_cell(text, store_history=True)


def test_a_cell_is_run_with_the_users_variables_and_leaves_them_alone(shell):
    ran(shell, DATA)
    ran(shell, MODEL)
    weights = shell.user_ns["model"][0].weight.detach().clone()
    before = set(shell.user_ns)
    report = ran(shell, f"%%check --budget 30\nn = 1\n{UNCLEARED}\nafter = 1").result
    assert isinstance(report, Report)
    first = report.first_cause
    assert first is not None and first.name == "uncleared-gradients", said(report)
    assert str(first.where) == "In [4]:6"
    assert not {name for name in set(shell.user_ns) - before if not name.startswith("_")}
    model, optimizer = shell.user_ns["model"], shell.user_ns["optimizer"]
    assert (weights == model[0].weight).all() and model[0].weight.grad is None and not optimizer.state
    assert 'class="trainwright"' in report._repr_html_()


def test_a_healthy_cell_is_silent_and_trains_afterwards(shell):
    ran(shell, DATA)
    ran(shell, MODEL)
    report = ran(
        shell,
        f"%%check --seed 1 --ignore loss-at-chance --no-repair\n{HEALTHY}".replace("--ignore loss-at-chance ", ""),
    ).result
    assert report.first_cause is None, said(report)
    assert ran(shell, HEALTHY).success
    assert shell.user_ns["optimizer"].state


def test_a_cell_with_a_trainer_is_checked_and_leaves_no_variable(shell):
    ran(shell, "from test_api import a_trainer, token_rows")
    report = ran(shell, "%%check\nn = 1\na_trainer(token_rows(), 2).train()").result
    assert report.first_cause is not None and report.first_cause.name == "label-out-of-range", said(report)
    assert "n" not in shell.user_ns and len(report.stages) > 1


def test_functions_that_earlier_cells_named_are_watched(shell):
    ran(shell, "from torch.nn.functional import cross_entropy")
    ran(shell, DATA)
    ran(shell, MODEL)
    report = ran(shell, f"%%check\n{HEALTHY.replace('nn.functional.', '')}\ndisplay(model)").result
    assert report.failure is None and "192 training rows are right" in report.verdict.why, said(report)


def test_lines_of_earlier_cells_are_named(shell):
    ran(shell, DATA)
    ran(shell, MODEL.replace("lr=1e-2", "lr=1.0"))
    report = ran(shell, f"%%check\n{HEALTHY}").result
    assert report.first_cause is not None and str(report.first_cause.where) == "In [3]:2", said(report)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%check --bugdet 3\nx = 1", "--bugdet"),
        ("%%check --budget 0\nx = 1", "positive number of seconds"),
        ("%%check --ignore no-such-rule\nx = 1", "no-such-rule"),
        ("%%check\nawait x", "`await`"),
    ],
)
def test_what_cannot_be_checked_is_said_in_a_line(shell, capsys, cell, message):
    assert not ran(shell, cell).success
    shown = capsys.readouterr()
    assert message in shown.out + shown.err and "Traceback" not in shown.out + shown.err


def test_a_cell_that_raises_and_one_without_training_give_a_report(shell):
    report = ran(shell, "%%check\nx = 1\n1 / 0").result
    assert report.failure is not None and str(report.failure.where) == "In [2]:3"
    assert "without reaching a training" in ran(shell, "%%check\nx = 1").result.message


def test_a_kernel_shows_the_report(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    sources = ["%load_ext trainwright", DATA, MODEL, f"%%check\n{UNCLEARED}", "optimizer.state"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
    resources = {"metadata": {"path": str(Path(__file__).parents[1] / "helpers")}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    results = [o for o in notebook.cells[3].outputs if o.output_type == "execute_result"]
    assert "uncleared-gradients" in results[-1].data["text/html"]
    assert "In [4]:5" in results[-1].data["text/plain"]
    assert notebook.cells[4].outputs[-1].data["text/plain"].endswith("{})")
    assert os.environ.get("OMP_NUM_THREADS")
