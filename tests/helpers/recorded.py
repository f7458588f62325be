"""An adapter made of nothing, with recorded answers, for tests of the walk itself."""

from trainwright.adapters.base import Learn, Run, Train
from trainwright.core.finding import Failure, Place
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.report import Report
from trainwright.core.rule import Rule
from trainwright.core.stage import Stage
from trainwright.seams.failures.repair_log import mended
from trainwright.stages.batch import BatchFacts
from trainwright.stages.dataset import DatasetFacts, SplitFacts
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.gradients import GradientFacts
from trainwright.stages.learning import LearningFacts, LearningLook
from trainwright.stages.loss import LossFacts
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.setup import SetupFacts
from trainwright.walk.drive import pull
from trainwright.walk.walk import Walk

BROKEN = Failure(type="ValueError", message="rows differ", where=Place("train.py", 7))
PAD = Repair("pad the rows", Seam.TRAINER, lambda call: call)
SLOWER = Repair("learning rate x 0.1", Seam.OPTIMIZER, lambda call: call)


class Pipeline:
    """An adapter whose stages pass, or fail until a repair is in force."""

    framework = "none"

    def __init__(self, *, ragged: bool = False, learned: bool = True, interrupt_at: Stage | None = None) -> None:
        self.ragged = ragged
        self.learned = learned
        self.interrupt_at = interrupt_at
        self.applied: list[str] = []
        self.calls: list[str] = []

    def _at(self, stage: Stage) -> None:
        self.calls.append(stage.label)
        if stage == self.interrupt_at:
            raise KeyboardInterrupt

    def measure_setup(self) -> SetupFacts:
        self._at(Stage.SETUP)
        return SetupFacts(model_class="Net")

    def measure_dataset(self) -> DatasetFacts:
        self._at(Stage.DATASET)
        return DatasetFacts(train=SplitFacts(name="train", rows=10))

    def measure_batch(self) -> BatchFacts:
        self._at(Stage.BATCH)
        return BatchFacts(failure=BROKEN if self.ragged and PAD.does not in self.applied else None, rows=2)

    def measure_step(self) -> tuple[ForwardFacts, LossFacts, GradientFacts]:
        self._at(Stage.FORWARD)
        return ForwardFacts(), LossFacts(value=1.0), GradientFacts()

    def measure_optimizer(self) -> OptimizerFacts:
        self._at(Stage.OPTIMIZER)
        return OptimizerFacts(kind="SGD")

    def measure_evaluation(self, batches: int) -> EvaluationFacts:
        self._at(Stage.EVALUATION)
        return EvaluationFacts()

    def train(self, request: Train) -> Run:
        steps, changes = request.steps, request.changes
        self.calls.append(f"train {changes[0].does if changes else 'as it is'} seed {request.seed}")
        slow = SLOWER.does in self.applied or any(c.does == SLOWER.does for c in changes)
        end = 0.1 if slow else 2.0
        return Run(losses=tuple(1.0 + (end - 1.0) * i / (steps - 1) for i in range(steps)), rows=2, seconds=0.01)

    def learn(self, request: Learn) -> LearningFacts:
        loss = 1.0 if self.learned else 2.0
        looks = (LearningLook(updates=0, loss=2.0, constant=2.0, error=0.1),
                 LearningLook(updates=16, loss=loss, constant=2.0, error=0.1))  # fmt: skip
        return LearningFacts(held_out="evaluation", rows=100, planned=16, looks=looks)

    def apply(self, repair: Repair) -> None:
        mended(repair, Call(seam=repair.seam, given={}))
        self.applied.append(repair.does)

    def put_back(self) -> None:
        self.calls.append("put back")


def walked(pipeline: Pipeline, *rules: Rule, **options) -> Report:
    walk = Walk("train.py", rules=rules, **options)
    pull(walk, pipeline)
    return walk.report()


def status_of(report: Report) -> dict[str, str]:
    return {s.stage.label: str(s.status) for s in report.stages}
