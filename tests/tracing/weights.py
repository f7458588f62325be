"""Keeps every optimizer that a script builds; at its end writes a digest of the weights they hold to WEIGHTS."""

import atexit
import os

import wrapt

# Compiled under a name that is nobody's file, so that it is not taken for the script's own code.
_SOURCE = """
import hashlib, os, sys

built = []

def patch(module):
    original = module.Optimizer.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        built.append(self)

    module.Optimizer.__init__ = init

def write():
    if not built or "trainwright.cli" in sys.modules:
        return
    total = hashlib.sha256()
    for optimizer in built:
        for group in optimizer.param_groups:
            for tensor in group["params"]:
                total.update(tensor.detach().cpu().contiguous().view(-1).numpy().tobytes())
    with open(os.environ["WEIGHTS"], "a") as file:
        file.write(total.hexdigest() + "\\n")
"""

if "WEIGHTS" in os.environ:
    scope = {"__name__": "weights"}
    exec(compile(_SOURCE, "<weights>", "exec"), scope)
    wrapt.register_post_import_hook(scope["patch"], "torch.optim.optimizer")
    atexit.register(scope["write"])
