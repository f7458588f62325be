"""The options of launchers, wrappers and runners: which ones take a value."""

from __future__ import annotations

# Options without a value; all others have one. `-` within a name may replace `_`.
ACCELERATE_FLAGS = frozenset({
    "-h", "-m", "-q", "--help", "--module", "--no_python", "--quiet", "--cpu", "--debug", "--downcast_bf16",
    "--dynamo_use_dynamic", "--dynamo_use_fullgraph", "--dynamo_use_regional_compilation", "--enable_cpu_affinity",
    "--fp8_use_autocast_during_eval", "--multi_gpu", "--no_tpu_cluster", "--same_network", "--tpu", "--tpu_cluster",
    "--tpu_use_sudo", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm", "--use_parallelism_config",
})  # fmt: skip


TORCHRUN_FLAGS = frozenset({
    "-h", "-m", "--help", "--module", "--no_python", "--run_path", "--standalone", "--virtual_local_rank", "--use_env",
})  # fmt: skip


DEEPSPEED_FLAGS = frozenset({
    "-h", "-m", "--help", "--module", "--no_python", "--no_local_rank", "--no_ssh", "--no_ssh_check", "--force_multi",
    "--save_pid", "--elastic_training", "--bind_cores_to_rank",
})  # fmt: skip


# Programs that run another program: options that take a value, and the number of words between them and the program.
WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    "nohup": (frozenset(), 0),
    "exec": (frozenset({"-a"}), 0),
    "setsid": (frozenset(), 0),
    "caffeinate": (frozenset(), 0),
    "time": (frozenset({"-f", "--format", "-o", "--output"}), 0),
    "env": (frozenset({"-u", "--unset"}), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "ionice": (frozenset({"-c", "-n", "--class", "--classdata"}), 0),
    "stdbuf": (frozenset({"-i", "-o", "-e", "--input", "--output", "--error"}), 0),
    "timeout": (frozenset({"-k", "-s", "--kill-after", "--signal"}), 1),
    "taskset": (frozenset(), 1),
}


# Runners of environments and clusters have too many options to list: the program after them is recognized directly.
RUNNERS = ("uv run", "poetry run", "pipenv run", "pdm run", "hatch run", "rye run", "pixi run", "conda run", "mamba run",
            "micromamba run")  # fmt: skip


RUNNERS_VALUED = frozenset({"-n", "--name", "-p", "--prefix", "--python", "--with", "--env-file", "--extra", "--group"})


MANY = ("srun", "mpirun", "mpiexec", "horovodrun")


MANY_VALUED = frozenset({"-n", "-np", "--np", "--num-proc", "--ntasks", "-N", "--nodes", "-H", "--hosts"})


PROCESSES = ("-n", "-np", "--np", "--num-proc", "--ntasks")


MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate.commands.launch": "accelerate-launch",
    "accelerate.commands.accelerate_cli": "accelerate",
    "deepspeed": "deepspeed",
    "deepspeed.launcher.runner": "deepspeed",
}


# Options that change the folder or the environment in ways that are not supported here.
NOT_DONE = {
    "env": ("-i", "--ignore-environment", "-C", "--chdir", "-S", "--split-string"),
    "uv run": ("--directory", "--project"),
    "poetry run": ("-C", "--directory", "-P", "--project"),
    "conda run": ("--cwd",),
    "srun": ("-D", "--chdir"),
    "mpirun": ("-wd", "--wdir"),
}
