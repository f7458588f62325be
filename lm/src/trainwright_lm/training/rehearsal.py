"""Checks a training before it starts: the debugger tries data, model, loss and optimizer, and leaves them as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

import trainwright
from trainwright.core import Stage, StageRun, Status
from trainwright.errors import UsageError
from trainwright_lm.config import Recipe
from trainwright_lm.network.model import Transformer
from trainwright_lm.training.optimizers import build_optimizer
from trainwright_lm.training.plan import Plan

# Enough windows for comparisons within and between batches, and few enough to take only seconds.
WINDOWS = 4
BATCHES = 8
TOKENS = 32
BUDGET_SECONDS = 20.0


def rehearse(
    model: Transformer, plan: Plan, recipe: Recipe, muon_format: torch.dtype = torch.bfloat16
) -> tuple[str, bool]:
    """Try the training's first windows with a separate optimizer; returns what to say, and whether that succeeded.

    "no fault found" covers only the stages that were reached. A try that fails is an error in Trainwright itself, since
    all the code is its own.

    Raises:
        UsageError: if the debugger found an error.
        KeyboardInterrupt: if it was interrupted.
    """
    try:
        report = trainwright.check(
            model=model,
            loader=_first_batches(plan),
            loss=mean_nats,
            optimizer=build_optimizer(model, recipe.optimizer, muon_format),
            budget=BUDGET_SECONDS,
            seed=recipe.run.seed,
        )
    except Exception as error:  # the debugger's own, of any kind
        return _failure(f"{type(error).__name__}: {error}"), False
    if report.message.startswith("Interrupted"):  # Ctrl-C is meant for the training as well
        raise KeyboardInterrupt
    errors = [finding for finding in report.findings if str(finding.severity) == "error"]
    if errors:
        raise UsageError(
            f"Training does not start because the debugger found {errors[0].code} "
            f"{errors[0].name}: {errors[0].message}\n\n{report!r}\n\nFix it, or skip the check with --set run.check=false."
        )
    own = (Stage.EVALUATION, Stage.BASELINE)  # training does its own
    stages = [run for run in report.stages if run.stage not in own]
    walked = [run for run in stages if run.status.through]
    failed = [f"{run.stage.label}: {run.why}" for run in report.stages if run.status is Status.FAILED]
    why = "" if walked else report.message or "no stage was walked"
    if why := "; ".join(report.internal_errors or failed) or why:
        return _failure(why, walked), False
    found = [f"{f.code} {f.name} ({f.severity}): {f.message}" for f in report.findings if str(f.severity) != "note"]
    left = ", ".join(f"{run.stage.label} ({run.why})" for run in stages if not run.status.through)
    text = (
        f"The debugger tried the training's first windows for {report.seconds:.1f} s: "
        f"{'; '.join(found) or 'no fault found'}{f'; not walked: {left}' if left else ''}."
    )
    return text, True


def _failure(why: str, walked: Sequence[StageRun] = ()) -> str:
    seen = ", ".join(run.stage.label for run in walked)
    return (
        f"The debugger failed before the training: {why}. This is an internal error in Trainwright, not a fault of your "
        f"data or settings. Training begins {f'with only these stages checked: {seen}' if seen else 'unchecked'}."
    )


def mean_nats(logits_BTV: Tensor, targets_BT: Tensor) -> Tensor:
    """The ordinary loss per token."""
    return F.cross_entropy(logits_BTV.flatten(0, 1).float(), targets_BT.flatten())


def _first_batches(plan: Plan) -> list[tuple[Tensor, Tensor]]:
    """Small batches from the beginnings of the first windows, over as many updates as needed."""
    updates = -(-WINDOWS * BATCHES // plan.at_once)
    indices = [index for update in range(updates) for index in plan.indices(update)][: WINDOWS * BATCHES]
    rows = torch.from_numpy(plan.windows.batch(np.array(indices)))[:, : TOKENS + 1]
    return [(piece[:, :-1].contiguous(), piece[:, 1:].contiguous()) for piece in rows.split(WINDOWS)]
