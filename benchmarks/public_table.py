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
    Script(_TORCH, "mnist/main.py", "--epochs 4", judged="right"),
    Script(_TORCH, "vae/main.py", "--epochs 6", judged="right: reconstructions beside the mean picture"),
    Script("karpathy/nanoGPT", "train.py", _NANO, made.characters, judged="right"),
    Script(_ACCELERATE, "examples/nlp_example.py", needs=made.hub, judged="right: a warm-up of 100 steps outlasts the 48 updates on stand-in rows, at 2e-5 from random weights; the made pairs do repeat"),
    Script(_LIGHTNING, "examples/pytorch/basics/transformer.py", needs=made.running_text, judged="missed: it learns to copy, the model is given the very words that it is to predict"),
    Script("keras-team/keras", "examples/demo_mnist_convnet.py", judged="right"),
    Script(_TRL, "trl/scripts/sft.py", f"{_TINY} --dataset_name stories --eval_strategy epoch", made.hub, judged="right but timid: 96 updates at 2e-5 from random weights; the labels of its chunked loss are not seen"),
    Script(_SENTENCES, f"{_ST}/sts/training_stsbenchmark.py", "bert-base-cased", made.sentences, folder="{made}/sets", judged="right: its scores are behind the constant answer at the end, its order is not"),
    Script("pytorch/ignite", "examples/mnist/mnist.py", "--epochs 2", judged="right: 32 updates, and the nearest rows tell more by then"),
    Script("skorch-dev/skorch", "examples/cli/train.py", "net", judged="right: 20 held-out rows"),
    Script("vwxyzjn/cleanrl", "cleanrl/dqn.py", f"{_STEPS} --learning-starts 1000", folder=".", packages=(".",), judged="right: reinforcement learning cannot be judged"),
    Script("lucidrains/x-transformers", "train_copy.py", judged="right: 100,000 batches planned, cut after 190; its score on training rows is told"),
    Script("huggingface/peft", "examples/sequence_classification/peft_no_lora_accelerate.py",
           "--model_name_or_path bert-base-cased --output_dir {made}/out --seed 1", made.hub, judged="right: prompts in front of a frozen random body cannot be learned; the made pairs do repeat"),
    Script("karpathy/makemore", "makemore.py", "--max-steps 300 --n-layer 2", judged="right"),
    Script(_TORCH, "regression/main.py", judged="right"),
    Script(_TORCH, "mnist_forward_forward/main.py", "--epochs 30 --train_size 1000 --test_size 300", judged="right: a loss of its own; its test error stays at 0.9 in 30 epochs"),
    Script(_TORCH, "word_language_model/main.py", "--data {made}/words --epochs 2", made.words, judged="right"),
    Script(_TORCH, "time_sequence_prediction/train.py", "--steps 1", made.waves, judged="right: the pickled array of its own generator is refused by torch.load since torch 2.6"),
    Script(_TORCH, "reinforcement_learning/reinforce.py", judged="right: reinforcement learning cannot be judged"),
    Script(_TORCH, "gat/main.py", "--epochs 60", made.cora, judged="the verdict is; the warning is false: dropout of 0.6, and 15 updates that learn fast"),
    Script(_TORCH, "siamese_network/main.py", "--epochs 1", judged="right: 16 updates, and the nearest rows tell more by then"),
    Script(_TORCH, "mnist_rnn/main.py", "--epochs 4", judged="right: 96 updates, and the nearest rows tell far more by then"),
    Script(_TORCH, "dcgan/main.py", _DCGAN, judged="right: adversarial"),
    Script("karpathy/minGPT", "projects/adder/adder.py", packages=(".",), judged="right, but nothing was recorded: the loop makes worker processes anew behind its end until the time is over"),
    Script("karpathy/ng-video-lecture", "bigram.py", judged="right"),
    Script(_ACCELERATE, "examples/complete_nlp_example.py", "--checkpointing_steps epoch", made.hub, judged="right: as nlp_example.py"),
    Script(_ACCELERATE, "examples/by_feature/cross_validation.py", "--num_folds 3", made.hub, judged="right: as nlp_example.py"),
    Script(_ACCELERATE, "examples/by_feature/gradient_accumulation.py", "--gradient_accumulation_steps 2", made.hub, judged="right: as nlp_example.py"),
    Script(_ACCELERATE, "examples/by_feature/early_stopping.py", needs=made.hub, judged="right: as nlp_example.py; it stops itself after 9 updates"),
    Script(_ACCELERATE, "examples/by_feature/memory.py", needs=made.hub, judged="right: as nlp_example.py"),
    Script(_LIGHTNING, "examples/pytorch/bug_report/bug_report_model.py", judged="right: one update on random rows, and a sum as its loss"),
    Script(_LIGHTNING, "examples/fabric/image_classifier/train_fabric.py", "--epochs 2", judged="right"),
    Script(_LIGHTNING, "examples/fabric/kfold_cv/train_fabric.py", "--epochs 2 --folds 3", judged="right"),
    Script("pytorch/ignite", "examples/reinforcement_learning/actor_critic.py", judged="right, for another reason than it tells: only its value estimate has labels"),
    Script("keras-team/keras", "examples/demo_functional.py", judged="right: both inputs and targets are random"),
    Script("keras-team/keras", "examples/demo_custom_torch_workflow.py", judged="right"),
    Script("keras-team/keras", "examples/demo_custom_tf_workflow.py", judged="right: Keras 3.15 has no backend.Variable"),
    Script("keras-team/keras", "examples/demo_custom_layer_backend_agnostic.py", judged="right: both inputs and targets are random"),
    Script("vwxyzjn/cleanrl", "cleanrl/ppo.py", _STEPS, folder=".", packages=(".",), judged="right, for another reason than it tells: only its value estimate has labels"),
    Script(_TRL, "trl/scripts/dpo.py", f"{_TINY} --dataset_name preference", made.hub, judged="right: preferences have no labels of rows"),
    Script(_TRL, "trl/scripts/reward.py", f"{_TINY} --dataset_name preference --eval_strategy epoch", made.hub, judged="right"),
    Script("microsoft/huggingface-transformers", "examples/pytorch/language-modeling/run_mlm.py",
           "--model_name_or_path bert-base-cased --train_file {made}/words/train.txt --validation_file "
           "{made}/words/valid.txt --line_by_line --do_train --do_eval --output_dir {made}/out", made.words, judged="right: a script of 2021, transformers 5 has no overwrite_output_dir"),
]  # fmt: skip
