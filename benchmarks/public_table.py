"""The public scripts that are checked: where they are, their arguments, their stand-in data, and whether what was said is right."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import public_standins as made


@dataclass(frozen=True)
class Script:
    """One script of a public repository."""

    repository: str
    path: str
    arguments: str = ""
    needs: Callable[[Path, Path], None] | None = None
    """Makes the stand-in data: in the folder for all of them, or in the checkout."""
    folder: str = ""
    """Where in the checkout it is run; the script's own folder by default."""
    packages: tuple[str, ...] = ()
    """Folders of the checkout that are imported from."""
    environment: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""
    judged: str = ""


_TORCH, _LIGHTNING, _ACCELERATE = "pytorch/examples", "Lightning-AI/pytorch-lightning", "huggingface/accelerate"
_SENTENCES, _TRL = "huggingface/sentence-transformers", "huggingface/trl"
_NANO = (
    "config/train_shakespeare_char.py --device=cpu --compile=False --eval_iters=20 --log_interval=1 --block_size=64 "
    "--batch_size=12 --n_layer=4 --n_head=4 --n_embd=128 --max_iters=2000 --lr_decay_iters=2000 --dropout=0.0"
)
_DCGAN = "--dataset mnist --dataroot . --niter 1 --batchSize 32 --ngf 16 --ndf 16"
_STEPS = "--total-timesteps 8000 --no-cuda"
_ST = "examples/sentence_transformer/training"
_TINY = "--model_name_or_path made/gpt2 --output_dir {made}/out --report_to none"

SCRIPTS = [
    Script(_TORCH, "mnist/main.py", "--epochs 4"),
    Script(_TORCH, "vae/main.py", "--epochs 6"),
    Script("karpathy/nanoGPT", "train.py", _NANO, made.characters),
    Script(_ACCELERATE, "examples/nlp_example.py", needs=made.hub),
    Script(_LIGHTNING, "examples/pytorch/basics/transformer.py", needs=made.running_text),
    Script("keras-team/keras", "examples/demo_mnist_convnet.py"),
    Script(_TRL, "trl/scripts/sft.py", f"{_TINY} --dataset_name stories --eval_strategy epoch", made.hub),
    Script(_SENTENCES, f"{_ST}/sts/training_stsbenchmark.py", "bert-base-cased", made.sentences, folder="{made}/sets"),
    Script("pytorch/ignite", "examples/mnist/mnist.py", "--epochs 2"),
    Script("skorch-dev/skorch", "examples/cli/train.py", "net"),
    Script("vwxyzjn/cleanrl", "cleanrl/dqn.py", f"{_STEPS} --learning-starts 1000", folder=".", packages=(".",)),
    Script("lucidrains/x-transformers", "train_copy.py"),
    Script("huggingface/peft", "examples/sequence_classification/peft_no_lora_accelerate.py",
           "--model_name_or_path bert-base-cased --output_dir {made}/out --seed 1", made.hub),
    Script("karpathy/makemore", "makemore.py", "--max-steps 300 --n-layer 2"),
    Script(_TORCH, "regression/main.py"),
    Script(_TORCH, "mnist_forward_forward/main.py", "--epochs 30 --train_size 1000 --test_size 300"),
    Script(_TORCH, "word_language_model/main.py", "--data {made}/words --epochs 2", made.words),
    Script(_TORCH, "time_sequence_prediction/train.py", "--steps 1", made.waves),
    Script(_TORCH, "reinforcement_learning/reinforce.py"),
    Script(_TORCH, "gat/main.py", "--epochs 60", made.cora),
    Script(_TORCH, "siamese_network/main.py", "--epochs 1"),
    Script(_TORCH, "mnist_rnn/main.py", "--epochs 4"),
    Script(_TORCH, "dcgan/main.py", _DCGAN),
    Script("karpathy/minGPT", "projects/adder/adder.py", packages=(".",)),
    Script("karpathy/ng-video-lecture", "bigram.py"),
    Script(_ACCELERATE, "examples/complete_nlp_example.py", "--checkpointing_steps epoch", made.hub),
    Script(_ACCELERATE, "examples/by_feature/cross_validation.py", "--num_folds 3", made.hub),
    Script(_ACCELERATE, "examples/by_feature/gradient_accumulation.py", "--gradient_accumulation_steps 2", made.hub),
    Script(_ACCELERATE, "examples/by_feature/early_stopping.py", needs=made.hub),
    Script(_ACCELERATE, "examples/by_feature/memory.py", needs=made.hub),
    Script(_LIGHTNING, "examples/pytorch/bug_report/bug_report_model.py"),
    Script(_LIGHTNING, "examples/fabric/image_classifier/train_fabric.py", "--epochs 2"),
    Script(_LIGHTNING, "examples/fabric/kfold_cv/train_fabric.py", "--epochs 2 --folds 3"),
    Script("pytorch/ignite", "examples/reinforcement_learning/actor_critic.py"),
    Script("pytorch/ignite", "examples/siamese_network/siamese_network.py", "--epochs 1"),
    Script("keras-team/keras", "examples/demo_functional.py"),
    Script("keras-team/keras", "examples/demo_custom_torch_workflow.py"),
    Script("keras-team/keras", "examples/demo_custom_tf_workflow.py"),
    Script("keras-team/keras", "examples/demo_custom_layer_backend_agnostic.py"),
    Script("vwxyzjn/cleanrl", "cleanrl/ppo.py", _STEPS, folder=".", packages=(".",)),
    Script(_TRL, "trl/scripts/dpo.py", f"{_TINY} --dataset_name preference", made.hub),
    Script(_TRL, "trl/scripts/reward.py", f"{_TINY} --dataset_name preference --eval_strategy epoch", made.hub),
    Script(_SENTENCES, f"{_ST}/matryoshka/matryoshka_sts.py", "bert-base-cased", made.sentences, folder="{made}/sets"),
    Script("skorch-dev/skorch", "examples/word_language_model/train.py",
           "--data {made}/words --epochs 2 --no-cuda --data-limit 4000", made.words),
    Script("microsoft/huggingface-transformers", "examples/pytorch/language-modeling/run_mlm.py",
           "--model_name_or_path bert-base-cased --train_file {made}/words/train.txt --validation_file "
           "{made}/words/valid.txt --line_by_line --do_train --do_eval --output_dir {made}/out", made.words),
]  # fmt: skip
