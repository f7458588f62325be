"""TW305 bounded-regression-output: an activation keeps the output from reaching the targets.

Why it matters: The error cannot fall below the distance between the activation's range and the targets.
Evidence: The range of the targets compared with that of the activation, and the share of their variance outside it.
Fix (unsafe): Remove the last activation, or scale the targets into its range.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.rules.repairs import swap_activation
from trainwright.stages import LossCall, LossFacts, SetupFacts

_REGRESSIONS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_RANGES = {"sigmoid": "0 to 1", "softmax": "0 to 1", "tanh": "-1 to 1", "relu": "nothing below 0", "relu6": "0 to 6"}
# A model that explains 95 % of the variance is a good one; a range that excludes more than that does harm.
UNREACHABLE_SHARE = 0.05


@rule("TW305", Severity.ERROR)
def bounded_regression_output(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Regression targets outside the range of the activation that produced the output."""
    for call in loss.calls or filter(None, (loss.call,)):
        if call.function in _REGRESSIONS and call.activation in _RANGES:
            yield from _of_call(call, setup)


def _of_call(call: LossCall, setup: SetupFacts) -> Iterator[Finding]:
    share, least, most = call.unreachable_share, call.targets.minimum, call.targets.maximum
    if share is None or share < UNREACHABLE_SHARE or least is None or most is None:
        return
    bounds = _RANGES[call.activation]
    shown = f"{share:.0%}" if share < 10 else f"{share:,.0f} times"
    yield Finding(
        message=f"the targets of a batch range from {least:.4g} to {most:.4g}, but the final {call.activation} outputs {bounds}: "
        f"{shown} {'of ' if share < 10 else ''}the targets' variance is out of reach",
        measured={
            "smallest_target": least,
            "largest_target": most,
            "activation": call.activation,
            "unreachable_share": share,
        },
        where=call.activation_at or setup.place(Role.MODEL),
        proof=Proof(f"the nearest possible outputs of the {call.activation} are that far from the targets"),
        repair=swap_activation("identity", call),
        fix=Fix(does=f"remove the {call.activation}, or scale the targets to its range", safety=Safety.UNSAFE),
    )
