"""Imports go one way, frameworks have their places, and every module can be imported alone."""

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

import trainwright
import trainwright_lm
from trainwright.core import RULE_STAGES

ROOT = Path(trainwright.__file__).parent
LANGUAGE_MODEL = Path(trainwright_lm.__file__).parent
MODULES = [*sorted(ROOT.rglob("*.py")), *sorted(LANGUAGE_MODEL.rglob("*.py"))]
FRAMEWORKS = {
    "torch",
    "transformers",
    "accelerate",
    "datasets",
    "tensorflow",
    "keras",
    "jax",
    "lightning",
    "pandas",
    "sklearn",
}

# Who may import whom. The core is below everything; the measuring of a stage is below what calls it.
MAY_IMPORT = {
    "core": {"core"},
    "stages": {"stages", "core"},
    "probes": {"probes", "stages", "core", "timing"},
    "frameworks": {"frameworks", "core"},
    "rules": {"rules", "frameworks", "stages", "core"},
    # A tensor's numbers are facts (stages/tensor.py): the only thing of the stages that tensors know.
    "tensors": {"tensors", "stages.tensor", "core"},
    "seams": {"seams", "frameworks", "tensors", "probes", "stages", "core", "errors", "timing"},
    "adapters": {"adapters", "seams", "frameworks", "tensors", "probes", "stages", "core", "timing"},
    # Fills the stages' facts from a real step, with what the adapters measure of one.
    "look": {"look", "adapters", "seams", "frameworks", "tensors", "probes", "stages", "registry", "core", "timing"},
    # The script's own run, in a process of its own; it knows no question and no report.
    # Where a row came from is found as in the check.
    "rehearsal": {
        "rehearsal",
        "look",
        "adapters.data.source_cells",
        "adapters.keras.input",
        "adapters.torch.batches",
        "adapters.torch.called_model",
        "adapters.process_fingerprint",
        "stages",
        "probes.metrics",
        "seams",
        "tensors",
        "frameworks",
        "core",
        "errors",
    },
    # Questions know only the record.
    "review": {
        "review",
        "rehearsal.record",
        "rehearsal.record_parts",
        "rehearsal.sample_words",
        "probes",
        "registry",
        "core",
    },
    # Edits are made from where things were written.
    "fixes": {"fixes", "seams.source", "registry", "core"},
    # What the words of a command name; nothing of the check is loaded for that.
    "start": {"start", "errors"},
    # What is known of an error's text, for errors that nothing explains.
    "report": {"report", "frameworks.messages", "registry", "core", "__version__"},
    "options": {"registry", "core", "errors"},
    # Known by the text of their lines, which the report quotes.
    "baseline": {"report.source", "core", "errors"},
    "explain": {"explain", "frameworks", "registry", "core"},
    # Checks for a coding assistant: each is run as by the command, in a process of its own.
    "mcp": {
        "mcp",
        "checking",
        "output",
        "console",
        "options",
        "start",
        "seams.scripts",
        "explain",
        "report",
        "core",
        "errors",
        "__version__",
    },
    # A script's check for others: it runs the check, and edits nothing.
    "bundle": {"bundle", "frameworks", "start", "core", "errors", "__version__"},
    # What the rules and questions find in a record, and the report of it.
    "judging": {
        "judging",
        "fixes",
        "options",
        "rehearsal.record",
        "look.asking",
        "look.results",
        "review",
        "frameworks",
        "stages",
        "registry",
        "core",
    },
    # Two sets' rows beside each other; nothing is checked.
    "same_rows": {"adapters.data.reading", "frameworks.label_names", "probes.splits", "tensors.items", "errors"},
    # Loads all rules and questions, by the names of their folders.
    "registry": {"core"},
    "errors": set(),
    "console": set(),
    "timing": set(),
    # A package of its own, beside trainwright: it uses the public API, and what that returns.
    "trainwright_lm": {"trainwright_lm", "errors", "core.Stage", "core.StageRun", "core.Status"},
}
# Who may import whom inside a layer: folders, and the files that lie beside them. Itself, each may.
_ALL = {"adapters.base", "adapters.short_runs", "adapters.largest_batch", "adapters.learning"}
_TOKENS = {"trainwright_lm.documents", "trainwright_lm.atomic"}
_RUNS = {"trainwright_lm.config", "trainwright_lm.atomic", "trainwright_lm.network", "trainwright_lm.tokens"}
_TRAINING = {*_RUNS, "trainwright_lm.runs", "trainwright_lm.completion", "trainwright_lm.progress"}
INSIDE = {
    "adapters.base": set(),
    "adapters.short_runs": {"adapters.base"},
    "adapters.largest_batch": set(),
    "adapters.learning": {"adapters.base"},
    "adapters.data": _ALL,
    "adapters.torch": {*_ALL, "adapters.data"},
    "adapters.script_end": {"adapters.torch"},
    "adapters.trainer": {*_ALL, "adapters.data", "adapters.torch"},
    "adapters.keras": {*_ALL, "adapters.data"},
    "adapters.from_objects": {*_ALL, "adapters.torch", "adapters.trainer", "adapters.keras"},
    "adapters.process_fingerprint": {"adapters.data", "adapters.torch", "adapters.trainer"},
    "seams.source": set(),
    "seams.state": {"seams.source"},
    "seams.failures": {"seams.source"},
    "seams.isolation": {"seams.failures", "seams.listening"},
    "seams.scripts": {"seams.failures", "seams.listening", "seams.source"},
    "seams.listening": {"seams.source", "seams.failures", "seams.state"},
    "seams.loops": {"seams.source", "seams.failures", "seams.isolation", "seams.listening"},
    "seams.devices": {"seams.source", "seams.failures", "seams.listening"},
    "seams.torch": {"seams.source", "seams.state", "seams.failures", "seams.listening"},
    "seams.keras": {"seams.source", "seams.failures", "seams.listening"},
    "seams.requirements": set(),
    "seams.processes": set(),
    "seams.intercept": {"seams.listening", "seams.source", "seams.requirements"},
    "tensors.items": set(),
    "tensors.torch": {"tensors.items"},
    "tensors.keras": set(),
    "probes.batches": set(),
    "probes.metrics": set(),
    "probes.losses": set(),
    "probes.constant": {"probes.losses"},
    "probes.forward": set(),
    "probes.gradients": set(),
    "probes.ridge": set(),
    "probes.labels": {"probes.ridge"},
    "probes.information": {"probes.labels", "probes.ridge"},
    "probes.splits": {"probes.ridge"},
    "rehearsal.record_parts": set(),
    "rehearsal.record": {"rehearsal.record_parts"},
    "rehearsal.sampling": {"rehearsal.record"},
    "rehearsal.readable": {"rehearsal.record", "rehearsal.sampling"},
    "rehearsal.names": {"rehearsal.readable"},
    "rehearsal.sample_words": {"rehearsal.record"},
    "rehearsal.imported": {"rehearsal.record_parts"},
    "rehearsal.recorder": {"rehearsal.record", "rehearsal.sampling", "rehearsal.readable"},
    "rehearsal.limits": set(),
    "rehearsal.sandbox": set(),
    "rehearsal.child": {"rehearsal.request", "rehearsal.sandbox", "rehearsal.run", "rehearsal.imported"},
    "rehearsal.ranks": set(),
    "rehearsal.in_place": {"rehearsal.request", "rehearsal.run"},
    "rehearsal.process": {"rehearsal.child", "rehearsal.in_place", "rehearsal.memory", "rehearsal.request", "rehearsal.sandbox", "rehearsal.streams", "rehearsal.record",
                          "rehearsal.record_parts"},
    "rehearsal.memory": set(),
    "rehearsal.run": {"rehearsal.imported", "rehearsal.limits", "rehearsal.loops", "rehearsal.record", "rehearsal.record_parts", "rehearsal.recorder", "rehearsal.request",
                      "rehearsal.sandbox", "rehearsal.seeds", "rehearsal.streams", "rehearsal.watch", "rehearsal.listener", "rehearsal.ranks"},
    "rehearsal.listener": {"rehearsal.ranks"},
    "rehearsal.request": {"rehearsal.limits"},
    "rehearsal.seeds": set(),
    "rehearsal.streams": set(),
    "rehearsal.loops": {"rehearsal.recorder"},
    "rehearsal.watch": {"rehearsal.record", "rehearsal.record_parts", "rehearsal.recorder", "rehearsal.sampling", "rehearsal.readable",
                        "rehearsal.names", "rehearsal.listener"},
    "trainwright_lm.atomic": set(),
    "trainwright_lm.progress": set(),
    "trainwright_lm.documents": set(),
    "trainwright_lm.config": set(),
    "trainwright_lm.tokens": _TOKENS,
    "trainwright_lm.network": {"trainwright_lm.config"},
    "trainwright_lm.corpus": {*_TOKENS, "trainwright_lm.progress", "trainwright_lm.tokens"},
    "trainwright_lm.runs": _RUNS,
    "trainwright_lm.completion": {*_RUNS, "trainwright_lm.runs"},
    "trainwright_lm.training": _TRAINING,
    "trainwright_lm.evaluation": {*_TRAINING, "trainwright_lm.training"},
    "trainwright_lm.exchange": {*_RUNS, "trainwright_lm.runs", "trainwright_lm.corpus"},
    "trainwright_lm.commands": {*_TRAINING, "trainwright_lm.corpus", "trainwright_lm.evaluation", "trainwright_lm.exchange",
                                "trainwright_lm.training"},
    "trainwright_lm.cli": {"trainwright_lm.commands"},
}  # fmt: skip
FREE = {
    "checking",
    "cli",
    "output",
    "cell_magic",
    "__main__",
    "__init__",
    "api",
    "runs",
    "bundling",
    "pytest_plugin",
}  # on top: they put the parts together


def name_of(path: Path) -> str:
    """`look.run` of src/trainwright/look/run.py, `trainwright_lm.config` of lm/src/trainwright_lm/config.py."""
    inside = path.relative_to(ROOT if path.is_relative_to(ROOT) else LANGUAGE_MODEL.parent)
    parts = inside.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def ours(names: Iterable[str]) -> Iterator[str]:
    """Those of our own modules, as `name_of` names them."""
    return (n.removeprefix("trainwright.") for n in names if n.startswith(("trainwright.", "trainwright_lm")))


def imports(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports anywhere, `from a import b` as a.b."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def allowed(name: str, where: set[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in where)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    layer = name_of(path).split(".")[0]
    if layer in FREE:
        return
    assert layer in MAY_IMPORT, f"{layer} has no place among the layers"
    wrong = [n for n in ours(imports(path)) if not allowed(n, MAY_IMPORT[layer]) and not n.startswith("__version__")]
    assert not wrong, f"{name_of(path)} imports {', '.join(wrong)}"


def test_the_language_model_is_loaded_for_its_command_alone() -> None:
    """Which cli.py names in a string."""
    assert not [name_of(p) for p in MODULES if p.is_relative_to(ROOT) for n in imports(p) if "trainwright_lm" in n]


def folder_of(name: str) -> str:
    """`adapters.torch` of adapters.torch.training, `adapters.base` of itself."""
    return ".".join(name.split(".")[:2])


@pytest.mark.parametrize("path", [p for p in MODULES if folder_of(name_of(p)) in INSIDE], ids=name_of)
def test_imports_inside_a_layer_follow_the_table(path: Path) -> None:
    name = name_of(path)
    layer, own = name.split(".")[0], folder_of(name)
    wrong = [n for n in ours(imports(path)) if n.startswith(f"{layer}.") and not allowed(n, INSIDE[own] | {own})]
    assert not wrong, f"{name} imports {', '.join(wrong)}"


def test_every_folder_of_the_large_layers_is_in_the_table() -> None:
    large = {name.split(".")[0] for name in INSIDE}
    names = {name_of(p) for p in MODULES}
    folders = {folder_of(n) for n in names if n.split(".")[0] in large and "." in n}
    assert folders == set(INSIDE)


def test_no_circle_of_imports() -> None:
    """Imports for types count as others do."""
    names = {name_of(p): p for p in MODULES}
    graph = {
        name: {found for n in ours(imports(path)) if (found := module_of(n, names))} - {name}
        for name, path in names.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def module_of(name: str, names: Mapping[str, Path]) -> str | None:
    """The module that is, or holds, what is imported."""
    return next((n for n in (name, name.rpartition(".")[0]) if n in names), None)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_frameworks_are_named_only_where_they_are_met(path: Path) -> None:
    layer = name_of(path).split(".")[0]
    if layer in ("tensors", "seams", "adapters", "look", "trainwright_lm") or name_of(path).startswith(
        "rehearsal.watch"
    ):
        return
    used = {n.split(".")[0] for n in imports(path)} & FRAMEWORKS
    assert not used, f"{name_of(path)} imports {', '.join(sorted(used))}"


@pytest.mark.parametrize("path", [p for p in MODULES if name_of(p).startswith("core")], ids=name_of)
def test_the_core_needs_the_standard_library_only(path: Path) -> None:
    foreign = {n.split(".")[0] for n in imports(path)} - set(sys.stdlib_module_names) - {"trainwright"}
    assert not foreign


@pytest.mark.parametrize("path", [p for p in MODULES if name_of(p).startswith("rules")], ids=name_of)
def test_rules_need_nothing_but_numpy(path: Path) -> None:
    foreign = {n.split(".")[0] for n in imports(path)} - set(sys.stdlib_module_names) - {"trainwright", "numpy"}
    assert not foreign


def test_the_folders_of_rules_are_stages() -> None:
    """Those of another folder were never loaded."""
    assert {path.parent.name for path in ROOT.glob("rules/*/*.py")} == {stage.label for stage in RULE_STAGES}


def test_every_module_imports_without_a_warning() -> None:
    """Without a circle, which another test sees, each imports alone as well. Frameworks warn by themselves, and come first."""
    found = [name_of(p) for p in MODULES if p.name != "__main__.py"]
    names = [n if n.startswith("trainwright_lm") else f"trainwright.{n}" for n in found]
    done = subprocess.run([sys.executable, "-c", _IMPORT_ALL, *names], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


_IMPORT_ALL = """
import sys, warnings
import accelerate, torch, transformers, transformers.trainer
import numpy, wrapt, rich.console, jinja2, cyclopts
warnings.simplefilter("error")
for name in sys.argv[1:]:
    __import__(name)
"""
