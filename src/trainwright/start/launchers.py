"""Parses commands that start a training: finds the script and its arguments, whatever comes before them.

One of its processes is run, in the Python that runs Trainwright. No launcher is imported for that: the options
without a value are listed here, and tests compare the lists with the launchers' own parsers.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainwright.errors import UsageError
from trainwright.start.launcher_options import (
    ACCELERATE_FLAGS,
    DEEPSPEED_FLAGS,
    MANY,
    MANY_VALUED,
    MODULES,
    NOT_DONE,
    PROCESSES,
    RUNNERS,
    RUNNERS_VALUED,
    TORCHRUN_FLAGS,
    WRAPPERS,
)
from trainwright.start.program import Program

UNDERSTOOD = (
    "python, accelerate launch, torchrun, python -m torch.distributed.run, deepspeed, lightning run, fabric run, "
    "horovodrun, mpirun, srun, uv run, poetry run, pipenv run, pdm run, conda run, env, nohup, time, nice, timeout, "
    "and NAME=value before any of them"
)

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PYTHON = re.compile(r"(python|pythonw|pypy)(\d+(\.\d+)?)?(\.exe)?")

# Python's short options, which may be combined in one word, the last of which may take a value.
_PYTHON_SHORT = re.compile(r"-[bBdEhiIOPqsSuvVx]*([cmWX])(.*)", re.DOTALL)


def is_command(word: str) -> bool:
    """Whether a word begins a supported command: a name, or the path of a program of that name (`.venv/bin/torchrun`)."""
    return _is_known(word) and (not Path(word).is_file() or (os.sep in word and os.access(word, os.X_OK)))


def understood(words: Sequence[str]) -> Program:
    """The program that a command line would start.

    Raises:
        UsageError: if the command is not supported, or starts no script.
    """
    if len(words) == 1 and " " in words[0] and not Path(words[0]).exists():
        words = shlex.split(words[0])
    reading = _Reading(list(words))
    reading.command()
    return reading.program()


def is_launcher_module(module: str) -> bool:
    """Whether a module's purpose is to start another script."""
    return module in MODULES


def _base(word: str) -> str:
    return Path(word).name.removesuffix(".exe")


def _is_python(word: str) -> bool:
    return _PYTHON.fullmatch(Path(word).name) is not None


def _is_script(word: str) -> bool:
    return Path(word).suffix in (".py", ".pyw", ".ipynb")


def _is_known(word: str) -> bool:
    base = _base(word)
    runners = {name.split()[0] for name in RUNNERS}
    launchers = {*_LAUNCHERS, *WRAPPERS, *MANY, *runners}
    return base in launchers or _is_python(word) or _ASSIGNMENT.fullmatch(word) is not None


@dataclass
class _Reading:
    """Reads a command line, from its first word on."""

    words: list[str]
    environment: dict[str, str | None] = field(default_factory=dict)
    launcher: str = ""
    processes: str = ""
    elsewhere: str = ""
    """The command's Python, if it is not the one running here."""
    unapplied: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    """Arguments that the launcher itself passes to the script."""
    module: bool = False

    def program(self) -> Program:
        script, *arguments = self.words
        said = several = ""
        if self.launcher:
            several = self.processes if self.processes not in ("", "1") else ""
            many = f" would start {several} processes;" if several else ":"
            said = f"{self.launcher}{many} Trainwright checks one process of {script}"
            if self.unapplied:
                said += f", without {', '.join(self.unapplied)}"
            said += f", with {sys.executable}." if self.elsewhere else "."
            if several and self.launcher == "torchrun":
                said += f" To compare what all see: torchrun --nproc_per_node {several} -m trainwright check {script}"
        elif self.elsewhere:
            said = f"{script} is checked with {sys.executable}, not with {self.elsewhere}."
        return Program(
            script=script,
            arguments=(*self.before, *arguments),
            module=self.module,
            environment=self.environment,
            launcher=self.launcher,
            processes=several,
            said=said,
        )

    # The beginning of a command

    def command(self) -> None:
        """Read up to the script."""
        self._assignments()
        word = self._first("a command")
        base = _base(word)
        if _is_script(word) or (Path(word).is_file() and not _is_known(word)):
            return
        if _is_python(word):
            self._python(self.words.pop(0))
        elif base in _LAUNCHERS:
            self.words.pop(0)
            _LAUNCHERS[base](self)
        elif base in WRAPPERS:
            self.words.pop(0)
            self._wrapper(base)
        elif base in MANY:
            self.words.pop(0)
            self.launcher = base
            self._up_to_command(base, MANY_VALUED)
        elif (runner := " ".join([base, *self.words[1:2]])) in RUNNERS:
            del self.words[:2]
            self.elsewhere = runner
            self._up_to_command(runner, RUNNERS_VALUED)
        else:
            raise UsageError(f"a command must begin with the script or with one of {UNDERSTOOD}; got {word}.")

    def _assignments(self) -> None:
        while self.words and (found := _ASSIGNMENT.fullmatch(self.words[0])):
            self.environment[found[1]] = found[2]
            self.words.pop(0)

    def _first(self, wanted: str) -> str:
        if not self.words:
            raise UsageError(
                f"the command is incomplete: {wanted} must follow. Write it as you would to start the training."
            )
        return self.words[0]

    def _wrapper(self, name: str) -> None:
        valued, further = WRAPPERS[name]
        for option, value in self._options(lambda option: option in valued, name):
            if option in ("-u", "--unset") and name == "env":
                self.environment[value] = None
        del self.words[:further]
        self.command()

    def _up_to_command(self, name: str, valued: frozenset[str]) -> None:
        """Skip options that are not all known, up to the program that is started."""
        while self.words and self.words[0].startswith("-"):
            option, value = self._option(name)
            if option == "--":
                break
            if option in ("-m", "--module") and name == "uv run":
                self.module = True
                self._first("a module")
                return
            takes = option in valued or not (
                _is_known(self._first("a command")) or _is_script(self.words[0]) or self.words[0].startswith("-")
            )
            if value is None and takes:
                value = self.words.pop(0)
            if option in PROCESSES and name in MANY and value:
                self.processes = value
        self.command()

    def _options(self, takes_value: Callable[[str], bool], name: str) -> list[tuple[str, str]]:
        """Remove the leading options and return each with its value (empty without one)."""
        found: list[tuple[str, str]] = []
        while self.words and self.words[0].startswith("-"):
            option, value = self._option(name)
            if option == "--":
                break
            if value is None and takes_value(option):
                self._first(f"the value of {option}")
                value = self.words.pop(0)
            found.append((option, value or ""))
        return found

    def _option(self, name: str) -> tuple[str, str | None]:
        word = self.words.pop(0)
        option, equal, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if option in NOT_DONE.get(name, ()):
            raise UsageError(
                f"{name} {option} is not supported here: do yourself what it does, and leave it out of the command."
            )
        return option, value if equal else None

    # Python

    def _python(self, named: str) -> None:
        if self.elsewhere == "" and _is_another(named):
            self.elsewhere = named
        while self.words and self.words[0].startswith("-"):
            word = self.words.pop(0)
            ends = _PYTHON_SHORT.fullmatch(word)
            if word == "-" or (ends and ends[1] == "c"):
                raise UsageError(f"a script or -m MODULE must follow {named}; got {word}.")
            takes = word == "--check-hash-based-pycs" or (ends is not None and not ends[2])
            if ends and ends[1] == "m":
                self.words[:0] = [ends[2]] if ends[2] else []
                self._module()
                return
            if takes:
                self._first(f"the value of {word}")
                self.words.pop(0)
        self._first("a script")

    def _module(self) -> None:
        launcher = MODULES.get(self._first("a module"))
        if launcher is None:
            self.module = True
            return
        self.words.pop(0)
        _LAUNCHERS[launcher](self)

    # Launchers

    def _launched(self, launcher: str, flags: frozenset[str]) -> dict[str, str]:
        """Remove the launcher's options and return them by names with underscores."""
        self.launcher = launcher

        def name(option: str) -> str:
            return "--" + option[2:].replace("-", "_") if option.startswith("--") else option

        found = {name(o): v for o, v in self._options(lambda option: name(option) not in flags, launcher)}
        if {"-m", "--module"} & set(found):
            self.module = True
        if "--no_python" in found:
            self.command()
        self._first("a script")
        return found

    def accelerate(self) -> None:
        if self._first("launch") != "launch":
            raise UsageError(f"only `accelerate launch` starts a training; got accelerate {self.words[0]}.")
        self.words.pop(0)
        self.accelerate_launch()

    def accelerate_launch(self) -> None:
        """Set the variables with which `accelerate launch` configures the script (accelerate 1.15, utils/launch.py)."""
        given = self._launched("accelerate launch", ACCELERATE_FLAGS)
        self.processes = given.get("--num_processes", "")
        told = {"--mixed_precision": "ACCELERATE_MIXED_PRECISION", "--gpu_ids": "CUDA_VISIBLE_DEVICES"}
        for option, variable in told.items():
            if option in given and given[option] != "all":
                self.environment.setdefault(variable, given[option])
        if "--cpu" in given:
            self.environment.setdefault("ACCELERATE_USE_CPU", "True")
        self.unapplied += [
            o
            for o in (
                "--config_file",
                "--use_deepspeed",
                "--use_fsdp",
                "--use_megatron_lm",
                "--use_parallelism_config",
                "--tpu",
                "--deepspeed_config_file",
                "--dynamo_backend",
            )
            if o in given
        ]

    def torchrun(self) -> None:
        given = self._launched("torchrun", TORCHRUN_FLAGS)
        self._ranks(given)

    def distributed_launch(self) -> None:
        given = self._launched("torch.distributed.launch", TORCHRUN_FLAGS)
        self._ranks(given)
        if "--use_env" not in given:
            self.before.append("--local-rank=0")

    def _ranks(self, given: dict[str, str]) -> None:
        """Set the environment of a process that its launcher started alone."""
        self.processes = given.get("--nproc_per_node", "")
        if given.get("--nnodes", "1") not in ("1", "1:1"):
            self.processes = f"{self.processes or '1'} x {given['--nnodes']}"
        self._alone()

    def _alone(self) -> None:
        self.environment |= variables_of_one()

    def deepspeed(self) -> None:
        given = self._launched("deepspeed", DEEPSPEED_FLAGS)
        self.processes = given.get("--num_gpus", "")
        self._alone()
        if "--no_local_rank" not in given:
            self.before.append("--local_rank=0")

    def lightning(self) -> None:
        """`lightning run model`, `lightning run`, `fabric run` and `fabric run model` (lightning 2.6, fabric/cli.py)."""
        if self._first("run") != "run":
            raise UsageError(f"only `lightning run` and `fabric run` start a training; got {self.words[0]}.")
        self.words.pop(0)
        if self.words[:1] == ["model"]:
            self.words.pop(0)
        given = self._launched("fabric run", frozenset({"--help"}))
        self.processes = given.get("--devices", "")
        self.environment |= {"LT_CLI_USED": "1", "LT_DEVICES": "1", "LT_NUM_NODES": "1"}
        for name in ("accelerator", "precision"):
            if f"--{name}" in given:
                self.environment[f"LT_{name.upper()}"] = given[f"--{name}"]
        self.unapplied += ["--strategy"] if "--strategy" in given else []


def _is_another(named: str) -> bool:
    """Whether a command names another Python than the one running here."""
    if os.sep in named:
        return Path(named).absolute().parent != Path(sys.executable).absolute().parent
    version = _PYTHON.fullmatch(named)
    major, minor = sys.version_info[:2]
    return version is not None and version[2] not in (None, str(major), f"{major}.{minor}")


def variables_of_one() -> dict[str, str]:
    """The environment of a process that its launcher started alone."""
    return {
        **dict.fromkeys(("RANK", "LOCAL_RANK", "GROUP_RANK"), "0"),
        **dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE"), "1"),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


_LAUNCHERS: dict[str, Callable[[_Reading], None]] = {
    "accelerate": _Reading.accelerate,
    "accelerate-launch": _Reading.accelerate_launch,
    "torchrun": _Reading.torchrun,
    "torch.distributed.launch": _Reading.distributed_launch,
    "deepspeed": _Reading.deepspeed,
    "lightning": _Reading.lightning,
    "fabric": _Reading.lightning,
}
