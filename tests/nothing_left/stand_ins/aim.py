"""Shaped as the package of this name; it goes to its server at once, as that does without a key."""

import socket


def _call():
    socket.create_connection(("tracker.example.org", 443), timeout=5)


class Run:
    def __init__(self, run_hash=None, *, repo=None, experiment=None, **kwargs):
        open(".aim", "w").close()

    def __setitem__(self, key, value):
        _call()

    def track(self, value, name=None, step=None, epoch=None, *, context=None):
        _call()
