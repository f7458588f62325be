"""Connections to other machines are noted and refused, as on a machine without a network."""

import os
import socket

_open, _connect, _look_up = open, socket.socket.connect, socket.getaddrinfo
_OURS = ("127.0.0.1", "localhost", "::1", "", None)


def _note(what):
    with _open(os.environ["ATTEMPTS"], "a", encoding="utf-8") as file:
        file.write(f"{what}\n")


def connect(self, address):
    if isinstance(address, tuple) and address[0] not in _OURS:
        _note(address)
        raise ConnectionRefusedError("no network here")
    return _connect(self, address)


def getaddrinfo(host, *args, **kwargs):
    if host not in _OURS:
        _note(host)
        raise socket.gaierror("no names here")
    return _look_up(host, *args, **kwargs)


socket.socket.connect = connect
socket.getaddrinfo = getaddrinfo
