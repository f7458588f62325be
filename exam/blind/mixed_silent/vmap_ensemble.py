# Train an ensemble of small regressors at once with torch.func (vmap over stacked parameters)
import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

torch.manual_seed(2)
X, y = load_diabetes(return_X_y=True)
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.3, random_state=2)
mu, sd = X_tr.mean(0), X_tr.std(0)
ym, ys = y_tr.mean(), y_tr.std()
to = lambda a: torch.tensor(a, dtype=torch.float32)
X_tr, X_te = to((X_tr - mu) / sd), to((X_te - mu) / sd)
t_tr = to((y_tr - ym) / ys)

M = 8


def member():
    return nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))


models = [member() for _ in range(M)]
params, buffers = stack_module_state(models)
params = {k: v.detach() for k, v in params.items()}
skeleton = member().to("meta")


def predict_one(p, b, x):
    return functional_call(skeleton, (p, b), (x,)).squeeze(-1)


def loss_one(p, b, x, t):
    return ((predict_one(p, b, x) - t) ** 2).mean()


step_fn = vmap(grad_and_value(loss_one), in_dims=(0, 0, 0, 0))
predict_all = vmap(predict_one, in_dims=(0, 0, None))

lr, wd, momentum = 0.005, 2e-2, 0.9
velocity = {k: torch.zeros_like(v) for k, v in params.items()}
boot = torch.randint(0, len(X_tr), (M, len(X_tr)))      # one bootstrap sample per member


def rmse(pred):
    return float(np.sqrt(np.mean((pred.numpy() * ys + ym - y_te) ** 2)))


print(f"RMSE of the train mean: {np.sqrt(np.mean((ym - y_te) ** 2)):.2f}")
for epoch in range(30):
    order = torch.randperm(len(X_tr))
    total = torch.zeros(M)
    for cols in order.split(64):
        idx = boot[:, cols]
        grads, losses = step_fn(params, buffers, X_tr[idx], t_tr[idx])
        total += losses.detach() * len(cols)
        for k in params:
            velocity[k] = momentum * velocity[k] + grads[k] + wd * params[k]
            params[k] = params[k] - lr * velocity[k]
    if epoch % 5 == 4:
        out = predict_all(params, buffers, X_te)
        each = [rmse(o) for o in out]
        print(f"epoch {epoch + 1:3d} train mse {total.mean() / len(X_tr):.3f} "
              f"test RMSE members {np.mean(each):.2f} ensemble {rmse(out.mean(0)):.2f}")
