"""The environments: what is installed in each, and what is checked there."""

from __future__ import annotations

from dataclasses import dataclass, field

TORCH = ("torch",)
# What the packages beside torch need, as pip's --no-deps is given it: torch itself is not to be fetched a second time.
LIGHTNING = ("lightning-utilities", "torchmetrics", "tqdm", "packaging", "aiohttp", "aiosignal", "aiohappyeyeballs",
             "attrs", "frozenlist", "idna", "multidict", "propcache", "yarl", "pyyaml")  # fmt: skip
HUB = ("huggingface_hub", "safetensors", "psutil", "tqdm", "packaging", "pyyaml", "filelock", "requests", "urllib3",
       "charset-normalizer", "certifi", "idna", "httpx2", "httpcore2", "anyio", "h11", "sniffio", "truststore",
       "hf-xet", "click", "typer", "shellingham")  # fmt: skip
TRANSFORMERS = ("transformers", "tokenizers", "accelerate", "regex", *HUB)
OLD_TRANSFORMERS = ("transformers==4.46.0", "tokenizers==0.20.3", "huggingface_hub==0.26.0", "accelerate==1.1.0", "regex",
                    *HUB[1:])  # fmt: skip
KERAS = ("keras", "absl-py", "h5py", "ml_dtypes", "namex", "optree", "packaging", "typing_extensions")
TORCH_NEEDS = ("filelock", "typing_extensions", "sympy", "mpmath", "networkx", "fsspec", "setuptools")
LM = ("tokenizers", "tiktoken", "pyarrow", "xxhash", "rensa", "rapidfuzz", "license-expression", "boolean.py", "regex",
      *HUB)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Environment:
    """An environment of a user's.

    Args:
        has: the packages that it is for; what they require is there as well.
        installed: what is installed beside Trainwright's own requirements, with versions of its own where they are given.
        base: what is there already: `torch`, or nothing but Trainwright.
    """

    has: tuple[str, ...]
    scripts: tuple[str, ...]
    installed: tuple[str, ...]
    base: str = "torch"
    python: str = ""
    with_needs: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    in_ci: bool = False
    """Whether CI makes it for real; the others run there with all else hidden."""


ENVIRONMENTS = {
    "torch": Environment(has=TORCH, scripts=("torch_loop.py",), installed=(), in_ci=True),
    "lightning": Environment(
        has=("torch", "lightning"), scripts=("lightning_fit.py", "torch_loop.py"),
        installed=("lightning", *LIGHTNING),
    ),
    "accelerate": Environment(
        has=("torch", "accelerate"), scripts=("accelerate_loop.py", "torch_loop.py"),
        installed=("accelerate", *HUB),
    ),
    "transformers": Environment(
        has=("torch", "transformers", "accelerate"), scripts=("trainer.py",), installed=TRANSFORMERS,
    ),
    "keras-jax": Environment(
        has=("keras", "jax"), scripts=("keras_fit.py",), installed=(*KERAS, "jax", "jaxlib"), base="", with_needs=True,
        variables={"KERAS_BACKEND": "jax"},
    ),
    "keras-tensorflow": Environment(
        has=("keras", "tensorflow-cpu"), scripts=("keras_fit.py",), installed=("keras", "tensorflow-cpu"), base="",
        with_needs=True, variables={"KERAS_BACKEND": "tensorflow"},
    ),
    "keras-torch": Environment(
        has=("keras", "torch"), scripts=("keras_fit.py", "torch_loop.py"), installed=KERAS,
        variables={"KERAS_BACKEND": "torch"},
    ),
}  # fmt: skip
# The oldest versions that are promised (seams/requirements.py), and the newest Python. Made for real only.
VERSIONS = {
    "torch-2.4": Environment(
        has=TORCH, scripts=("torch_loop.py", "torch_gpu.py"), installed=("torch==2.4.1", "numpy==1.26.4", *TORCH_NEEDS), base="",
    ),
    "torch-2.2": Environment(
        has=TORCH, scripts=("torch_loop.py", "torch_gpu.py"), installed=("torch==2.2.2", "numpy==1.26.4", *TORCH_NEEDS), base="",
    ),
    "transformers-4.46": Environment(has=TORCH, scripts=("trainer.py", "accelerate_loop.py"), installed=OLD_TRANSFORMERS),
    "transformers-4.41": Environment(
        has=TORCH, scripts=("trainer.py",),
        installed=("transformers==4.41.0", "tokenizers==0.19.1", "huggingface_hub==0.23.5", *OLD_TRANSFORMERS[3:]),
    ),
    "lightning-2.2": Environment(
        has=TORCH, scripts=("lightning_fit.py",), installed=("lightning==2.2.0", "setuptools==69.5.1", *LIGHTNING),
    ),
    "pytorch-lightning-2.2": Environment(
        has=TORCH, scripts=("lightning_fit.py pl",),
        installed=("pytorch-lightning==2.2.0", "setuptools==69.5.1", *LIGHTNING),
    ),
    "keras-3.7-jax": Environment(
        has=("keras", "jax"), scripts=("keras_fit.py",), installed=("keras==3.7.0", *KERAS[1:], "jax", "jaxlib"), base="",
        with_needs=True, variables={"KERAS_BACKEND": "jax"},
    ),
    "keras-3.7-torch": Environment(
        has=("keras", "torch"), scripts=("keras_fit.py",), installed=("keras==3.7.0", *KERAS[1:]),
        variables={"KERAS_BACKEND": "torch"},
    ),
    "keras-3.7-tensorflow-2.16": Environment(
        has=("keras", "tensorflow-cpu"), scripts=("keras_fit.py",),
        installed=("keras==3.7.0", "tensorflow-cpu==2.16.2", "numpy==1.26.4"), base="", with_needs=True,
        variables={"KERAS_BACKEND": "tensorflow"},
    ),
    "python-3.12": Environment(
        has=TORCH, scripts=("torch_loop.py",), installed=("torch", "numpy", *TORCH_NEEDS), base="", python="python3.12",
    ),
    "python-3.13": Environment(
        has=TORCH, scripts=("torch_loop.py",), installed=("torch", "numpy", *TORCH_NEEDS), base="", python="python3.13",
    ),
    "lm": Environment(has=("torch",), scripts=("lm", "torch_loop.py"), installed=LM),
}  # fmt: skip
