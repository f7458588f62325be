"""Blocks connections to other machines while the check runs the user's code.

Training may stream data over the network, so read requests from a dataset's code are allowed.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import smtplib
import socket
import sys
import urllib.request
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from trainwright.seams.failures.blame import of_pipeline, passed_on
from trainwright.seams.isolation.inert import Nothing
from trainwright.seams.isolation.tally import Tally

_ASKING = ("GET", "HEAD", "OPTIONS")
# Modules whose frames on the stack indicate that data are being read.
_DATA = ("torch.utils.data", "datasets.", "webdataset", "streaming", "fsspec", "tensorflow.python.data", "litdata",
         "huggingface_hub", "keras.src.trainers.data_adapters")  # fmt: skip


class Refused(ConnectionRefusedError):
    """A connection to another machine that was blocked during the check."""


Passes = Callable[..., bool]
Change = tuple[Any, str, Any]
"""A replacement: owner, name, value."""


def sending(tally: Tally, in_step: Callable[[], bool]) -> Passes:
    """A function that decides whether a request to an address with an HTTP method may be sent; counts blocked ones.

    Args:
        in_step: whether the user's step is running, when a read request is blocked unless a dataset makes it.
    """

    def passes(address: Any, method: str = "GET") -> bool:
        if is_this_machine(address) or (method.upper() in _ASKING and (not in_step() or _reads_data())):
            return True
        tally.requests += 1
        return False

    return passes


def is_this_machine(address: Any) -> bool:
    """Whether a host name or address is this machine's own."""
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


def unsent(passes: Passes) -> Iterator[Change]:
    """Replacements in the standard library that send nothing but appear to succeed."""
    yield socket.socket, "connect", _connecting(socket.socket.connect, passes, None)
    yield socket.socket, "connect_ex", _connecting(socket.socket.connect_ex, passes, 111)
    yield urllib.request.OpenerDirector, "open", _opening(urllib.request.OpenerDirector.open, passes)
    for kind in (http.client.HTTPConnection, http.client.HTTPSConnection):
        yield kind, "connect", _answered(kind.connect, passes)
    for name in ("SMTP", "SMTP_SSL"):
        yield smtplib, name, _mailing(getattr(smtplib, name), passes)


def unsent_by_library(passes: Passes) -> dict[str, Callable[[Any], Iterator[Change]]]:
    """The same for other libraries, by the module to patch."""

    def urllib3(module: Any) -> Iterator[Change]:
        yield module.HTTPConnectionPool, "urlopen", _pooled(module, passes)

    def httpx(module: Any) -> Iterator[Change]:
        yield module.Client, "send", _sending_httpx(module, passes)

    return {"urllib3.connectionpool": urllib3, "httpx": httpx, "httpx2": httpx}


def _connecting(original: Callable[..., Any], passes: Passes, status: int | None) -> Callable[..., Any]:
    def connect(self: Any, address: Any) -> Any:
        if isinstance(address, tuple) and not passes(address[0]):
            if status is not None:
                return status
            raise of_pipeline(Refused(111, "not connected during a Trainwright check"))
        return passed_on(original, self, address)

    return connect


def _opening(original: Callable[..., Any], passes: Passes) -> Callable[..., Any]:
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


class _Answer:
    """The socket of a blocked connection: it accepts everything and reports success."""

    def makefile(self, *args: Any, **kwargs: Any) -> io.BytesIO:
        return io.BytesIO(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    def sendall(self, data: Any) -> None:
        """Does nothing: nothing is sent."""

    def close(self) -> None:
        """Does nothing: nothing is open."""


def _answered(original: Callable[..., Any], passes: Passes) -> Callable[..., Any]:
    """The connections of `http.client`."""

    def connect(self: Any) -> None:
        if passes(self.host, getattr(self, "_method", None) or "POST"):
            passed_on(original, self)
        else:
            self.sock = _Answer()

    return connect


def _mailing(original: Any, passes: Passes) -> Callable[..., Any]:
    def connect(host: str = "", *args: Any, **kwargs: Any) -> Any:
        return original(host, *args, **kwargs) if not host or passes(host, "POST") else Nothing()

    return connect


def _pooled(module: Any, passes: Passes) -> Callable[..., Any]:
    """The connections of urllib3, which requests and others use."""
    original = module.HTTPConnectionPool.urlopen

    def urlopen(self: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        if passes(self.host, method):
            return original(self, method, url, *args, **kwargs)
        response = sys.modules["urllib3.response"].HTTPResponse
        return response(
            body=io.BytesIO(b"{}"),
            status=200,
            reason="OK",
            request_url=url,
            preload_content=kwargs.get("preload_content", True),
        )

    return urlopen


def _sending_httpx(module: Any, passes: Passes) -> Callable[..., Any]:
    original = module.Client.send

    def send(self: Any, request: Any, **kwargs: Any) -> Any:
        if passes(request.url.host, request.method):
            return original(self, request, **kwargs)
        return module.Response(200, content=b"{}", request=request)

    return send
