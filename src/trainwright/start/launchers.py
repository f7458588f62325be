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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainwright.errors import UsageError
from trainwright.start.program import Program

# Options without a value; all others have one. `-` within a name may replace `_`.
ACCELERATE_FLAGS = frozenset({
    "-h", "-m", "-q", "--help", "--module", "--no_python", "--quiet", "--cpu", "--debug", "--downcast_bf16",
    "--dynamo_use_dynamic", "--dynamo_use_fullgraph", "--dynamo_use_regional_compilation", "--enable_cpu_affinity",
    "--fp8_use_autocast_during_eval", "--multi_gpu", "--no_tpu_cluster", "--same_network", "--tpu", "--tpu_cluster",
    "--tpu_use_sudo", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm", "--use_parallelism_config",
})  # fmt: skip
ACCELERATE_UNAPPLIED = (
    "--config_file", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm", "--use_parallelism_config", "--tpu",
    "--deepspeed_config_file", "--dynamo_backend",
)  # fmt: skip
TORCHRUN_FLAGS = frozenset({
    "-h", "-m", "--help", "--module", "--no_python", "--run_path", "--standalone", "--virtual_local_rank", "--use_env",
})  # fmt: skip
DEEPSPEED_FLAGS = frozenset({
    "-h", "-m", "--help", "--module", "--no_python", "--no_local_rank", "--no_ssh", "--no_ssh_check", "--force_multi",
    "--save_pid", "--elastic_training", "--bind_cores_to_rank",
})  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """A program that starts a script in several processes, by options that are all known."""

    flags: frozenset[str]
    """Its options without a value."""
    processes: str
    """The option that says how many processes."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it sets."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables that it sets to the value of an option, by these options."""
    unapplied: tuple[str, ...] = ()
    """Options whose effect a check does without."""
    is_rank: bool = False
    """Whether it sets the variables of a rank (`variables_of_one`)."""
    local_rank: tuple[str, str] = ("", "")
    """The argument that it passes to the script, and the option without which it does."""


TORCHRUN = Launcher(flags=TORCHRUN_FLAGS, processes="--nproc_per_node", is_rank=True)
# accelerate 1.15, utils/launch.py
ACCELERATE = Launcher(
    flags=ACCELERATE_FLAGS,
    processes="--num_processes",
    variables={
        "--mixed_precision": "ACCELERATE_MIXED_PRECISION",
        "--gpu_ids": "CUDA_VISIBLE_DEVICES",
        "--cpu": "ACCELERATE_USE_CPU",
    },
    unapplied=ACCELERATE_UNAPPLIED,
)
# lightning 2.6, fabric/cli.py
FABRIC = Launcher(
    flags=frozenset({"--help"}),
    processes="--devices",
    environment={"LT_CLI_USED": "1", "LT_DEVICES": "1", "LT_NUM_NODES": "1"},
    variables={"--accelerator": "LT_ACCELERATOR", "--precision": "LT_PRECISION"},
    unapplied=("--strategy",),
)
LAUNCHERS = {
    "accelerate launch": ACCELERATE,
    "accelerate-launch": ACCELERATE,
    "torchrun": TORCHRUN,
    "torch.distributed.launch": Launcher(
        flags=TORCHRUN_FLAGS, processes="--nproc_per_node", is_rank=True, local_rank=("--local-rank=0", "--use_env")
    ),
    "deepspeed": Launcher(
        flags=DEEPSPEED_FLAGS, processes="--num_gpus", is_rank=True, local_rank=("--local_rank=0", "--no_local_rank")
    ),
    "lightning run": FABRIC,
    "fabric run": FABRIC,
}
# Modules that are launchers, as the command that each stands for.
MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate.commands.launch": "accelerate-launch",
    "accelerate.commands.accelerate_cli": "accelerate",
    "deepspeed": "deepspeed",
    "deepspeed.launcher.runner": "deepspeed",
}

# Programs that run another program, which is recognised behind their options: there are too many of these to list.
RUNNERS = ("uv run", "poetry run", "pipenv run", "pdm run", "hatch run", "rye run", "pixi run", "conda run", "mamba run",
           "micromamba run")  # fmt: skip
MANY = ("srun", "mpirun", "mpiexec", "horovodrun")
WRAPPERS = ("nohup", "exec", "setsid", "caffeinate", "time", "env", "nice", "ionice", "stdbuf", "timeout", "taskset")
# Those that take a word more before the program, as `timeout 2h`.
WITH_OPERAND = ("timeout", "taskset")
# Options of runners whose value may look like a program, as the name of an environment; and those of MANY for their processes.
RUNNERS_VALUED = frozenset({"-n", "--name", "-p", "--prefix", "--python", "--with", "--env-file", "--extra", "--group"})
PROCESSES = ("-n", "-np", "--np", "--num-proc", "--ntasks")
# Options that change the folder or the environment in ways that are not supported here.
NOT_DONE = {
    "env": ("-i", "--ignore-environment", "-C", "--chdir", "-S", "--split-string"),
    "uv run": ("--directory", "--project"),
    "poetry run": ("-C", "--directory", "-P", "--project"),
    "conda run": ("--cwd",),
    "srun": ("-D", "--chdir"),
    "mpirun": ("-wd", "--wdir"),
}

UNDERSTOOD = (
    "python, accelerate launch, torchrun, python -m torch.distributed.run, deepspeed, lightning run, fabric run, "
    "horovodrun, mpirun, srun, uv run, poetry run, pipenv run, pdm run, conda run, env, nohup, time, nice, timeout, "
    "and NAME=value before any of them"
)

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PYTHON = re.compile(r"(python|pythonw|pypy)(\d+(\.\d+)?)?(\.exe)?")

# Python's short options, which may be combined in one word, the last of which may take a value.
_PYTHON_SHORT = re.compile(r"-[bBdEhiIOPqsSuvVx]*([cmWX])(.*)", re.DOTALL)


def is_there(name: str) -> bool:
    """Whether there is such a file or folder; no name is too long to ask."""
    try:
        return Path(name).exists()
    except OSError:
        return False


def is_command(word: str) -> bool:
    """Whether a word begins a supported command: a name, or the path of a program of that name (`.venv/bin/torchrun`)."""
    return _is_known(word) and (not Path(word).is_file() or (os.sep in word and os.access(word, os.X_OK)))


def understood(words: Sequence[str]) -> Program:
    """The program that a command line would start.

    Raises:
        UsageError: if the command is not supported, or starts no script.
    """
    if words and " " in words[0] and not is_there(words[0]):
        try:
            words = [*shlex.split(words[0]), *words[1:]]
        except ValueError as error:
            raise UsageError(f"a command in one word must be quoted as for a shell; {words[0]!r}: {error}.") from None
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
    names = {name.split()[0] for name in (*LAUNCHERS, *RUNNERS, *MANY, *WRAPPERS)}
    return _base(word) in names or _is_python(word) or _ASSIGNMENT.fullmatch(word) is not None


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
        while self.words and (found := _ASSIGNMENT.fullmatch(self.words[0])):
            self.environment[found[1]] = found[2]
            self.words.pop(0)
        word = self._first("a command")
        if _is_script(word) or (Path(word).is_file() and not _is_known(word)):
            return
        base = _base(word)
        pair = " ".join([base, *self.words[1:2]])
        if _is_python(word):
            self._python(self.words.pop(0))
        elif base in LAUNCHERS or pair in LAUNCHERS:
            del self.words[: 1 if base in LAUNCHERS else 2]
            self._launched(base if base in LAUNCHERS else pair)
        elif base in (*WRAPPERS, *MANY) or pair in RUNNERS:
            del self.words[: 2 if pair in RUNNERS else 1]
            self.launcher = base if base in MANY else self.launcher
            self.elsewhere = pair if pair in RUNNERS else self.elsewhere
            self._up_to_command(pair if pair in RUNNERS else base)
        elif only := next((name for name in LAUNCHERS if name.startswith(f"{base} ")), ""):
            raise UsageError(f"only `{only}` starts a training; got {pair}.")
        else:
            raise UsageError(f"a command must begin with the script or with one of {UNDERSTOOD}; got {word}.")

    def _first(self, wanted: str) -> str:
        if not self.words:
            raise UsageError(
                f"the command is incomplete: {wanted} must follow. Write it as you would to start the training."
            )
        return self.words[0]

    def _up_to_command(self, name: str) -> None:
        """Skip options that are not all known, up to the program that is started."""
        while self.words and self.words[0].startswith("-"):
            option, value = self._option(name)
            if option == "--":
                break
            if option in ("-m", "--module") and name == "uv run":
                self.module = True
                self._first("a module")
                return
            is_valued = name in RUNNERS and option in RUNNERS_VALUED
            if value is None and (is_valued or not (self._begins() or self.words[0].startswith("-"))):
                self._first(f"the value of {option}")
                value = self.words.pop(0)
            if option in PROCESSES and name in MANY and value:
                self.processes = value
            if option in ("-u", "--unset") and name == "env":
                self.environment[value or ""] = None
        if name in WITH_OPERAND and not self._begins():
            self.words.pop(0)
        self.command()

    def _begins(self) -> bool:
        """Whether the next word is a program or a script."""
        word = self._first("a command")
        return _is_known(word) or _is_script(word)

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
        self.module = not is_launcher_module(self._first("a module"))
        if not self.module:
            self.words[0] = MODULES[self.words[0]]
            self.command()

    # Launchers

    def _launched(self, name: str) -> None:
        """Read the launcher's options, and set what it would set for one process."""
        launcher = LAUNCHERS[name]
        self.launcher = {"accelerate-launch": "accelerate launch", "lightning run": "fabric run"}.get(name, name)
        if self.launcher == "fabric run" and self.words[:1] == ["model"]:
            self.words.pop(0)
        given: dict[str, str] = {}
        while self.words and self.words[0].startswith("-"):
            option, value = self._option(self.launcher)
            if option == "--":
                break
            option = "--" + option[2:].replace("-", "_") if option.startswith("--") else option
            if value is None and option not in launcher.flags:
                self._first(f"the value of {option}")
                value = self.words.pop(0)
            given[option] = value or ""
        self.module = self.module or bool({"-m", "--module"} & given.keys())
        if "--no_python" in given:
            self.command()
        self._first("a script")
        self.processes = given.get(launcher.processes, "")
        if launcher.is_rank and given.get("--nnodes", "1") not in ("1", "1:1"):
            self.processes = f"{self.processes or '1'} x {given['--nnodes']}"
        self.environment |= {**launcher.environment, **(variables_of_one() if launcher.is_rank else {})}
        for option, variable in launcher.variables.items():
            if given.get(option, "all") != "all":
                self.environment.setdefault(variable, given[option] or "True")
        self.unapplied += [option for option in launcher.unapplied if option in given]
        argument, without = launcher.local_rank
        self.before += [argument] if argument and without not in given else []


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
