"""The launchers, wrappers and runners that may stand before a script, and what of their options matters to one process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
# Of their options, those whose value may look like a program, and those that say how many processes.
VALUED = frozenset({"-n", "--name", "-p", "--prefix", "--python", "--with", "--env-file", "--extra", "--group",
                    "-u", "--unset", "-o", "--output", "-f", "--format", "-a"})  # fmt: skip
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
