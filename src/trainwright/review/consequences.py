"""What each finding, and each mark on a sheet, follows from: where a cause is found, it is not said as well."""

from __future__ import annotations

from trainwright.core import Finding

# Questions whose faults make a result poor: what is said of the result follows from each; of the results, the first speaks.
_OF_RUN = {
    "run-diverged", "weights-stand-still", "partial-data", "torn-labels", "widened-loss", "other-weights-evaluated",
    "wrong-mode", "best-not-kept", "untrained-class", "rewritten-rows", "apart-transforms", "lost-columns",
    "other-scale-evaluated",
}  # fmt: skip
RESULTS = ("held-out-at-constant", "unlearned-part", "simple-learner-better")
# Each question is one of these, or stands apart: it has rows or numbers of its own beside the result.
APART = {"script-stopped", "fold-begins-trained", "rows-measured-twice", "target-among-inputs", "numbers-disagree"}
# A finding, and what it follows from, or what says the same with a better line. Behind a colon is a number that the finding
# has measured, where only some findings of its name follow.
FOLLOWS_FROM = {
    "held-out-at-constant": _OF_RUN,
    "unlearned-part": {*_OF_RUN, *RESULTS[:1]},
    "simple-learner-better": {*_OF_RUN, *RESULTS[:2]},
    "weights-stand-still": {"run-diverged"},
    "weights-stand-still:moved": {"constant-loss", "severed-graph", "no-gradient", "wiped-accumulation",
                                  "negligible-learning-rate", "unstepped-optimizer"},
    "weights-stand-still:still": {"wiped-accumulation", "negligible-learning-rate"},
    "weights-stand-still:unreached": {"severed-graph", "no-gradient", "dead-units", "identical-units"},
    "weights-stand-still:columns": {"unregistered-parameters"},
    "weights-stand-still:zero": {"schedule-in-wrong-unit"},
    "run-diverged:not_finite": {"non-finite-data", "non-finite-activation", "non-finite-loss", "non-finite-gradients"},
    "other-weights-evaluated": {"run-diverged", "weights-stand-still"},
    "best-not-kept": {"run-diverged", "weights-stand-still", "other-weights-evaluated"},
    "best-not-kept:missing": {"unmatched-checkpoint"},
    "best-not-kept:look": {"wrong-metric-direction"},
    "numbers-disagree": {"run-diverged", "weights-stand-still", "other-weights-evaluated", "wrong-mode", "torn-labels",
                         "partial-data", "held-out-at-constant"},
    "numbers-disagree:agreement": {"metrics-on-logits", "argmax-of-one-column"},
    "partial-data:variety": {"sorted-without-shuffle"},
    "torn-labels": {"contradictory-labels", "misaligned-labels", "lost-in-preparation"},
    "lost-columns": {"weights-stand-still", "misaligned-labels", "equal-inputs", "discarded-columns"},
    "widened-loss": {"broadcast-loss", "outputs-per-step"},
    "wrong-mode:in_evaluation_mode": {"inactive-training-mode"},
    "untrained-class": {"partial-data", "missing-classes", "differently-numbered-sets", "split-of-sorted-data"},
    "rows-measured-twice:copies": {"train-eval-overlap"},
    "target-among-inputs": {"label-among-inputs"},
    "other-scale-evaluated": {"differently-scaled-sets"},
    # At the same line: the rule has only read it.
    "undefined-name": {"script-stopped"},
}  # fmt: skip
# Notes: something unusual, with which many trainings learn. A result that shows nothing learned is their proof.
EXPLAINED_BY = {
    "held-out-at-constant": {"imbalanced-classes", "unequal-loss-terms", "excessive-weight-decay"},
    "unlearned-part": {"imbalanced-classes"},
    "simple-learner-better": {"unequal-loss-terms", "excessive-weight-decay"},
}
# A table of the sheet, and the findings that say what is marked in it.
SAID_BY = {
    "scores": {*RESULTS, "numbers-disagree", "wrong-mode", "inactive-training-mode"},
    "profile": {"lost-columns", "lost-in-preparation", "discarded-columns", "equal-inputs", "misaligned-labels"},
    "own": {"best-not-kept", "run-diverged", "wrong-metric-direction"},
    "classes": {"unlearned-part", "untrained-class", "held-out-at-constant", "imbalanced-classes", "missing-classes",
                "numbers-disagree", "torn-labels", "misaligned-labels", "lost-in-preparation"},
    "outputs": {"held-out-at-constant", "unlearned-part"},
    "columns": {"other-scale-evaluated", "unscaled-inputs", "differently-scaled-sets", "inputs-scaled-twice"},
    "layers": {"weights-stand-still", "unregistered-parameters", "frozen-untrained-layers", "unstepped-optimizer", "no-gradient"},
    "curves": {"run-diverged"},
    "pieces": {"wrong-mode", "inactive-training-mode", "other-weights-evaluated", "best-not-kept", "unmatched-checkpoint",
               "wrong-metric-direction"},
    "drawn": {"partial-data"},
}  # fmt: skip


def causes_of(finding: Finding) -> set[str]:
    """The names of findings that it follows from."""
    keys = (finding.name, *(f"{finding.name}:{measured}" for measured in finding.measured))
    return {name for key in keys for name in FOLLOWS_FROM.get(key, ())}
