"""Put first on PYTHONPATH, this writes every step's losses and weights of any Trainer to the file TRACE names.

It stops training after TRACE_STEPS updates. Nothing of the script or of the command that runs it is changed.
"""

import os

import wrapt

# Compiled under a name that is nobody's file, so that it is not taken for the script's own code.
_SOURCE = """
import hashlib, json, os
from transformers import TrainerCallback

losses, steps = [], []

def digest(model):
    total = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        total.update(name.encode() + tensor.detach().cpu().contiguous().view(-1).numpy().tobytes())
    return total.hexdigest()

class Trace(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        losses.clear()

    def on_step_end(self, args, state, control, model=None, **kwargs):
        rates = [group["lr"] for group in kwargs["optimizer"].param_groups]
        steps.append([state.global_step, list(losses), digest(model), rates])
        if state.global_step >= int(os.environ["TRACE_STEPS"]):
            control.should_training_stop = True

    def on_train_end(self, args, state, control, model=None, **kwargs):
        with open(os.environ["TRACE"], "a") as file:
            file.write(json.dumps(steps) + "\\n")
        steps.clear()

def patch(module):
    module.DEFAULT_CALLBACKS.append(Trace)
    original = module.Trainer.training_step

    def training_step(self, model, inputs, num_items_in_batch=None):
        loss = original(self, model, inputs, num_items_in_batch)
        losses.append(float(loss).hex())
        return loss

    module.Trainer.training_step = training_step
"""


def _patch(module):
    scope = {"__name__": "traced"}
    exec(compile(_SOURCE, "<traced>", "exec"), scope)
    scope["patch"](module)


if "WEIGHTS" in os.environ:
    import weights  # noqa: F401

if "TRACE" in os.environ:
    wrapt.register_post_import_hook(_patch, "transformers.trainer")
