"""A metric of the library `evaluate`, in a folder of its own, as `evaluate.load` wants it."""

import evaluate
from datasets import Features, Value


class ExactMatchRatio(evaluate.Metric):
    def _info(self):
        columns = Features({"predictions": Value("int64"), "references": Value("int64")})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=columns)

    def _compute(self, predictions, references):
        return {"accuracy": sum(int(p == r) for p, r in zip(predictions, references, strict=True)) / len(references)}
