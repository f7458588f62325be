"""Commands that start a training: what they run, with which arguments and environment; and what is not understood."""

import subprocess
import sys
from pathlib import Path

import pytest
from test_bad_input import command

from trainwright.errors import UsageError
from trainwright.start.launchers import ACCELERATE_FLAGS, TORCHRUN_FLAGS, UNDERSTOOD, is_command, understood
from trainwright.start.scripts import program_of

SCRIPT = "import os, sys\nsys.exit(f\"given {sys.argv[1:]} {os.environ.get('RANK')} {os.environ.get('GREETING')}\")\n"


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("python train.py", []),
        ("python -u -O train.py --lr 1", ["--lr", "1"]),
        ("python3 -W ignore -X dev train.py", []),
        ("/usr/bin/env python3 train.py", []),
        ("nohup python train.py a b", ["a", "b"]),
        ("time -p python -u train.py", []),
        ("time -o log.txt python train.py", []),
        ("nice -n 10 ionice -c 2 python train.py", []),
        ("timeout -k 5 2h python train.py", []),
        ("taskset -c 0,1 python train.py", []),
        ("stdbuf -oL python train.py", []),
        ("uv run train.py", []),
        ("uv run --with torch --python 3.12 train.py --lr 1", ["--lr", "1"]),
        ("uv run --frozen python train.py", []),
        ("poetry run python train.py", []),
        ("conda run -n python --no-capture-output python train.py", []),
        ("srun -u python -u train.py", []),
        ("srun -n 4 --gres=gpu:1 --partition long python -u train.py", []),
        ("mpirun -np 2 -x PATH python train.py", []),
        ("horovodrun -np 4 -H localhost:4 python train.py --lr 1", ["--lr", "1"]),
        ("accelerate launch train.py --mixed_precision x", ["--mixed_precision", "x"]),
        ("accelerate launch --multi_gpu --num_processes 2 --config_file c.yaml train.py", []),
        ("accelerate launch --num-processes=2 train.py --seed 1", ["--seed", "1"]),
        ("accelerate-launch --cpu train.py", []),
        ("python -m accelerate.commands.launch --cpu train.py", []),
        ("torchrun --standalone --nproc_per_node 4 train.py --lr 1", ["--lr", "1"]),
        ("torchrun --nproc-per-node=gpu train.py", []),
        ("python -m torch.distributed.run --nnodes 1:1 -t 3 train.py", []),
        ("python -m torch.distributed.launch --nproc_per_node 2 train.py", ["--local-rank=0"]),
        ("python -m torch.distributed.launch --use_env train.py", []),
        ("deepspeed --num_gpus 2 --master_port 29501 train.py --deepspeed d.json", ["--local_rank=0", "--deepspeed", "d.json"]),
        ("deepspeed --no_local_rank train.py", []),
        ("lightning run model --accelerator=cpu --devices 2 train.py --lr 1", ["--lr", "1"]),
        ("fabric run --precision bf16-mixed train.py", []),
        ("A=1 B= env -u C D='x y' python train.py", []),
        ("srun torchrun --nproc_per_node 2 train.py", []),
        ("accelerate launch --no_python python train.py", []),
    ],
)  # fmt: skip
def test_the_script_of_a_command_and_its_arguments(words, arguments):
    program = understood([words])
    assert (program.script, list(program.arguments), program.module) == ("train.py", arguments, False)


@pytest.mark.parametrize(
    "words",
    ["python -m pkg.train --lr 1", "python -um pkg.train --lr 1", "uv run -m pkg.train --lr 1", "torchrun -m pkg.train --lr 1",
     "accelerate launch --module pkg.train --lr 1", "python -mpkg.train --lr 1"],
)  # fmt: skip
def test_a_module_of_a_command(words):
    program = understood(words.split())
    assert (program.script, list(program.arguments), program.module) == ("pkg.train", ["--lr", "1"], True)


def test_the_environment_of_a_command():
    program = understood(
        ["A=1", "env", "-u", "GONE", "B=x=y", "accelerate", "launch", "--cpu", "--mixed_precision", "bf16", "t.py"]
    )
    assert program.environment == {
        "A": "1", "GONE": None, "B": "x=y", "ACCELERATE_USE_CPU": "True", "ACCELERATE_MIXED_PRECISION": "bf16",
    }  # fmt: skip
    alone = understood(["torchrun", "--nproc_per_node", "4", "t.py"]).environment
    assert (alone["RANK"], alone["LOCAL_RANK"], alone["WORLD_SIZE"]) == ("0", "0", "1")
    assert "MASTER_PORT" in alone


@pytest.mark.parametrize("name", ["python", "torchrun", "accelerate launch", "deepspeed"])
def test_a_launcher_named_by_its_path_is_no_script(name, tmp_path):
    """An environment's own one: `.venv/bin/torchrun train.py`."""
    name, *more = name.split()
    program, script = tmp_path / name, tmp_path / "t.py"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    script.write_text(SCRIPT)
    assert program_of(str(program), [*more, str(script), "--lr", "1"], module=False).script == str(script)


def test_what_is_said_of_a_command():
    assert understood(["torchrun", "--nproc_per_node", "4", "t.py"]).said == (
        "torchrun would start 4 processes; Trainwright checks one process of t.py. "
        "To compare what all see: torchrun --nproc_per_node 4 -m trainwright check t.py"
    )
    assert "without --use_deepspeed" in understood(["accelerate", "launch", "--use_deepspeed", "t.py"]).said
    assert "not with python2.7" in understood(["python2.7", "t.py"]).said
    assert understood(["python", "t.py"]).said == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bash", "train.sh"], UNDERSTOOD),
        (["accelerate", "config"], "accelerate launch"),
        (["lightning", "install"], "only `lightning run`"),
        (["python", "-c", "print(1)"], "-m MODULE must follow"),
        (["python"], "a script must follow"),
        (["torchrun", "--nproc_per_node"], "the value of --nproc_per_node must follow"),
        (["torchrun", "--nproc_per_node", "2"], "a script must follow"),
        (["env", "-C", "/tmp", "python", "t.py"], "env -C is not supported here"),
        (["uv", "run", "--directory", "x", "t.py"], "uv run --directory is not supported here"),
        (["uv", "pip", "install"], UNDERSTOOD),
        (["nohup"], "a command must follow"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_said(words, said):
    with pytest.raises(UsageError) as raised:
        understood(words)
    assert said in str(raised.value)


def test_a_file_of_a_launchers_name_is_a_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_command("accelerate") and is_command("CUDA_VISIBLE_DEVICES=0") and not is_command("train.py")
    Path("accelerate").write_text("pass")
    assert not is_command("accelerate")
    assert program_of("accelerate", ["launch"], module=False).arguments == ("launch",)


def test_the_flags_of_the_launchers_are_those_of_their_parsers():
    """Whatever takes a value in the installed accelerate and torch is no flag here, and the other way round."""
    launch = pytest.importorskip("accelerate.commands.launch")
    run = pytest.importorskip("torch.distributed.run")
    for parser, flags in ((launch.launch_command_parser(), ACCELERATE_FLAGS), (run.get_args_parser(), TORCHRUN_FLAGS)):
        valueless, valued = set(), set()
        for action in parser._actions:
            names = {o if not o.startswith("--") else f"--{o[2:].replace('-', '_')}" for o in action.option_strings}
            (valueless if action.nargs == 0 else valued).update(names)
        assert valueless <= flags, valueless - flags
        assert not valued & flags


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["--", "torchrun", "--nproc_per_node", "4", "train.py", "--lr", "1"],
        ["torchrun", "--nproc_per_node", "4", "train.py", "--lr", "1"],
        ["--", "GREETING=hello", "python", "-u", "train.py", "--lr", "1"],
        ["-m", "torch.distributed.run", "--nproc_per_node", "4", "train.py", "--lr", "1"],
    ],
    ids=["dashes", "bare", "assignment", "module"],
)
def test_one_process_of_a_command_is_checked(tmp_path, words):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = command(tmp_path, "check", *words, status=2)
    assert f"given ['--lr', '1'] {'0 None' if '4' in words else 'None hello'}" in done.stdout
    assert ("4 processes; Trainwright checks one process of train.py" in done.stderr) == ("4" in words)


@pytest.mark.slow
def test_a_python_path_of_a_command_is_searched(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "rows.py").write_text("ROWS = 128")
    (tmp_path / "train.py").write_text("import rows, sys\nsys.exit(f'there are {rows.ROWS}')\n")
    done = command(tmp_path, "check", "--", "PYTHONPATH=lib", "python", "train.py", status=2)
    assert "there are 128" in done.stdout


@pytest.mark.slow
def test_a_process_group_of_one_is_there_until_the_check_is_over(tmp_path):
    script = Path(__file__).parents[1] / "distributed" / "ddp_digits.py"
    command(tmp_path, "check", "--", "torchrun", "--nproc_per_node", "2", str(script), status=0)


def test_run_does_not_train_what_a_launcher_starts(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = command(tmp_path, "run", "torchrun", "train.py", status=2)
    assert "trainwright check" in done.stderr and "given" not in done.stdout


def test_the_command_inside_a_shell_script_is_told(tmp_path):
    text = "#!/bin/bash\nset -e\ncd x && python other.py\nexport A=1\nA=1 torchrun --nproc_per_node 2 \\\n  train.py --lr 1\n"
    (tmp_path / "train.sh").write_text(text)
    done = command(tmp_path, "check", "train.sh", status=2)
    assert "trainwright check -- A=1 torchrun --nproc_per_node 2 train.py --lr 1" in done.stderr
    assert "export" not in done.stderr and "set -e" not in done.stderr


def test_no_launcher_is_imported_to_understand_it():
    code = (
        "import sys; from trainwright.start.launchers import understood\n"
        "understood(['accelerate', 'launch', 'torchrun.py']); understood(['torchrun', 't.py'])\n"
        "assert not {'torch', 'accelerate'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
