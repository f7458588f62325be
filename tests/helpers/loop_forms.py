"""Forms in which people write a training loop, all of the same sound training."""

PRELUDE = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
X = torch.randn(600, 10); W = torch.randn(10, 3); Y = (X @ W).argmax(1)
tr = TensorDataset(X[:480], Y[:480]); va = TensorDataset(X[480:], Y[480:])
loader = DataLoader(tr, batch_size=32, shuffle=True)
val = DataLoader(va, batch_size=60)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
lossf = nn.CrossEntropyLoss()
"""

FORMS = {
    "tqdm_auto_bar": """\
from tqdm.auto import tqdm
for epoch in range(5):
    pbar = tqdm(loader)
    for x, y in pbar:
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
        pbar.set_description(f"{loss.item():.3f}")
""",
    "bar_as_context": """\
from tqdm import tqdm
for epoch in range(5):
    with tqdm(loader, unit="batch") as tepoch:
        for x, y in tepoch:
            tepoch.set_description(f"Epoch {epoch}")
            opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
            tepoch.set_postfix(loss=loss.item())
""",
    "bar_by_total": """\
from tqdm.auto import tqdm
for epoch in range(5):
    with tqdm(total=len(loader)) as pbar:
        for x, y in loader:
            opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
            pbar.update(1)
""",
    "bar_over_enumerate": """\
from tqdm.auto import tqdm
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=5 * len(loader))
for epoch in range(5):
    for i, (x, y) in tqdm(enumerate(loader), total=len(loader)):
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step(); sched.step()
""",
    "bar_over_enumerate_by_name": """\
from tqdm import tqdm
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=5 * len(loader))
for epoch in range(5):
    bar = tqdm(enumerate(loader), total=len(loader))
    for i, (x, y) in bar:
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step(); sched.step()
""",
    "next_until_exhausted": """\
for epoch in range(5):
    it = iter(loader)
    while True:
        try:
            x, y = next(it)
        except StopIteration:
            break
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
""",
    "next_in_a_range_then_validation": """\
for epoch in range(5):
    it = iter(loader)
    model.train()
    for i in range(len(loader)):
        x, y = next(it)
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
    model.eval(); right = 0
    with torch.no_grad():
        for x, y in val:
            right += (model(x).argmax(1) == y).sum().item()
    print(right / len(va))
""",
    "model_cleared_at_the_end": """\
for epoch in range(5):
    for x, y in loader:
        loss = lossf(model(x), y); loss.backward(); opt.step()
        model.zero_grad()
""",
    "gradients_none_at_the_end": """\
for epoch in range(5):
    for x, y in loader:
        loss = lossf(model(x), y); loss.backward(); opt.step()
        for p in model.parameters():
            p.grad = None
""",
    "gradients_zeroed_at_the_end": """\
for epoch in range(5):
    for x, y in loader:
        loss = lossf(model(x), y); loss.backward(); opt.step()
        for p in model.parameters():
            p.grad.detach_(); p.grad.zero_()
""",
    "micro_steps_inside": """\
import math
K = 4
scaler = torch.amp.GradScaler("cpu", enabled=False)
def get_batch():
    ix = torch.randint(480, (16,))
    return X[ix], Y[ix]
x, y = get_batch()
it = 0
while True:
    lr = 1e-2 * min(1, (it + 1) / 10)
    for g in opt.param_groups:
        g["lr"] = lr
    for micro_step in range(K):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = lossf(model(x), y) / K
        x, y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad(set_to_none=True)
    it += 1
    if it > 100:
        break
""",
    "micro_steps_inside_scaled": """\
import math
K = 4
scaler = torch.amp.GradScaler("cpu")
def get_batch():
    ix = torch.randint(480, (16,))
    return X[ix], Y[ix]
x, y = get_batch()
it = 0
while True:
    lr = 1e-2 * min(1, (it + 1) / 10)
    for g in opt.param_groups:
        g["lr"] = lr
    for micro_step in range(K):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = lossf(model(x), y) / K
        x, y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad(set_to_none=True)
    it += 1
    if it > 100:
        break
""",
    "warm_start": """\
buffer = []
import random
random.seed(0)
for step in range(400):
    i = random.randrange(480)
    buffer.append((X[i], Y[i]))
    if len(buffer) < 64:
        continue
    batch = random.sample(buffer, 32)
    x = torch.stack([b[0] for b in batch]); y = torch.stack([b[1] for b in batch])
    opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
""",
    "learning_starts": """\
import random
random.seed(0)
buffer = []
learning_starts, k = 100, 4
for global_step in range(1200):
    i = random.randrange(480)
    buffer.append(i)
    if global_step > learning_starts and global_step % k == 0:
        ix = torch.tensor(random.sample(buffer, 32))
        loss = lossf(model(X[ix]), Y[ix])
        opt.zero_grad(); loss.backward(); opt.step()
""",
    "cycle_generator": """\
def cycle(dl):
    while True:
        for batch in dl:
            yield batch
batches = cycle(loader)
for step in range(100):
    x, y = next(batches)
    opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
""",
    "named_slices": """\
X_train, X_val = X[:480], X[480:]
Y_train, Y_val = Y[:480], Y[480:]
for epoch in range(10):
    perm = torch.randperm(480)
    for i in range(0, 480, 32):
        ix = perm[i:i + 32]
        opt.zero_grad(); loss = lossf(model(X_train[ix]), Y_train[ix]); loss.backward(); opt.step()
    with torch.no_grad():
        v = lossf(model(X_val), Y_val).item()
""",
    "slices_of_one_tensor": """\
n = 480
for epoch in range(10):
    for i in range(0, n, 32):
        x, y = X[i:i + 32], Y[i:i + 32]
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
    model.eval()
    with torch.no_grad():
        acc = (model(X[n:]).argmax(1) == Y[n:]).float().mean()
    model.train()
    print(epoch, acc.item())
""",
    "enumerate_from_one": """\
K = 4
for epoch in range(8):
    for i, (x, y) in enumerate(loader, start=1):
        loss = lossf(model(x), y) / K; loss.backward()
        if i % K == 0:
            opt.step(); opt.zero_grad()
""",
    "enumerate_from_the_epochs_first": """\
K = 3
for epoch in range(8):
    for i, batch in enumerate(loader, epoch * len(loader)):
        x, y = batch
        loss = lossf(model(x), y) / K; loss.backward()
        if (i + 1) % K == 0:
            opt.step(); opt.zero_grad()
""",
    "validation_that_keeps_floats": """\
for epoch in range(5):
    for x, y in loader:
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
    model.eval()
    total = 0.0
    for x, y in val:
        total += lossf(model(x), y).item()
    print(total / len(val))
    model.train()
""",
    "rate_finder_on_a_copy": """\
import copy
probe = copy.deepcopy(model)
popt = torch.optim.SGD(probe.parameters(), lr=1e-6)
history = []
for x, y in loader:
    popt.zero_grad(); loss = lossf(probe(x), y); loss.backward(); popt.step()
    history.append((popt.param_groups[0]["lr"], loss.item()))
    popt.param_groups[0]["lr"] *= 2.0
del probe, popt
for epoch in range(5):
    for x, y in loader:
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
print(sum(p.numel() for p in model.parameters()))
""",
    "train_one_epoch": """\
def train_one_epoch(model, criterion, optimizer, data_loader, epoch):
    model.train()
    for i, (image, target) in enumerate(data_loader):
        output = model(image); loss = criterion(output, target)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
def evaluate(model, criterion, data_loader):
    model.eval(); n = right = 0
    with torch.inference_mode():
        for image, target in data_loader:
            right += (model(image).argmax(1) == target).sum().item(); n += len(target)
    return right / n
for epoch in range(5):
    train_one_epoch(model, lossf, opt, loader, epoch)
    evaluate(model, lossf, val)
""",
    "while_around_the_epoch": """\
step = 0
while step < 60:
    for x, y in loader:
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
        step += 1
        if step >= 60: break
""",
    "prefetcher": """\
class Prefetcher:
    def __init__(self, loader): self.loader = iter(loader); self.preload()
    def preload(self):
        try: self.batch = next(self.loader)
        except StopIteration: self.batch = None
    def next(self):
        batch = self.batch
        if batch is not None: self.preload()
        return batch
for epoch in range(5):
    pre = Prefetcher(loader)
    batch = pre.next()
    while batch is not None:
        x, y = batch
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
        batch = pre.next()
""",
    "grad_zero_in_loop": """\
for epoch in range(5):
    for x, y in loader:
        for p in model.parameters():
            if p.grad is not None:
                p.grad.zero_()
        loss = lossf(model(x), y); loss.backward(); opt.step()
""",
    "hooks_by_name": """\
class Update:
    def after_step(self, runner):
        opt.zero_grad(); runner.loss.backward(); opt.step()
class Runner:
    def __init__(self, hooks): self.hooks = hooks
    def call(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)
    def run(self):
        for epoch in range(5):
            for x, y in loader:
                self.loss = lossf(model(x), y)
                self.call("after_step")
Runner([Update()]).run()
""",
    "step_in_a_generator_expression": """\
def make(step_model):
    def step(x, y):
        loss = lossf(step_model(x), y); loss.backward(); opt.step(); opt.zero_grad()
        return loss.item()
    return step
def epoch_of(data, step):
    return sum(step(x, y) for x, y in data) / len(data)
step = make(model)
for epoch in range(5):
    print(epoch_of(loader, step))
""",
    "meta_steps_with_functional_call": """\
from torch.func import functional_call
def adapt(params, x, y):
    loss = lossf(functional_call(model, params, (x,)), y)
    grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
    return {k: p - 0.05 * g for (k, p), g in zip(params.items(), grads)}
for it in range(100):
    opt.zero_grad()
    total = 0.0
    for _ in range(2):
        ix = torch.randint(480, (32,)); fast = adapt(dict(model.named_parameters()), X[ix], Y[ix])
        x, y = X[ix], Y[ix]
        total = total + lossf(functional_call(model, fast, (x,)), y)
    total.backward(); opt.step()
""",
    "state_undone_after_a_warm_up": """\
import copy
start = copy.deepcopy(model.state_dict())
for x, y in loader:
    opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
model.load_state_dict(start)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    for x, y in loader:
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
""",
}
