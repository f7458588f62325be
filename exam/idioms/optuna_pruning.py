"""Optuna: tune a little classifier, then refit with the best parameters."""
import optuna
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn, optim

optuna.logging.set_verbosity(optuna.logging.WARNING)
EPOCHS, BATCH = 5, 64
X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16, dtype=torch.float32)
y = torch.tensor(y)
idx_train, idx_test = train_test_split(torch.arange(len(X)), test_size=0.2, random_state=0, stratify=y)
idx_train, idx_valid = train_test_split(idx_train, test_size=0.25, random_state=0, stratify=y[idx_train])


def define_model(trial):
    layers, in_features = [], 64
    for i in range(trial.suggest_int("n_layers", 1, 2)):
        out_features = trial.suggest_int(f"n_units_l{i}", 16, 64)
        layers += [nn.Linear(in_features, out_features), nn.ReLU(), nn.Dropout(trial.suggest_float(f"dropout_l{i}", 0.0, 0.3))]
        in_features = out_features
    return nn.Sequential(*layers, nn.Linear(in_features, 10))


def accuracy(model, idx):
    model.eval()
    with torch.no_grad():
        return (model(X[idx]).argmax(1) == y[idx]).float().mean().item()


def fit_one_epoch(model, optimizer):
    model.train()
    for take in idx_train[torch.randperm(len(idx_train))].split(BATCH):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(X[take]), y[take])
        loss.backward()
        optimizer.step()
    return loss.item()


def objective(trial):
    torch.manual_seed(trial.number)
    model = define_model(trial)
    name = trial.suggest_categorical("optimizer", ["Adam", "RMSprop"])
    lr = trial.suggest_float("lr", 1e-4, 2e-2, log=True)
    optimizer = getattr(optim, name)(model.parameters(), lr=lr)
    for epoch in range(EPOCHS):
        fit_one_epoch(model, optimizer)
        acc = accuracy(model, idx_valid)
        trial.report(acc, epoch)
        if trial.should_prune():
            raise optuna.exceptions.TrialPruned()
    return acc


if __name__ == "__main__":
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0),
                                pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1))
    study.optimize(objective, n_trials=16)
    states = [t.state.name for t in study.trials]
    print(f"finished {len(states)}, pruned {states.count('PRUNED')}, first value {study.trials[0].value:.3f}, best value {study.best_value:.3f}")
    print("best params", {k: round(v, 4) if isinstance(v, float) else v for k, v in study.best_params.items()})
    torch.manual_seed(0)
    model = define_model(optuna.trial.FixedTrial(study.best_params))
    optimizer = getattr(optim, study.best_params["optimizer"])(model.parameters(), lr=study.best_params["lr"])
    for epoch in range(EPOCHS):
        loss = fit_one_epoch(model, optimizer)
    print(f"refit: loss {loss:.3f} test accuracy {accuracy(model, idx_test):.3f}")
