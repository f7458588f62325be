"""The table of programs that other authors shipped inside packages; `{package}` is the package's folder."""

from __future__ import annotations

from collections.abc import Iterator

from exam.shipped import Shipped

_VISION = "torchvision==0.28.0"
_EINOPS = "einops==0.8.1"
_GYM = ("gym==0.17.3",)
_PLOTS = ("matplotlib==3.9.2", "contourpy==1.3.0", "cycler==0.12.1", "fonttools==4.54.1", "kiwisolver==1.4.7",
          "pyparsing==3.2.0")  # fmt: skip
_METRICS = ("evaluate==0.4.6",)
_CPU = (".cuda()", "")


def entries() -> list[Shipped]:
    """All of them, in a stable order."""
    return [*_installed(), *_pictures(), *_reinforcement(), *_characters(), *_keras()]


def _installed() -> Iterator[Shipped]:
    """Programs of packages that are installed here."""
    external = "test_utils/scripts/external_deps"
    slow = ('"lr": 2e-5', '"lr": 1e-3')
    yield Shipped("accelerate", f"{external}/test_performance.py", (), _METRICS, changes=(slow,))
    yield Shipped("accelerate", f"{external}/test_checkpointing.py", ("--num_epochs", "5"), _METRICS, changes=(slow,))
    model = ("--model_name_or_path", "made/gpt2", "--output_dir", "out", "--report_to", "none", "--use_cpu", "true",
             "--bf16", "false", "--logging_steps", "5", "--learning_rate", "1e-3", "--max_steps", "40",
             "--per_device_train_batch_size", "8")  # fmt: skip
    yield Shipped("trl", "scripts/sft.py", ("--dataset_name", "stories", *model))
    yield Shipped("trl", "scripts/dpo.py", ("--dataset_name", "preference", *model))
    yield Shipped("trl", "scripts/reward.py", ("--dataset_name", "preference", *model))
    yield Shipped("trl", "scripts/kto.py", ("--dataset_name", "judged", *model))


def _pictures() -> Iterator[Shipped]:
    """Classifiers of digits and other pictures."""
    vision = (_VISION,)
    yield Shipped("torch-optimizer==0.3.0", "examples/mnist.py", (), (*vision, "pytorch-ranger==0.1.1"),
                  changes=(("epochs: int = 15", "epochs: int = 3"),))  # fmt: skip
    yield Shipped("schedulefree==1.4.1", "examples/mnist/main.py", ("--epochs", "3"), vision)
    yield Shipped("pytorch_warmup==0.2.0", "examples/emnist/main.py", ("--epochs", "8", "--lr", "0.002", "--no-gpu"), vision,
                  (".", "examples/emnist", "src"))  # fmt: skip
    yield Shipped("opacus==1.6.0", "examples/mnist.py", ("--epochs", "5", "--device", "cpu"), vision)
    yield Shipped("opacus==1.6.0", "examples/imdb.py", ("--epochs", "6", "--sigma", "0.3", "--device", "cpu", "--workers", "0",
                  "--batch-size", "32"), vision)  # fmt: skip
    for kind, fewer in (("deterministic", ()), ("bayesian", ("--num_monte_carlo", "5"))):
        yield Shipped("bayesian-torch==0.5.0", f"bayesian_torch/examples/main_{kind}_mnist.py",
                      ("--mode", "train", "--epochs", "3", "--no-cuda", "--save_dir", "saved", *fewer), vision)  # fmt: skip
    for file in ("mnist", "mnist_with_tqdm_logger", "mnist_with_tensorboard", "mnist_save_resume_engine"):
        yield Shipped("pytorch-ignite==0.5.5", f"examples/mnist/{file}.py", ("--epochs", "3", "--lr", "0.1"), vision)
    split = (("[50_000, 10_000]", "[824, 200]"), ("num_workers=2", "num_workers=0"),
             ("epochs = 5", "epochs = 20"), ("epochs=5", "epochs=20"))  # fmt: skip
    for file in ("pure_pytorch", "poutyne_model", "poutyne_experiment", "train_with_metrics",
                 "train_with_custom_metrics"):  # fmt: skip
        yield Shipped("poutyne==1.19.0", f"examples/medium_post/{file}.py", (), vision, changes=split)
    yield Shipped("poutyne==1.19.0", "examples/basic_mnist_classification.py", (), vision, changes=split)
    for file in ("pytorch_lightning_example", "pytorch_lightning_manual_backward_example"):
        yield Shipped("pytorch_optimizer==4.1.0", f"examples/{file}.py", (), vision)
    for file in ("get_started_keras", "get_started_pytorch", "get_started_tensorflow_v2"):
        yield Shipped("adversarial-robustness-toolbox==1.20.1", f"examples/{file}.py")


def _reinforcement() -> Iterator[Shipped]:
    """Agents in small worlds."""
    package, short = "cleanrl==0.4.8", ("--total-timesteps", "3000", "--learning-starts", "500")
    for file in ("dqn", "c51"):
        yield Shipped(package, f"cleanrl/{file}.py", short, _GYM)
    for file in ("td3_continuous_action", "sac_continuous_action"):
        yield Shipped(package, f"cleanrl/{file}.py", ("--gym-id", "Pendulum-v0", "--total-timesteps", "1200",
                      "--learning-starts", "500"), _GYM)  # fmt: skip
    stable = (*_GYM, *_PLOTS, "stable-baselines3==1.1.0")
    yield Shipped(package, "cleanrl/ppo.py", ("--total-timesteps", "8000"), stable)
    worlds = ("gymnasium==1.2.0", "Farama-Notifications==0.0.4")
    for file in ("reinforce", "actor_critic"):
        yield Shipped("pytorch-ignite==0.5.5", f"examples/reinforcement_learning/{file}.py", (), worlds,
                      changes=(("args.max_episodes", "60"),))  # fmt: skip


def _characters() -> Iterator[Shipped]:
    """Models of the characters of an encyclopedia, whose text is in the packages."""
    text = (
        ("NUM_BATCHES = int(1e5)", "NUM_BATCHES = 40"), ("./data/enwik8.gz", "{package}/data/enwik8.gz"),
        ("int(95e6)", "int(2e5)"), ("int(90e6)", "int(1.8e5)"), _CPU, ("VALIDATE_EVERY  = 100", "VALIDATE_EVERY  = 20"),
        ("VALIDATE_EVERY = 100", "VALIDATE_EVERY = 20"), ("SEQ_LEN = 1024", "SEQ_LEN = 128"),
        ("SEQ_LEN = 512", "SEQ_LEN = 128"), ("SEQ_LEN = 256", "SEQ_LEN = 128"), ("GENERATE_LENGTH = 1024", "GENERATE_LENGTH = 64"),
        ("GENERATE_LENGTH = 512", "GENERATE_LENGTH = 64"),
        ("(256, 512, 1024, 2048, 4096)", "(128, 256)"), ("dim = 512", "dim = 64"), ("depth = 6", "depth = 2"),
        ("1e-4", "1e-3"),
    )  # fmt: skip
    needs = (_EINOPS, "einx==0.3.0", "frozendict==2.4.6", "loguru==0.7.3")
    for file in ("train_enwik8", "train_gpt_vae", "train_length_extrapolate"):
        yield Shipped("x-transformers==2.9.2", f"{file}.py", (), needs, changes=text)
    for file in ("train", "train_hybrid"):
        yield Shipped("minGRU-pytorch==0.2.1", f"{file}.py", (), (*needs, "accelerated-scan==0.2.0"), changes=text)


def _keras() -> Iterator[Shipped]:
    """Examples of Keras as it was before, which the Keras of today still runs."""
    for file, epochs in (
        ("imdb_cnn", 2), ("imdb_cnn_lstm", 2), ("imdb_bidirectional_lstm", 2), ("imdb_fasttext", 8),
    ):  # fmt: skip
        yield Shipped("Keras==2.3.1", f"examples/{file}.py", (), paths=(), changes=_epochs(epochs))
    sizes = (("60000, 784", "1024, 784"), ("10000, 784", "320, 784"))
    yield Shipped("Keras==2.3.1", "examples/mnist_mlp.py", (), paths=(), changes=(*sizes, *_epochs(6)))


def _epochs(count: int) -> tuple[tuple[str, str], ...]:
    """The settings of the examples of Keras, with fewer epochs."""
    names = ("epochs = ", "nb_epochs = ", "epochs=", "nb_epoch = ")
    usual = (1, 2, 3, 4, 5, 10, 12, 15, 20, 25, 30, 40, 50, 100, 200)
    return tuple((f"{name}{long}\n", f"{name}{count}\n") for name in names for long in usual if long > count)
