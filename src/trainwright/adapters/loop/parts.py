"""Finds the parts of a loop's step by running it once: models, optimizers, schedules, the window of an update."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from trainwright.adapters.loop.turn import LONGEST_WINDOW, Turn
from trainwright.core.finding import Failure
from trainwright.seams.failures.blame import failure_of
from trainwright.seams.torch.gates import Passed
from trainwright.tensors.torch.transforms import within_transform

if TYPE_CHECKING:
    from trainwright.adapters.loop.training import LoopTraining

# A plain list with more members than this contains data, not layers.
LONGEST_LIST = 1000
_LABEL_NAMES = ("labels", "label", "label_ids", "targets", "target", "y")


class Together(nn.Module):
    """Several trained modules, and tensors that belong to none, in one module."""

    def __init__(self, modules: Mapping[str, nn.Module], loose: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        for name, module in modules.items():
            self.add_module(name.replace(".", "_"), module)
        for name, tensor in loose.items():
            self._parameters[name.replace(".", "_")] = tensor


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of a step."""

    model: nn.Module
    roots: list[nn.Module]
    """The modules that the body calls."""
    optimizers: list[Any]
    """The optimizers that step; if none does, those that hold the model's parameters."""
    schedules: list[Any]
    window: int
    """Rounds of the loop that call backward per update; 1 if there is no update."""
    rounds: int
    """Rounds of the loop from one update to the next, including those that only evaluate or collect."""
    lead: int
    """Rounds of the loop before the first full window, if the first update came sooner than the next."""
    idle: int
    """Rounds of the loop before the first one that calls backward: a buffer is filled, or only some rounds train."""
    passed: Passed
    """What reached the gates in that window."""
    graded: bool
    """Whether the models are called with gradients; calls without gradients are then an evaluation."""
    single: bool
    """Whether one loss is minimized: no two optimizers step after losses of their own."""
    failure: Failure | None = None


@dataclass
class _Calls:
    """The modules that were called from outside any other module."""

    roots: list[nn.Module] = field(default_factory=list)
    graded: list[nn.Module] = field(default_factory=list)
    """Those that were called with gradients."""
    depth: int = 0

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        hooks = torch.nn.modules.module
        before = hooks.register_module_forward_pre_hook(self._before)
        after = hooks.register_module_forward_hook(self._after, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def _before(self, module: nn.Module, args: Any) -> None:
        if within_transform():
            return
        inner = unwrapped(module)
        if self.depth == 0 and not any(inner is m for m in self.roots):
            self.roots.append(inner)
        if self.depth == 0 and torch.is_grad_enabled() and not any(inner is m for m in self.graded):
            self.graded.append(inner)
        self.depth += 1

    def _after(self, module: nn.Module, args: Any, output: Any) -> None:
        self.depth -= not within_transform()


def schedules_of(schedules: Sequence[Any], optimizers: Sequence[Any]) -> list[Any]:
    """The schedules of some optimizers, each made from the optimizer or from Accelerate's wrapper around it."""
    held = [(s, getattr(s, "optimizer", None)) for s in schedules]
    return [s for s, by in held if any(by is o or getattr(by, "optimizer", None) is o for o in optimizers)]


def unwrapped(module: Any) -> Any:
    """The module inside DistributedDataParallel, or the module itself."""
    return module.module if isinstance(module, nn.parallel.DistributedDataParallel) else module


def find_parts(training: LoopTraining, run: Callable[[Turn, int, Passed], None]) -> Parts:
    """Run the body without updates until an optimizer would step or the window is too long.

    Args:
        run: runs the body once, with a turn, its number and a record for what reaches the gates.
    """
    calls, passed, failure, idle = _Calls(), Passed(), None, 0
    window = rounds = 1
    lead = 0
    most = LONGEST_WINDOW if training.body.steps else 1
    for number in range(most if training.items else 0):
        calls.depth = 0
        try:
            with calls.watching():
                run(Turn(number % len(training.items)), number, passed)
        except Exception as error:  # the user's step raised: it is measured as it stands
            failure = failure_of(error)
            break
        if not {"backward", "step"} & set(passed.calls):
            idle = number + 1
        if passed.steps:
            window = rounds = number + 1 - idle
            break
    if passed.steps and window == 1 and failure is None:
        further = _next_window(training, run, idle + 1)
        rounds = further.rounds
        if further.backwards > 1:
            lead, window, passed = 1, further.backwards, further.passed
    roots = [m for m in calls.graded or calls.roots if any(True for _ in m.parameters())]
    trained = [m for m in roots if any(p.requires_grad for p in m.parameters())] or roots
    owners = _owners(trained, training.modules) or _held_modules(training)
    held = {id(p) for m in owners for p in m.parameters()}
    optimizers = passed.optimizers or [
        o for o in training.optimizers if any(id(p) in held for g in o.param_groups for p in g["params"])
    ]
    if not optimizers:
        optimizers = list(training.optimizers) if len(training.optimizers) == 1 else []
    loose = _loose(training, optimizers, held)
    model = owners[0] if len(owners) == 1 and not loose else Together(_named(owners, training.scope), loose)
    return Parts(
        model=model,
        roots=trained or [model],
        optimizers=optimizers,
        schedules=schedules_of(training.schedules, optimizers),
        window=window,
        rounds=rounds,
        lead=lead,
        idle=idle if passed.steps or "backward" in passed.calls else 0,
        passed=passed,
        graded=bool(calls.graded),
        single=_is_single(passed),
        failure=failure,
    )


@dataclass
class _Window:
    """The rounds from one update to the next."""

    rounds: int = 1
    backwards: int = 1
    """The number of rounds in which the body called backward."""
    passed: Passed = field(default_factory=Passed)


def _next_window(training: LoopTraining, run: Callable[[Turn, int, Passed], None], first: int) -> _Window:
    """The window after an update made by one round: the same, unless every nth round updates (`i % 4 == 0`)."""
    found = _Window(backwards=0)
    for number in range(first, first + LONGEST_WINDOW):
        before = found.passed.calls.count("backward")
        try:
            run(Turn(number % len(training.items)), number, found.passed)
        except Exception:  # a second step that raises is reported on its own
            return _Window()
        found.backwards += found.passed.calls.count("backward") > before
        if found.passed.steps:
            return found
        found.rounds += 1
    return _Window()


def _is_single(passed: Passed) -> bool:
    """Whether all optimizers step right after one another; a closure calls backward inside its step."""
    order = [c for c in passed.calls if c in ("step", "backward")]
    if len(passed.optimizers) < 2:
        return True
    first, last = order.index("step"), len(order) - 1 - order[::-1].index("step")
    return "backward" not in order[first:last]


def _owners(roots: Sequence[nn.Module], known: Sequence[nn.Module]) -> list[nn.Module]:
    """For each called module, the largest of the script's modules that contains it, each once."""
    found: list[nn.Module] = []
    for root in roots:
        others = [m for m in known if m is not root]
        around = [m for m in others if any(c is root for c in m.modules())] or _near(root, others)
        owner = max(around, key=lambda m: sum(1 for _ in m.modules()), default=root)
        if not any(owner is m for m in found):
            found.append(owner)
    return found


def _near(root: nn.Module, known: Sequence[nn.Module]) -> list[nn.Module]:
    """If none contains it: modules that have it in a plain list, or have all its parameters (a slice of one)."""
    held = {id(p) for p in root.parameters()}
    return [
        m
        for m in known
        if held <= {id(p) for p in m.parameters()}
        or any(root is one for c in m.modules() for v in vars(c).values() for one in _listed(v))
    ]


def _listed(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return value if isinstance(value, (list, tuple)) and len(value) <= LONGEST_LIST else ()


def _held_modules(training: LoopTraining) -> list[nn.Module]:
    """If no step can be run: the script's modules whose parameters its optimizers hold."""
    held = {id(p) for o in training.optimizers for g in o.param_groups for p in g["params"]}
    return [m for m in training.modules if any(id(p) in held for p in m.parameters())]


def _loose(training: LoopTraining, optimizers: Sequence[Any], held: set[int]) -> dict[str, torch.Tensor]:
    """Trained tensors outside any module that a step gave a gradient."""
    names = {id(v): n for n, v in training.scope.items() if isinstance(v, torch.Tensor)}
    stepped = [p for o in optimizers for g in o.param_groups for p in g["params"]]
    candidates = [*stepped, *training.state.loose]
    inside = {id(p) for m in training.modules for p in m.parameters()}
    found: dict[str, torch.Tensor] = {}
    for tensor in candidates:
        known = id(tensor) in held or id(tensor) in inside or any(tensor is t for t in found.values())
        if tensor.grad is not None and not known:
            found[names.get(id(tensor), f"tensor_{len(found)}")] = tensor
    return found


def _named(modules: Sequence[nn.Module], scope: Mapping[str, Any]) -> dict[str, nn.Module]:
    """The modules under the names that the script uses for them."""
    found: dict[str, nn.Module] = {}
    for module in modules:
        names = [n for n, v in scope.items() if unwrapped(v) is module]
        names += [n for v in scope.values() for n, a in getattr(v, "__dict__", {}).items() if a is module]
        found[next((n for n in names if n not in found), f"model_{len(found)}")] = module
    return found


@contextlib.contextmanager
def names_of_inputs(parts: Parts, into: dict[str, Any]) -> Iterator[None]:
    """Record the inputs of the first training call of a root, by the names of forward's parameters."""

    def keep(module: nn.Module, args: Any, kwargs: Any) -> None:
        if into or within_transform() or (parts.graded and not torch.is_grad_enabled()):
            return
        try:
            named = list(inspect.signature(module.forward).parameters.values())
        except (TypeError, ValueError):
            named = []
        plain = [p.name for p in named if p.kind == p.POSITIONAL_OR_KEYWORD]
        for i, value in enumerate(args):
            into[plain[i] if i < len(plain) else str(i)] = value
        into.update(kwargs)

    hooks = [root.register_forward_pre_hook(keep, with_kwargs=True) for root in parts.roots]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def label_name(inputs: Mapping[str, Any], targets: torch.Tensor | None) -> str | None:
    """The name under which the model itself received its labels: those of the loss, or a usual name."""
    given = {n: v for n, v in inputs.items() if isinstance(v, torch.Tensor)}
    usual = next((n for n in _LABEL_NAMES if n in given), None)
    if targets is None or len(given) < 2 or any(v.is_meta for v in (targets, *given.values())):
        return usual  # tensors on the meta device have no values to compare
    flat = targets.detach().reshape(-1).double()
    same = [n for n, v in given.items() if v.numel() == flat.numel() and torch.equal(v.reshape(-1).double(), flat)]
    return usual if usual in same or not same else same[-1]


def follow_parameters(optimizers: Sequence[Any], before: Mapping[str, torch.Tensor], model: nn.Module) -> None:
    """Give optimizers the parameters that replaced others under the same name."""
    now = dict(model.named_parameters())
    replaced = {id(old): now[name] for name, old in before.items() if name in now and now[name] is not old}
    new = [p for name, p in now.items() if name not in before and p.requires_grad]
    trained = {id(p) for p in before.values() if p.requires_grad}
    for optimizer in optimizers:
        groups = optimizer.param_groups
        whole = bool(trained) and trained <= {id(p) for g in groups for p in g["params"]}
        for group in groups:
            group["params"] = [replaced.get(id(p), p) for p in group["params"]]
        if whole:  # it was given all of model.parameters(), of which these are now a part
            groups[0]["params"] = [*groups[0]["params"], *new]
