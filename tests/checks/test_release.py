"""What people install, and the site that they read, are whole."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from trainwright.registry import load_rules

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and the wheel that was made of it."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return out


def test_the_wheel_has_what_git_has(built: Path) -> None:
    """The wheel is made of the sdist, so both are whole."""
    (wheel,) = built.glob("*.whl")
    listed = subprocess.run(["git", "ls-files", "src", "lm/src"], cwd=ROOT, capture_output=True, text=True, check=True)
    sources = {name.removeprefix("lm/").removeprefix("src/") for name in listed.stdout.split()}
    assert len(sources) > 100 and sources - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_sdist_holds_no_tests_data(built: Path) -> None:
    """It is what the wheel needs, its README, licence and changelog: people wait for no megabytes of scripts."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        tops = {Path(name).parts[1] for name in archive.getnames() if len(Path(name).parts) > 1}
    assert tops == {"src", "lm", "README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "PKG-INFO", ".gitignore"}


def test_the_wheel_works_where_nothing_else_is(built: Path, tmp_path: Path) -> None:
    """Unpacked beside its requirements alone: the commands that run no script answer."""
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    for command in (["rules"], ["explain", "label-out-of-range"], ["check", "--help"]):
        run = [sys.executable, "-S", "-c", _RUN, str(tmp_path), *command]
        answered = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert answered.returncode == 0 and answered.stdout, answered.stderr


# The packages of this environment without its `.pth` files, which lead to the checkout.
_RUN = f"""
import sys
sys.path[:0] = [sys.argv.pop(1)]
sys.path.append({str(next(Path(p) for p in sys.path if p.endswith("site-packages")))!r})
import trainwright.cli
assert trainwright.cli.__file__.startswith(sys.path[0]), trainwright.cli.__file__
trainwright.cli.main()
"""


def test_the_site_has_a_page_for_each_rule_and_no_dead_link(tmp_path: Path) -> None:
    """MkDocs is strict: a link or anchor that leads nowhere fails."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    made = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    pages = {page.parent.name for page in (tmp_path / "site" / "rules").glob("*/index.html")}
    assert {rule.name for rule in load_rules()} <= pages
    assert "uncleared-gradients" in (tmp_path / "site" / "search" / "search_index.json").read_text("utf-8")
