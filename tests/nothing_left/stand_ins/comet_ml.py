"""Shaped as the package of this name; it goes to its server at once, as that does without a key."""

import socket


def _call():
    socket.create_connection(("tracker.example.org", 443), timeout=5)


class Experiment:
    def __init__(self, api_key=None, project_name=None, workspace=None, **kwargs):
        _call()

    def log_metric(self, name, value, step=None, epoch=None):
        _call()

    log_metrics = log_parameters = log_metric


class OfflineExperiment(Experiment):
    pass


def login(**kwargs):
    raise ValueError("Comet.ml requires an API key")


def start(**kwargs):
    return Experiment()
