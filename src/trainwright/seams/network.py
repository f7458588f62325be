"""Connections to other machines, kept from being made while the walk runs the user's code for a look.

Data may come over the network as training goes on: what only asks, from a data set's code, passes.
"""

from __future__ import annotations

import contextlib
import io
import ipaddress
import socket
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from trainwright.seams.stand_in import Nothing
from trainwright.seams.tally import Tally

_ASKING = ("GET", "HEAD", "OPTIONS")
# Whose frames on the stack show that data are being read.
_DATA = ("torch.utils.data", "datasets.", "webdataset", "streaming", "fsspec", "tensorflow.python.data", "litdata",
         "huggingface_hub", "keras.src.trainers.data_adapters")  # fmt: skip


class Refused(ConnectionRefusedError):
    """A connection to another machine that was not made, because the walk only looks on."""


@contextlib.contextmanager
def unsent(tally: Tally, in_step: Callable[[], bool]) -> Iterator[None]:
    """Nothing is sent to another machine, and what would be sent seems to have been.

    Args:
        in_step: whether the user's own step runs now, where a question is no reading of data unless a data set asks it.
    """

    def passes(address: str, method: str = "GET") -> bool:
        if is_this_machine(address) or (method.upper() in _ASKING and (not in_step() or _reads_data())):
            return True
        tally.requests += 1
        return False

    with contextlib.ExitStack() as stack:
        for owner, name, value in _changes(passes):
            original = vars(owner).get(name) if isinstance(owner, type) else getattr(owner, name)
            setattr(owner, name, value)
            stack.callback(setattr, owner, name, original) if original is not None else stack.callback(
                delattr, owner, name
            )
        yield


def is_this_machine(address: Any) -> bool:
    """Whether a host's name or number is this machine's own."""
    host = str(address or "").strip("[]").partition("%")[0]
    if host in ("", "localhost", "0.0.0.0", "::") or host == socket.gethostname():
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _reads_data() -> bool:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_DATA):
            return True
        frame = frame.f_back
    return False


def _changes(passes: Callable[..., bool]) -> Iterator[tuple[Any, str, Any]]:
    """What is replaced: owner, name, value."""
    yield socket.socket, "connect", _connecting(socket.socket.connect, passes, None)
    yield socket.socket, "connect_ex", _connecting(socket.socket.connect_ex, passes, 111)
    if request := sys.modules.get("urllib.request"):
        yield request.OpenerDirector, "open", _opening(request.OpenerDirector.open, passes)
    if mail := sys.modules.get("smtplib"):
        for name in ("SMTP", "SMTP_SSL"):
            original = getattr(mail, name)
            yield mail, name, lambda host="", *rest, _real=original, **kwargs: (
                _real(host, *rest, **kwargs) if not host or passes(host, "SEND") else Nothing()
            )
    if requests := sys.modules.get("requests"):
        yield requests.Session, "send", _sending_requests(requests, passes)
    for library in ("httpx", "httpx2"):
        if module := sys.modules.get(library):
            yield module.Client, "send", _sending_httpx(module, passes)


def _connecting(original: Callable[..., Any], passes: Callable[..., bool], status: int | None) -> Callable[..., Any]:
    def connect(self: Any, address: Any) -> Any:
        if isinstance(address, tuple) and not passes(address[0]):
            if status is not None:
                return status
            raise Refused(111, "not connected: the walk only looks on")
        return original(self, address)

    return connect


def _opening(original: Callable[..., Any], passes: Callable[..., bool]) -> Callable[..., Any]:
    """`urllib.request.urlopen`."""

    def open_url(self: Any, request: Any, data: Any = None, *args: Any, **kwargs: Any) -> Any:
        url = request if isinstance(request, str) else request.full_url
        sends = data is not None or (not isinstance(request, str) and request.get_method() not in _ASKING)
        if urlsplit(url).scheme not in ("http", "https", "ftp") or passes(
            urlsplit(url).hostname, "POST" if sends else "GET"
        ):
            return original(self, request, data, *args, **kwargs)
        from email.message import Message
        from urllib.response import addinfourl

        return addinfourl(io.BytesIO(b""), Message(), url, 200)

    return open_url


def _sending_requests(requests: Any, passes: Callable[..., bool]) -> Callable[..., Any]:
    original = requests.Session.send

    def send(self: Any, request: Any, **kwargs: Any) -> Any:
        if passes(urlsplit(request.url).hostname, request.method or "GET"):
            return original(self, request, **kwargs)
        answer = requests.Response()
        answer.status_code, answer._content, answer.url, answer.request = 200, b"{}", request.url, request
        answer.reason, answer.encoding = "OK", "utf-8"
        return answer

    return send


def _sending_httpx(module: Any, passes: Callable[..., bool]) -> Callable[..., Any]:
    original = module.Client.send

    def send(self: Any, request: Any, **kwargs: Any) -> Any:
        if passes(request.url.host, request.method):
            return original(self, request, **kwargs)
        return module.Response(200, content=b"{}", request=request)

    return send
