"""One module per stage: its facts, plain numbers that `look/` fills. No framework."""

from trainwright.stages.batch import (
    BatchFacts,
    EqualInputs,
    ImageFacts,
    LabelMaskFacts,
    VocabularyFacts,
    real_positions,
)
from trainwright.stages.dataset import (
    CENSUS_LABELS,
    IGNORED_LABEL,
    MOST_CLASSES,
    SAMPLED_ITEMS,
    UNTRIED,
    AlignedSource,
    ColumnFacts,
    DatasetFacts,
    LabelCopy,
    LabelFacts,
    LabelSource,
    Lookalike,
    Scaling,
    Split,
    SplitFacts,
    TextFacts,
    TokenizerFacts,
)
from trainwright.stages.evaluation import (
    Comparison,
    Counter,
    EvaluationFacts,
    Quotient,
    Reshuffled,
    SubstitutePredictions,
    Watcher,
)
from trainwright.stages.forward import ForwardFacts, MemoryFacts, ModuleFacts, Origin, ParameterFacts, RebuiltLayer
from trainwright.stages.gradients import (
    CutOff,
    GradientChange,
    GradientFacts,
    GradientOf,
    InPlace,
    KeptTensor,
    PlainList,
)
from trainwright.stages.learning import EvaluatedLoss, Information, LearningFacts, Station
from trainwright.stages.loss import (
    CLASS_LOSSES,
    DISTANCES,
    ELEMENTWISE,
    CrossedTargets,
    LossCall,
    LossFacts,
    LossTerm,
    PairedLoss,
    Renormalised,
)
from trainwright.stages.optimizer import GroupFacts, OptimizerFacts
from trainwright.stages.overfit import OverfitFacts
from trainwright.stages.reading import EndlessSet, EpochFacts, Repetition
from trainwright.stages.rows import (
    Alignment,
    BadRow,
    BatchOrder,
    Contradictions,
    Copies,
    CutTexts,
    Extremes,
    Mispaired,
    OddRow,
    OddRowFacts,
    Reading,
    Renumbered,
    SourceCell,
    Transfer,
)
from trainwright.stages.setup import (
    Argument,
    EmptyParameters,
    EmptySet,
    IneffectiveFreeze,
    MissingName,
    MisspelledMethod,
    OtherProcess,
    OverriddenMethod,
    RankFacts,
    RefusedCall,
    SetupFacts,
    TextLabels,
    UndefinedName,
    UnmatchedCheckpoint,
)
from trainwright.stages.tensor import TensorFacts
from trainwright.stages.warnings import WarningFacts
from trainwright.stages.words import Words

__all__ = [
    "CENSUS_LABELS", "CLASS_LOSSES", "DISTANCES", "ELEMENTWISE", "IGNORED_LABEL", "MOST_CLASSES", "SAMPLED_ITEMS",
    "UNTRIED", "AlignedSource", "Alignment", "Argument", "BadRow", "BatchFacts", "BatchOrder",
    "ColumnFacts", "Comparison", "Contradictions", "Copies", "Counter", "CrossedTargets", "CutOff", "CutTexts",
    "DatasetFacts", "EmptyParameters", "EmptySet", "EndlessSet", "EpochFacts", "EqualInputs", "EvaluatedLoss",
    "EvaluationFacts",
    "Extremes", "ForwardFacts", "GradientChange", "GradientFacts", "GradientOf", "GroupFacts", "ImageFacts", "InPlace",
    "IneffectiveFreeze", "Information", "KeptTensor", "LabelCopy", "LabelFacts", "LabelMaskFacts", "LabelSource",
    "LearningFacts", "Lookalike", "LossCall", "LossFacts", "LossTerm", "MemoryFacts", "Mispaired",
    "MissingName", "MisspelledMethod", "ModuleFacts", "OddRow", "OddRowFacts", "OptimizerFacts", "Origin",
    "OtherProcess", "OverfitFacts", "OverriddenMethod", "PairedLoss", "ParameterFacts", "PlainList", "Quotient",
    "RankFacts", "Reading", "RebuiltLayer", "RefusedCall", "Renormalised", "Renumbered", "Repetition", "Reshuffled",
    "Scaling", "SetupFacts", "SourceCell", "Split", "SplitFacts", "Station", "SubstitutePredictions", "TensorFacts",
    "TextFacts", "TextLabels", "TokenizerFacts", "Transfer", "UndefinedName", "UnmatchedCheckpoint", "VocabularyFacts",
    "WarningFacts", "Watcher", "Words", "real_positions",
]  # fmt: skip
