"""Says whether a fault looks like the script's or a library's, and where to ask."""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass

from trainwright.core import Report
from trainwright.frameworks.messages import best

# Where users of a framework help each other: the package nearest to the user's code comes first.
FORUMS = {
    "lightning": "https://github.com/Lightning-AI/pytorch-lightning/discussions",
    "transformers": "https://discuss.huggingface.co",
    "keras": "https://github.com/keras-team/keras/discussions",
    "datasets": "https://discuss.huggingface.co",
    "accelerate": "https://discuss.huggingface.co",
    "tensorflow": "https://discuss.ai.google.dev",
    "torch": "https://discuss.pytorch.org",
    "jax": "https://github.com/jax-ml/jax/discussions",
}
# With these, a library refuses what it is given, or cannot work with its numbers.
_REFUSALS = (
    "TypeError", "ValueError", "IndexError", "FileNotFoundError", "ImportError", "ModuleNotFoundError", "OSError",
    "ValidationError", "LinAlgError", "_LinAlgError", "OutOfMemoryError", "OverflowError", "FloatingPointError",
)  # fmt: skip
# Labels of addresses in a package's metadata, the best first.
_LABELS = ("issue", "bug", "tracker", "source", "repository", "code", "github", "homepage")


@dataclass(frozen=True, kw_only=True)
class Blame:
    """Whose fault it looks like, why, and where to post."""

    whose: str
    """`script`, `library`, `trainwright` or `unknown`."""
    why: str
    post: str


def blame(report: Report) -> Blame:
    """Whose fault a report looks like."""
    forum = next((FORUMS[p] for p in FORUMS if p in report.versions), "a forum of the framework")
    if report.internal_errors:
        return Blame(whose="trainwright", why="Trainwright itself failed.", post=_tracker("trainwright"))
    first, failure = report.first_cause, report.failure
    if first is not None:
        at = f", at {first.where}" if first.where else ""
        return Blame(whose="script", why=f"the rule {first.name} finds a fault in it{at}.", post=forum)
    if failure is None:
        return Blame(whose="unknown", why="nothing was found, and nothing was raised.", post=forum)
    kind = failure.type.rpartition(".")[2]
    if best(failure.type, failure.message) is not None:
        why = f"the {kind} has a known cause in scripts (`trainwright explain`)."
        return Blame(whose="script", why=why, post=forum)
    package, called = failure.function.partition(".")[0], failure.function
    if package in ("trainwright", ""):  # a function without Python code, called through a watcher
        package, called = next((p for p in reversed(FORUMS) if p in report.versions), ""), "compiled code"
    owner = _distribution(package)
    if not owner:
        return Blame(whose="script", why=f"the {kind} was raised by the script's own code.", post=forum)
    if kind in _REFUSALS:
        why = f"{called} of {owner} refused what it was given ({kind})."
        return Blame(whose="script", why=why, post=forum)
    version = importlib.metadata.version(owner)
    why = f"the {kind} was raised inside {called} of {owner} {version}, and no rule finds a fault in the script."
    return Blame(whose="library", why=why, post=_tracker(owner) or forum)


def _distribution(package: str) -> str:
    """The installed package that holds a module; empty if none does."""
    try:
        return importlib.metadata.distribution(package).name
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return next(iter(importlib.metadata.packages_distributions().get(package, ())), "")


def _tracker(name: str) -> str:
    """The address of a package's issues, by its metadata; empty if it names none."""
    try:
        metadata = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
    given = [one.partition(",") for one in metadata.get_all("Project-URL") or []]
    given += [("homepage", ",", home) for home in metadata.get_all("Home-page") or []]
    addresses = [(label.lower(), address.strip()) for label, _, address in given]
    ranked = [address for wanted in _LABELS for label, address in addresses if wanted in label]
    address = next(iter([*ranked, *(address for _, address in addresses)]), "")
    return re.sub(r"^(https://(?:github|gitlab)\.com/[\w.\-]+/[\w.\-]+?)(?:\.git)?/?$", r"\1/issues", address)
