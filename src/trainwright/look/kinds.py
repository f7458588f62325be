"""The kinds of training, a module each, which knows what its kind does otherwise than others.

`of_loop.py`: the script's own loop, or a package's; it has the whole interface, and what is so unless a kind knows better.
`of_lightning.py`, `of_trainer.py`: what these change of it. All three are looked at alike (`look.py`), which asks the training's
kind where kinds differ. Of Keras, whose steps are compiled, none is made here: `of_keras.py` looks at it behind the run.
"""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any

from trainwright.frameworks.packages import TrainingKind

if TYPE_CHECKING:
    from trainwright.look.of_loop import LoopTraining


def kind_of(kind: TrainingKind, trainer: Any, frame: FrameType) -> LoopTraining:
    """The training that a framework's trainer makes, or the script's own loop.

    Args:
        trainer: the framework's; None: a loop has none.
        frame: the script's, that calls for the training.
    """
    if kind == TrainingKind.TRAINER:
        from trainwright.look.of_trainer import TrainerTraining

        return TrainerTraining(trainer, frame)
    if kind == TrainingKind.LIGHTNING:
        from trainwright.look.of_lightning import LightningTraining

        return LightningTraining(frame)
    from trainwright.look.of_loop import LoopTraining

    return LoopTraining()
