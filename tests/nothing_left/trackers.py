"""A script that tracks its training everywhere at once, and sends word of it."""

import wandb, trackio, mlflow, optuna
from huggingface_hub import HfApi, login, create_repo, upload_folder
wandb.login(); run = wandb.init(project="p", config={"lr": 1e-2})
art = wandb.Artifact("model", type="model")
login(); api = HfApi(); repo = api.create_repo("mine"); assert repo.repo_id == "user/mine" and create_repo("org/mine")
assert api.whoami()["name"]
trackio.init(project="p")
mlflow.set_tracking_uri("http://tracking.example.org:5000"); mlflow.set_experiment("e"); active = mlflow.start_run()
assert active.info.run_id
mlflow.log_param("a", 1)
study = optuna.create_study(storage="sqlite:///study.db", study_name="s", load_if_exists=True)
trial = study.ask(); lr = trial.suggest_float("lr", 1e-3, 1e-2)
import aim
import clearml
import comet_ml
import neptune

experiment = comet_ml.Experiment(project_name="p"); comet_ml.login(); started = comet_ml.start(project_name="p")
neptune_run = neptune.init_run(project="a/b"); neptune_run["parameters"] = {"lr": 1e-2}
task = clearml.Task.init(project_name="p", task_name="t"); settings = task.connect({"lr": 1e-2}); assert settings["lr"] == 1e-2
tracked = aim.Run(experiment="p"); tracked["hparams"] = {"lr": 1e-2}
from torch.utils.tensorboard import SummaryWriter
board = SummaryWriter("runs"); board.add_scalar("before", 1.0, 0); board.add_hparams({"lr": 1.0}, {"a": 1.0})

from digits import loader, model, optimizer, step, stop_here

stop_here()
wandb.watch(model)
for epoch in range(3):
    for xb, yb in loader:
        loss = step(xb, yb)
        experiment.log_metric("loss", loss.item()); started.log_metrics({"loss": loss.item()})
        neptune_run["train/loss"].append(loss.item()); task.get_logger().report_scalar("loss", "train", loss.item(), 0)
        tracked.track(loss.item(), name="loss"); board.add_scalar("loss", loss.item(), epoch)
        wandb.log({"loss": loss.item()}); run.summary["best"] = loss.item(); run.log_artifact(art); wandb.save("a.pt")
        trackio.log({"loss": loss.item()}); mlflow.log_metric("loss", loss.item()); mlflow.log_dict({"a": 1}, "a.json")
        trial.report(loss.item(), epoch)
        if trial.should_prune(): raise optuna.TrialPruned
        upload_folder(repo_id="org/mine", folder_path=".")
        import requests, urllib.request, smtplib
        assert requests.post("https://hooks.slack.example.org/x", json={"a": 1}, timeout=5).ok
        assert requests.get("https://api.telegram.example.org/bot/sendMessage?text=a", timeout=5).ok
        assert urllib.request.urlopen("https://api.example.org/x?text=a", timeout=5).status == 200
        with smtplib.SMTP("mail.example.org") as m: m.sendmail("a", "b", "c")
wandb.finish(); trackio.finish(); mlflow.end_run()
