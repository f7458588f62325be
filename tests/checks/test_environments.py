"""A healthy script passes, a faulty one is named at its line, and `trainwright.check` works, wherever users train.

All tests hide everything else that is installed from a process (an environment as far as imports go); those before a
commit do so for torch alone, and make that environment for real. `make test-environments` makes all of them for real.
"""

import functools
import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from checks import all_expected, said
from environments.made import Made, made
from environments.table import ENVIRONMENTS, VERSIONS, Environment
from trainwright.core import Report, Status
from trainwright.core.report import from_dict

HERE = Path(__file__).parents[1] / "environments"
OURS = ("trainwright",)
FRAMEWORKS = {"torch", "transformers", "accelerate", "datasets", "lightning", "pytorch_lightning", "keras", "tf_keras",
              "tensorflow", "jax", "torchmetrics", "huggingface_hub", "pandas", "sklearn", "peft"}  # fmt: skip
ALL = {**ENVIRONMENTS, **VERSIONS}
FEWEST_STAGES = 6
RULE_STAGES = [
    pytest.param(name, script, marks=() if one.in_ci else pytest.mark.slow)
    for name, one in ENVIRONMENTS.items()
    for script in one.scripts
]
MADE = [
    pytest.param(name, script, marks=pytest.mark.environment if one.in_ci else pytest.mark.environments)
    for name, one in ALL.items()
    for script in one.scripts
    if script != "lm"
]


@pytest.mark.parametrize(("name", "script"), RULE_STAGES)
def test_a_healthy_script_passes_where_all_else_is_hidden(name: str, script: str, tmp_path: Path) -> None:
    report = hidden(name, tmp_path, "check", "--json", "-", script)
    assert passed(report), said(report)


@pytest.mark.parametrize(("name", "script"), RULE_STAGES)
def test_a_fault_is_named_where_all_else_is_hidden(name: str, script: str, tmp_path: Path) -> None:
    names_the_fault(hidden(name, tmp_path, "check", "--json", "-", script, "faulty"), script)


@pytest.mark.parametrize(("name", "script"), [w for w in RULE_STAGES if w.values[1] != "accelerate_loop.py"])
def test_objects_are_checked_where_all_else_is_hidden(name: str, script: str, tmp_path: Path) -> None:
    report = hidden(name, tmp_path, script, "api")
    assert passed(report), said(report)


IMPORTING = [
    pytest.param(s, marks=() if s == "torch_loop.py" else pytest.mark.slow)
    for s in sorted({s for one in ENVIRONMENTS.values() for s in one.scripts})
]


@pytest.mark.parametrize("script", IMPORTING)
def test_a_check_imports_no_framework_that_the_script_does_not(script: str, tmp_path: Path) -> None:
    """Lightning imports transformers, and Keras JAX, where these are installed: so they do without a check."""
    backends = ("tensorflow", "jax") if script.startswith("keras") else ("",)
    for backend in backends:
        variables = {"KERAS_BACKEND": backend} if backend else {}
        _run_hiding({}, tmp_path, variables, script, "short")
        forbidden = FRAMEWORKS - set(json.loads((tmp_path / "imported.json").read_text()))
        checked = _run_hiding({"forbidden": sorted(forbidden)}, tmp_path, variables, "check", "--json", "-", script)
        assert forbidden and passed(_report_in(checked.stdout)), checked.stderr


def test_a_forbidden_framework_ends_the_process_that_runs_the_script(tmp_path: Path) -> None:
    """So the test above cannot pass where a process imports one."""
    ended = _run_hiding({"forbidden": ["torch"]}, tmp_path, {}, "check", "--json", "-", "torch_loop.py")
    assert not passed(_report_in(ended.stdout)), ended.stdout


def hidden(name: str, folder: Path, *words: str) -> Report:
    """The report of a run in which only an environment's packages, and what they require, can be imported."""
    one = ENVIRONMENTS[name]
    hide = {"modules": _others(one), "distributions": _other_distributions(one)}
    return _report_in(_run_hiding(hide, folder, one.variables, *words).stdout)


def _run_hiding(
    hide: dict[str, list[str]], folder: Path, variables: dict[str, str], *words: str
) -> subprocess.CompletedProcess[str]:
    file = folder / "hidden.json"
    file.write_text(json.dumps({"modules": [], "distributions": [], "forbidden": [], **hide}))
    module = [] if words[0].endswith(".py") else ["-m", "trainwright"]
    paths = os.pathsep.join(filter(None, (str(HERE / "hiding"), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, *module, *_with_paths(words)]
    return _run(command, folder, {"HIDDEN": str(file), "PYTHONPATH": paths, **variables})


def _with_paths(words: tuple[str, ...]) -> list[str]:
    return [w if not w.endswith(".py") else str(HERE / "scripts" / w) for w in words]


def _run(command: list[str], folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    ended = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=500)
    assert ended.returncode in (0, 1, 2), ended.stdout[-3000:] + ended.stderr[-3000:]
    return ended


def passed(report: Report) -> bool:
    """Of a training that is looked at as it runs, stages may be left to the run."""
    run = [s for s in report.stages if s.status != Status.SKIPPED]
    return len(run) >= FEWEST_STAGES and all(s.status.through for s in run) and not report.internal_errors


def names_the_fault(report: Report, script: str) -> None:
    found = [(f.name, f.where.line if f.where else 0) for f in report.findings]
    assert found == all_expected(HERE / "scripts" / script), said(report)
    assert not report.internal_errors


@functools.cache
def _required(roots: tuple[str, ...]) -> frozenset[str]:
    """Distributions with all that they require, as far as it is installed."""
    found: set[str] = set()
    todo = [_plain(root) for root in roots]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        try:
            requires = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        needs = [Requirement(text) for text in requires]
        todo += [_plain(n.name) for n in needs if n.marker is None or n.marker.evaluate({"extra": ""})]
    return frozenset(found)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _others(one: Environment) -> list[str]:
    stays = _required((*OURS, *one.has))
    packages = importlib.metadata.packages_distributions()
    return [module for module, owners in packages.items() if not {_plain(o) for o in owners} & stays]


def _other_distributions(one: Environment) -> list[str]:
    names = {_plain(d.name) for d in importlib.metadata.distributions() if d.name}
    return sorted(names - _required((*OURS, *one.has)))


@pytest.fixture(scope="module")
def environment(request: pytest.FixtureRequest) -> Made:
    """One that is installed for real, made once."""
    return made(request.param, ALL[request.param])


@pytest.mark.parametrize(("environment", "script"), MADE, indirect=["environment"])
def test_scripts_and_objects_are_checked_in_an_environment_of_its_own(
    environment: Made, script: str, tmp_path: Path
) -> None:
    file, *arguments = script.split()
    path = str(HERE / "scripts" / file)
    check = ["-m", "trainwright", "check", "--json", "-", path, *arguments]
    healthy = _report(environment, check, tmp_path)
    assert passed(healthy), said(healthy)
    names_the_fault(_report(environment, [*check, "faulty"], tmp_path), file)
    if '"api"' in (HERE / "scripts" / file).read_text("utf-8"):
        of_objects = _report(environment, [path, *arguments, "api"], tmp_path)
        assert passed(of_objects), said(of_objects)


def _report(environment: Made, words: list[str], folder: Path) -> Report:
    ended = _run([environment.python, *words], folder, environment.variables)
    return _report_in(ended.stdout)


def _report_in(text: str) -> Report:
    """The report after what a framework has printed."""
    return from_dict(json.loads(text[f"\n{text}".rindex("\n{\n") :]))


@pytest.mark.environments
def test_a_language_model_is_rehearsed_and_trained_in_the_environment_of_its_extra(tmp_path: Path) -> None:
    environment = made("lm", VERSIONS["lm"])
    source = Path(__file__).parents[2] / "src" / "trainwright"
    lm = [environment.python, "-m", "trainwright", "lm"]
    prepare = [*lm, "prepare", str(source / "adapters"), str(source / "seams"), "--out", "data"]
    _run([*prepare, "--vocabulary", "512"], tmp_path, environment.variables)
    said_then = _run([*lm, "train", "data", "--out", "run", "--set", "run.updates=3"], tmp_path, environment.variables)
    assert ": no fault found." in said_then.stdout + said_then.stderr
