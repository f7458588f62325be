"""Shaped as the package of this name; it goes to its server at once, as that does without a key."""

import socket


def _call():
    socket.create_connection(("tracker.example.org", 443), timeout=5)


class Logger:
    def report_scalar(self, title, series, value, iteration):
        _call()


class Task:
    @classmethod
    def init(cls, project_name=None, task_name=None, **kwargs):
        _call()
        return cls()

    def connect(self, mutable, name=None):
        return mutable

    def get_logger(self):
        return Logger()
