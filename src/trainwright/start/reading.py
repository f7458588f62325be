"""Whether a script reads its command line: our options after it are accepted only if it certainly does not.

A script takes no arguments if neither it nor any local module that it imports can access `sys.argv`: all other imported
modules are in the standard library or in packages known not to read it, and no name or string in them leads to it.
Anything uncertain counts as reading.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

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
        if tree is None or any(_leads_there(node) for node in ast.walk(tree)) or _bare_sys(tree):
            return False
        for name, home in _imports(tree, file, folder):
            local = list(_local_files(name, home))
            top = name.partition(".")[0]
            if not local and (home != folder or not _is_silent(top)):
                return False
            waiting += local
    return True


def names_option(script: Path, option: str) -> bool:
    """Whether a script's text contains an option itself, as in `add_argument("--seed")`."""
    try:
        text = script.read_text("utf-8")
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
        return _is_reading(node.name)
    if isinstance(node, ast.ImportFrom):
        return _is_reading(node.module or "") or any(_is_reading(f"{node.module}.{a.name}") for a in node.names)
    return False


def _is_reading(module: str) -> bool:
    return module in _MODULES or any(_NAMES.fullmatch(part) for part in module.split("."))


def _bare_sys(tree: ast.Module) -> bool:
    """Whether `sys` is passed on or renamed, so that not all uses of its attributes are visible."""
    plain = {
        id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr not in ("modules", "__dict__")
    }
    handed_on = any(isinstance(n, ast.Name) and n.id == "sys" and id(n) not in plain for n in ast.walk(tree))
    renamed = any(isinstance(n, ast.alias) and n.name == "sys" and n.asname for n in ast.walk(tree))
    starred = any(
        isinstance(n, ast.ImportFrom) and n.module == "sys" and n.names[0].name == "*" for n in ast.walk(tree)
    )
    return handed_on or renamed or starred


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
