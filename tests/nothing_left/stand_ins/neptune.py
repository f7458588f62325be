"""Shaped as the package of this name; it goes to its server at once, as that does without a key."""

import socket


def _call():
    socket.create_connection(("tracker.example.org", 443), timeout=5)


class Run:
    def __init__(self, **kwargs):
        _call()

    def __setitem__(self, key, value):
        _call()

    def __getitem__(self, key):
        return self

    def append(self, value, step=None):
        _call()


def init_run(project=None, api_token=None, mode=None, **kwargs):
    return Run()
