"""TW011 exclusive-arguments: a constructor gets arguments that exclude each other.

Why it matters: The script stops before training. A loader's order, for example, comes from its sampler or from
shuffle, not from both.
Evidence: The arguments as written in the call that raised.
Error: `sampler option is mutually exclusive with shuffle`
Error: `batch_sampler option is mutually exclusive with`
Error: `expected unspecified shuffle option`
Error: `expected unspecified sampler option`
Error: `prefetch_factor option could only be specified in multiprocessing`
Error: `persistent_workers option needs num_workers > 0`
Error: `is mutually exclusive with drop_last`
Fix (unsafe): Leave out the argument that the other one replaces.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, RemoveKeyword, Safety, Severity, rule
from trainwright.stages import SetupFacts


@rule("TW011", Severity.ERROR, foretells=Fate.STOPS)
def exclusive_arguments(setup: SetupFacts) -> Iterator[Finding]:
    """Arguments of which only one may be given."""
    found = setup.excluded
    if found is None or setup.failure is None:
        return
    names = " and ".join(f"{name}=" for name in found.given)
    places = [found.places[name] for name in found.given]
    yield Finding(
        message=f"{found.function} does not take {names} here: {found.because}",
        measured={"function": found.function, "arguments": ", ".join(found.given)},
        where=places[0],
        proof=Proof(f"{setup.failure}"),
        fix=Fix(
            does=f"leave {names} out of {found.function}(…)",
            safety=Safety.UNSAFE,
            edits=tuple(RemoveKeyword(at.file, at.line, name) for name, at in found.places.items()),
        ),
    )
