"""A stand-in for the Hub: the files of folders as data sets, by the few addresses that reading a data set asks for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

REVISION = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def hub(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve root/OWNER/NAME as data sets; yields the address and the list of requests so far."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            self.answer(body=True)

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            requests.append(f"{self.command} {path} {self.headers.get('Range', '')}".strip())
            parts = path.strip("/").split("/")
            if parts[:2] == ["api", "datasets"]:
                self.metadata(root / parts[2] / parts[3], parts[4:])
            elif parts[0] == "datasets" and parts[3] == "resolve":
                self.content(root.joinpath(parts[1], parts[2], *parts[5:]), body=body)
            else:
                self.reply(404, b"{}")

        def metadata(self, folder: Path, rest: list[str]) -> None:
            if not folder.is_dir():
                self.reply(404, b'{"error": "Repository not found"}', {"X-Error-Code": "RepoNotFound"})
                return
            files = sorted(f for f in folder.rglob("*") if f.is_file())
            tree = [
                {"type": "file", "path": str(f.relative_to(folder)), "size": f.stat().st_size, "oid": f"{i:040x}"}
                for i, f in enumerate(files)
            ]
            name = f"{folder.parent.name}/{folder.name}"
            about = {"id": name, "sha": REVISION, "siblings": [{"rfilename": t["path"]} for t in tree], "tags": []}
            self.reply(200, json.dumps(tree if rest[:1] in (["tree"], ["paths-info"]) else about).encode())

        def content(self, file: Path, *, body: bool) -> None:
            if not file.is_file():
                self.reply(404, b"", {"X-Error-Code": "EntryNotFound"})
                return
            data = file.read_bytes()
            headers = {"ETag": f'"{file.name}"', "X-Repo-Commit": REVISION, "Accept-Ranges": "bytes"}
            wanted = self.headers.get("Range")
            if wanted:
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                end = min(int(last) if last else len(data) - 1, len(data) - 1)
                headers["Content-Range"] = f"bytes {first}-{end}/{len(data)}"
                self.reply(206, data[int(first) : end + 1], headers, body=body)
            else:
                self.reply(200, data, headers, body=body)

        def reply(self, status: int, data: bytes, headers: dict[str, str] | None = None, *, body: bool = True) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Length": str(len(data)),
                "Content-Type": "application/json",
                **(headers or {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
