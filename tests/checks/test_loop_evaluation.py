"""The evaluation in a training loop of the user's own is found in every place that scripts put it, and left as it was."""

from pathlib import Path
from textwrap import dedent

import pytest

from checks import check_script, loud, said
from trainwright.core import Report, Stage

pytestmark = pytest.mark.slow

SETTING = """
    import torch
    from sklearn.datasets import load_digits
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
    train = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=32, shuffle=True)
    valid = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=64, num_workers=1)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


    def step(inputs, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss.item()


    def accuracy(loader):
        model.eval()
        with torch.no_grad():
            right = [(model(inputs) == labels).sum() for inputs, labels in loader]  # the fault
        model.train()
        return sum(right).item() / len(loader.dataset)
"""

PLACES = {
    "after_the_loop": """
        for epoch in range(3):
            for inputs, labels in train:
                step(inputs, labels)
        print(accuracy(valid))
    """,
    "after_the_function_returns": """
        def fit(epochs):
            history = []
            for epoch in range(epochs):
                history.append(sum(step(*batch) for batch in train))
            return model, history

        def main():
            best, history = fit(3)
            print(history[-1])
            print(accuracy(valid))

        if __name__ == "__main__":
            main()
    """,
    "every_few_steps": """
        count = 0
        while count < 100:
            for inputs, labels in train:
                step(inputs, labels)
                count += 1
                if count % 50 == 0:
                    print(count, accuracy(valid))
    """,
    "every_few_epochs": """
        for epoch in range(3):
            for inputs, labels in train:
                step(inputs, labels)
            if (epoch + 1) % 3 == 0:
                print(accuracy(valid))
    """,
    "without_loaders": """
        held, truth = x[1500:], y[1500:]
        x, y = x[:1500], y[:1500]
        for epoch in range(3):
            model.train()
            for i in range(0, 1500, 50):
                step(x[i : i + 50], y[i : i + 50])
            model.eval()
            with torch.no_grad():
                predicted = model(held)
            print((predicted == truth[:, None]).float().mean())  # the fault
    """,
    "in_a_class": """
        class Fitting:
            def __init__(self):
                self.losses = []

            def __run(self, epochs):
                for epoch in range(epochs):
                    self.one()
                    self.after()

            def one(self):
                for inputs, labels in train:
                    self.losses.append(step(inputs, labels))

            def after(self):
                print(accuracy(valid), sum(self.losses))

            def start(self):
                self.__run(3)

        Fitting().start()
    """,
}


def _report(folder: Path, code: str) -> Report:
    script = folder / "script.py"
    script.write_text(dedent(SETTING) + "\n\n" + dedent(code), encoding="utf-8")
    return check_script(script)


def _row(report: Report) -> str:
    return next(s.why for s in report.stages if s.stage == Stage.EVALUATION)


@pytest.mark.parametrize("place", PLACES)
def test_an_argmax_forgotten_is_found_wherever_the_evaluation_stands(place: str, tmp_path: Path) -> None:
    report = _report(tmp_path, PLACES[place])
    found = [f for f in report.findings if f.name == "metrics-on-logits"]
    assert found and loud(report) == ["metrics-on-logits"], said(report)
    source = (tmp_path / "script.py").read_text().split("\n")
    assert found[0].where is not None and "# the fault" in source[found[0].where.line - 1], said(report)


@pytest.mark.parametrize(
    "code",
    [
        # a generator's pictures, in training mode as it is trained
        "with torch.no_grad(): pictures = model(x[:16]).numpy()",
        # Monte Carlo dropout
        (
            "batch = x[1500:]\n    spread = torch.stack([model(batch).softmax(1) for _ in range(8)]).std(0).mean().item()\n"
            "    print((model(batch).argmax(1) == y[1500:]).float().mean(), spread)"
        ),
        # a teacher's labels
        "with torch.no_grad(): pseudo = model(x[1500:]).argmax(1)\n    step(x[1500:], pseudo)",
    ],
)
def test_models_in_training_mode_on_purpose_are_left_alone(code: str, tmp_path: Path) -> None:
    report = _report(tmp_path, f"""
        for epoch in range(3):
            for inputs, labels in train:
                step(inputs, labels)
            {code.replace(chr(10), chr(10) + " " * 8)}
    """)  # fmt: skip
    assert not loud(report), said(report)


def test_counters_of_steps_rows_and_history_may_grow(tmp_path: Path) -> None:
    report = _report(tmp_path, """
        steps = rows = 0
        losses, best = [], 0.0
        total = 0.0
        for epoch in range(3):
            model.train()
            for inputs, labels in train:
                loss = step(inputs, labels)
                losses.append(loss)
                total += loss
                steps += 1
                rows += len(labels)
            print(epoch, steps, rows, total / steps, sum(losses) / len(losses))
            model.eval()
            right = 0
            with torch.no_grad():
                for inputs, labels in valid:
                    right += (model(inputs).argmax(1) == labels).sum().item()
            best = max(best, right / len(valid.dataset))
    """)  # fmt: skip
    assert not loud(report), said(report)


ONE_BY_ONE = """
import torch
from datasets import Dataset
from torch import nn

torch.manual_seed(0)
x = torch.randn(200, 6)
rows = Dataset.from_dict({"x": x.tolist(), "y": (x[:, 0] > 0).long().tolist()}).with_format("torch")
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)


def evaluate():
    model.eval()
    with torch.no_grad():
        answered = rows.select(range(20)).map(lambda row: {"guess": model(row["x"]).argmax().item()})
    model.train()
    return sum(int(a == b) for a, b in zip(answered["guess"], answered["y"])) / len(answered)


for epoch in range(4):
    for batch in torch.utils.data.DataLoader(rows, batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(batch["x"]), batch["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, evaluate())
"""


def test_an_evaluation_that_asks_for_one_row_at_a_time_is_seen(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ONE_BY_ONE, encoding="utf-8")
    report = check_script(script)
    assert not loud(report), said(report)
    assert _row(report) == "20 batches of a pass tried, evaluated at line 16", said(report)
