"""The vocabulary of the check: stages, facts, findings, rules, repairs, trials, reports. Standard library only."""

from trainwright.core.finding import (
    Failure,
    Finding,
    LibraryWarning,
    NamedRows,
    Number,
    Place,
    Proof,
    Severity,
    failure_in,
)
from trainwright.core.fix import Edit, Fix, RemoveKeyword, RenameFunction, RenameKeyword, RenameName, Safety, SetKeyword
from trainwright.core.repair import Call, PartMissing, Repair, Seam
from trainwright.core.report import ProfilePoint, Redirected, Report, StageRun, Status, exit_status
from trainwright.core.role import Role, role_of_split
from trainwright.core.rule import Diagnosis, Fate, Rule, rule
from trainwright.core.stage import RULE_STAGES, Facts, FactsByKind, Stage
from trainwright.core.tensors import Tensors
from trainwright.core.trial import Outcome, Trial
from trainwright.core.verdict import Shown, Verdict

__all__ = [
    "RULE_STAGES", "Call", "Diagnosis", "Edit", "Facts", "FactsByKind", "Failure", "Fate", "Finding", "Fix", "LibraryWarning",
    "NamedRows", "Number", "Outcome", "PartMissing", "Place", "ProfilePoint", "Proof", "Redirected", "RemoveKeyword",
    "RenameFunction", "RenameKeyword", "RenameName", "Repair", "Report", "Role", "Rule", "Safety", "Seam", "SetKeyword",
    "Severity", "Shown", "Stage", "StageRun", "Status", "Tensors", "Trial", "Verdict", "exit_status", "failure_in",
    "role_of_split", "rule",
]  # fmt: skip
