"""The words of `trainwright check` and `run`: separates our options from the script's own arguments.

Our options after the script are accepted only if it certainly reads no command line: if neither it nor any local module
that it imports can access `sys.argv`. All other imported modules must be in the standard library or in packages known
not to read it, and no name or string may lead to it. Anything uncertain counts as reading.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainwright.errors import UsageError
from trainwright.start.launchers import is_command

# Standard library modules that read the command line or run code that is not visible here.
_READING = frozenset({"argparse", "getopt", "optparse", "fileinput", "runpy", "importlib", "pkgutil", "imp", "ctypes",
                      "unittest", "doctest", "pdb", "code", "cmd", "gc", "inspect", "builtins", "marshal", "zipimport",
                      "idlelib", "test", "site", "sysconfig", "profile", "cProfile", "trace", "timeit"})  # fmt: skip
# Packages that read no command line except through the names below.
_SILENT = frozenset({
    "torch", "torchvision", "torchaudio", "torchtext", "torchmetrics", "torchdata", "timm", "einops", "transformers", "datasets",
    "tokenizers", "accelerate", "evaluate", "peft", "safetensors", "huggingface_hub", "sentence_transformers", "lightning",
    "pytorch_lightning", "keras", "tensorflow", "tf_keras", "jax", "flax", "optax", "numpy", "scipy", "pandas", "polars",
    "pyarrow", "sklearn", "matplotlib", "seaborn", "PIL", "cv2", "skimage", "tqdm", "yaml", "joblib", "h5py", "nltk", "sentencepiece",
    "tiktoken", "networkx", "requests", "rich", "wandb", "mlflow", "tensorboard", "trackio", "psutil", "albumentations",
    "imageio", "librosa", "soundfile", "gensim", "xgboost", "lightgbm", "statsmodels", "torch_geometric",
})  # fmt: skip
# Names through which a command line is read, in those packages and elsewhere.
_NAMES = re.compile(
    r"_?(orig_)?argv|.*Parser|parse_(known_)?args.*|add_argument|.*CLI|cli|commands?|main_cli|flags|FLAGS|app|argparse_util"
    r"|parse_flags_with_absl|config_with_absl|__import__|__builtins__|import_module|run_path|run_module"
)
_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_RUNNING = ("exec", "eval")  # as bare names only: `model.eval()` does not count
_TEXTS = re.compile(r"argv|/proc/|cmdline|argparse")


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option of a command, by one of its names."""

    name: str
    takes_value: bool
    is_shown: bool
    """Whether the command's help shows it; hidden ones are for Trainwright itself."""


def arranged(words: Sequence[str], options_of: Callable[[str], Sequence[Option]]) -> tuple[list[str], str]:
    """The command line with `--` inserted before SCRIPT, and a message for the user.

    Words after SCRIPT belong to the script. Our options after it are accepted only if the script certainly reads no
    command line.

    Args:
        options_of: returns the options of a command, by the command's name.

    Raises:
        UsageError: if there is no SCRIPT.
    """
    if words and words[0].endswith((".py", ".ipynb")):
        raise UsageError(f"A command must come first: trainwright check {' '.join(words)}")
    if not words or words[0] not in ("check", "run"):
        return list(words), ""
    options = options_of(words[0])
    valued = {o.name for o in options if o.takes_value}
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        at += 2 if words[at] in valued else 1
    if at >= len(words) and not {"--help", "-h", "--version"} & set(words):
        raise UsageError(
            f"{words[0]} needs a SCRIPT: trainwright {words[0]} [OPTIONS] train.py [ARGS…]. "
            f"`trainwright {words[0]} --help` lists the options."
        )
    if at >= len(words) or words[at] == "--":
        return list(words), ""
    before, script, behind = list(words[:at]), words[at], list(words[at + 1 :])
    ours, theirs = _parted(behind, options)
    said = ""
    if ours:
        names = ", ".join(dict.fromkeys(word.partition("=")[0] for word in ours if word.startswith("--")))
        if _sees_no_arguments(script, module="-m" in before):
            said = f"{script} reads no command line, so {names} after it is read by Trainwright."
            before, behind = before + ours, theirs
        elif unnamed := [n for n in names.split(", ") if not _names_option(script, n)]:
            goes = "go" if len(unnamed) > 1 else "goes"
            them = "them" if len(unnamed) > 1 else "it"
            said = (
                f"{', '.join(unnamed)} after {script} {goes} to the script; "
                f"to use {them} for Trainwright, write {them} before {script}."
            )
    return [*before, "--", script, *behind], said


def _parted(words: Sequence[str], options: Sequence[Option]) -> tuple[list[str], list[str]]:
    """Our options among words, with their values, and the other words.

    Short options are left to the script: `-m` says what SCRIPT is, and comes before it.
    """
    named = [o for o in options if o.is_shown and o.name.startswith("--")]
    valued = {o.name for o in named if o.takes_value}
    plain = {o.name for o in named} - valued
    ours: list[str] = []
    theirs: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equal, _ = word.partition("=")
        if word in plain or (name in valued and equal):
            ours.append(word)
        elif name in valued and rest:
            ours += [word, rest.pop(0)]
        else:
            theirs.append(word)
    return ours, theirs


def _sees_no_arguments(script: str, *, module: bool) -> bool:
    if script.endswith(".ipynb"):
        return True
    file = _module_file(script) if module else Path(script)
    if file is None or not file.is_file() or (not module and is_command(script)):
        return False
    return takes_no_arguments(file, Path.cwd() if module else file.resolve().parent)


def _module_file(module: str) -> Path | None:
    """The source of a module in the working directory, found without importing anything."""
    at = Path.cwd().joinpath(*module.split("."))
    files = (at.with_suffix(".py"), at / "__main__.py")
    return next((file for file in files if file.is_file()), None)


def takes_no_arguments(script: Path, folder: Path) -> bool:
    """Whether it is certain that a script cannot see its arguments.

    Args:
        folder: where its imports are looked up first.
    """
    seen: set[Path] = set()
    waiting = [script]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        tree = _tree(file)
        if tree is None or any(_leads_there(node) for node in ast.walk(tree)) or _hands_on_sys(tree):
            return False
        for name, home in _imports(tree, file, folder):
            local = list(_local_files(name, home))
            top = name.partition(".")[0]
            if not local and (home != folder or not _is_silent(top)):
                return False
            waiting += local
    return True


def _names_option(script: str, option: str) -> bool:
    """Whether a script's text contains an option itself, as in `add_argument("--seed")`."""
    try:
        text = Path(script).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return re.search(rf"[\"']{re.escape(option)}[\"'=]", text) is not None


def _tree(file: Path) -> ast.Module | None:
    try:
        with tokenize.open(file) as source:
            return ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return None


def _leads_there(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _RUNNING or _NAMES.fullmatch(node.id) is not None
    if isinstance(node, ast.Attribute):
        return _NAMES.fullmatch(node.attr) is not None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _TEXTS.search(node.value) is not None
    if isinstance(node, ast.alias):
        return _is_reading(node.name) or (node.name == "sys" and node.asname is not None)
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        return "sys.*" in names or any(map(_is_reading, [node.module or "", *names]))
    return False


def _is_reading(module: str) -> bool:
    return module in _MODULES or any(_NAMES.fullmatch(part) for part in module.split("."))


def _hands_on_sys(tree: ast.Module) -> bool:
    """Whether `sys` is used as a value, so that not all uses of its attributes are visible."""
    nodes = list(ast.walk(tree))
    read = (n.value for n in nodes if isinstance(n, ast.Attribute) and n.attr not in ("modules", "__dict__"))
    return sum(map(_is_sys, nodes)) > sum(map(_is_sys, read))


def _is_sys(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "sys"


def _imports(tree: ast.Module, file: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The full names of a file's imports, each with the folder where it is looked up."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, folder) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = folder if node.level == 0 else file.parents[node.level - 1]
            for alias in node.names:
                yield ".".join(p for p in (node.module, alias.name) if p), home


def _local_files(name: str, home: Path) -> Iterator[Path]:
    """The source files in a folder that importing a name runs."""
    at = home
    for part in name.split("."):
        at = at / part
        if (at / "__init__.py").is_file():
            yield at / "__init__.py"
        elif at.with_suffix(".py").is_file():
            yield at.with_suffix(".py")
            return
        elif not at.is_dir():
            return


def _is_silent(top: str) -> bool:
    return top in _SILENT or top == "__future__" or (top in sys.stdlib_module_names and top not in _READING)
