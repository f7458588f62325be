"""Layers that an evaluation inside a loop leaves in evaluation mode."""

from __future__ import annotations

import ast

from trainwright.adapters.loop.evaluation import FEW_BATCHES, lifted_pass_of, run_passes
from trainwright.adapters.loop.training import LoopTraining
from trainwright.core.finding import Place
from trainwright.seams.loops.found_loops import Loop, called_in
from trainwright.seams.loops.lifted_pass import LiftedPass, reached_functions
from trainwright.seams.source.places import show


def lost_modes(training: LoopTraining) -> tuple[tuple[str, ...], Place | None]:
    """The layers that are in training mode in the first pass but not in later ones, and the line responsible."""
    loop = getattr(training.body, "loop", None)
    if not isinstance(loop, Loop):
        return (), None
    lifted = lifted_pass_of(training, loop)
    calls = called_in(lifted.statements, lifted.namespace, frozenset(["eval"]))
    if not lifted.whole or not calls:
        return (), None
    try:
        watch = run_passes(training, lifted, FEW_BATCHES, frozenset()).watch
    finally:
        lifted.start_over()
        training.reset()
    early = {id(m) for c in watch.calls if c.trained and c.turn == 0 for m in c.resting}
    late = {id(m) for c in watch.calls if c.trained and c.turn == 1 for m in c.resting} - early
    lost = [(n, m) for n, m in training.model.named_modules() if id(m) in late]
    names = tuple(n for n, m in lost if getattr(m, "p", True))  # nn.Dropout(0) is the same in both
    return names, _evaluation_line(lifted) if names else None


def _evaluation_line(lifted: LiftedPass) -> Place | None:
    """The first line of a pass, or of what it calls, that puts a model in evaluation mode."""
    bodies: list[tuple[str, ast.AST]] = [(lifted.loop.file, s) for s in lifted.statements]
    functions = reached_functions(lifted.statements, lifted.namespace)
    bodies += [(code.co_filename, node) for code, (node, _) in functions.items()]
    for file, body in bodies:
        for node in ast.walk(body):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "eval":
                return Place(show(file), node.lineno)
    return None
