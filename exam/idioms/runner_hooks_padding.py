import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD = -100.0


class Hook:
    def before_epoch(self, runner): ...
    def after_step(self, runner): ...
    def after_epoch(self, runner): ...


class LoggerHook(Hook):
    def before_epoch(self, runner):
        self.values = []

    def after_step(self, runner):
        self.values.append(runner.outputs["loss"].item())

    def after_epoch(self, runner):
        print(f"Epoch({runner.epoch}) loss: {sum(self.values) / len(self.values):.4f}")


class OptimizerHook(Hook):
    def __init__(self, grad_clip=None):
        self.grad_clip = grad_clip

    def after_step(self, runner):
        runner.optimizer.zero_grad()
        runner.outputs["loss"].backward()
        if self.grad_clip:
            nn.utils.clip_grad_norm_(runner.model.parameters(), self.grad_clip)
        runner.optimizer.step()


class EvalHook(Hook):
    def __init__(self, loader):
        self.loader = loader

    def after_epoch(self, runner):
        runner.model.eval()
        sq, n = 0.0, 0
        with torch.no_grad():
            for x, y in self.loader:
                keep = y != PAD
                pred = runner.model(x)
                sq += ((pred - y)[keep] ** 2).sum().item()
                n += keep.sum().item()
        print(f"Epoch({runner.epoch}) val mse: {sq / n:.4f}")


class Runner:
    def __init__(self, model, optimizer, batch_processor):
        self.model, self.optimizer, self.batch_processor = model, optimizer, batch_processor
        self.hooks, self.epoch = [], 0

    def register_hook(self, hook):
        self.hooks.append(hook)

    def call_hook(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)

    def run(self, loader, max_epochs):
        while self.epoch < max_epochs:
            self.model.train()
            self.call_hook("before_epoch")
            for batch in loader:
                self.outputs = self.batch_processor(self.model, batch)
                self.call_hook("after_step")
            self.call_hook("after_epoch")
            self.epoch += 1


class LeakySum(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.fc = nn.Linear(24, 1)

    def forward(self, x):
        return self.fc(self.gru(x.unsqueeze(-1))[0]).squeeze(-1)


def make_sequences(n):
    out = []
    for _ in range(n):
        x = torch.randn(int(torch.randint(4, 16, (1,))))
        y, level = [], torch.tensor(0.0)
        for v in x:
            level = 0.7 * level + v
            y.append(level)
        out.append((x, torch.stack(y)))
    return out


def collate(items):
    xs, ys = zip(*items)
    return pad_sequence(xs, batch_first=True), pad_sequence(ys, batch_first=True, padding_value=PAD)


def batch_processor(model, batch):
    x, y = batch
    pred = model(x)
    mask = (y != PAD).float()
    loss = (((pred - y) ** 2) * mask).sum() / mask.sum()
    return {"loss": loss, "num_samples": len(x)}


torch.manual_seed(0)
train_loader = DataLoader(make_sequences(600), batch_size=20, shuffle=True, collate_fn=collate)
val_loader = DataLoader(make_sequences(150), batch_size=50, collate_fn=collate)
model = LeakySum()
runner = Runner(model, torch.optim.Adam(model.parameters(), lr=1e-2), batch_processor)
runner.register_hook(LoggerHook())
runner.register_hook(OptimizerHook(grad_clip=5.0))
runner.register_hook(EvalHook(val_loader))
runner.run(train_loader, max_epochs=6)
