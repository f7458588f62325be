"""Errors that end a script, or a framework's constructor, before training is reached; the setup rules judge them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from trainwright.adapters.script_end.raised import raised_facts
from trainwright.adapters.script_end.refused_calls import refused_in
from trainwright.core.finding import Failure, Finding
from trainwright.seams.devices.memory_owners import lacks_gpu_memory
from trainwright.seams.listening.seen import Seen
from trainwright.stages.setup import SetupFacts
from trainwright.walk.closing import versions
from trainwright.walk.failed_calls import findings_of, judge_failed_call
from trainwright.walk.walk import Walk


def refused_facts(
    name: str, function: Callable[..., Any], keywords: Mapping[str, Any], error: Exception, frame: FrameType
) -> SetupFacts:
    """The facts of a framework call that rejected its arguments."""
    call = refused_in(name, function, keywords, error, frame)
    framework = call.library.split(" ")[0] or None
    return SetupFacts(framework=framework, versions=versions(), refused=call, failure=call.failure)


def judge(walk: Walk, facts: SetupFacts) -> list[Finding]:
    """Run the setup rules on a failure before training; returns the findings that the walk keeps."""
    walk.learn(facts)
    return [f for rule in walk.rules_of_setup() for f in findings_of(walk, rule) if walk.keep(f)]


def judge_end(walk: Walk, error: Exception, failure: Failure, seen: Seen | None) -> None:
    """Find the cause of an exception that ended the script before training."""
    facts = raised_facts(error, failure, seen, SetupFacts(versions=versions()))
    walk.learn(facts)
    if seen is not None and not lacks_gpu_memory(str(error)):
        judge_failed_call(walk, error, failure, seen)
    if not walk.findings:
        judge(walk, facts)
