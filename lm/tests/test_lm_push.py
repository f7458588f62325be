"""Pushing to a stand-in of the Hub on this machine: what arrives is an export; what cannot arrive is said."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch

from lm_runs import model, run
from trainwright.errors import UsageError, WriteError
from trainwright_lm.exchange.export import push_run


class Hub(ThreadingHTTPServer):
    """Takes one model's repository, as huggingface_hub's client of 2.4 asks for it without Xet."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.created: dict[str, Any] = {}
        self.large: dict[str, bytes] = {}
        """What was put as a large file, by its SHA-256."""
        self.files: dict[str, bytes] = {}
        """What was committed."""
        self.commits: list[str] = []
        self.refuses = 0
        """An HTTP status, instead of creating a repository."""
        self.tokens: set[str | None] = set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    server: Hub

    def do_POST(self) -> None:
        self.server.tokens.add(self.headers.get("Authorization"))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.split("?")[0]
        if path == "/api/repos/create":
            self._create(json.loads(body))
        elif path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif path == "/api/models/me/tiny/preupload/main":
            self._answer({"files": [_mode(file) for file in json.loads(body)["files"]]})
        elif path == "/me/tiny.git/info/lfs/objects/batch":
            self._answer({"transfer": "basic", "objects": [self._place(o) for o in json.loads(body)["objects"]]})
        elif path == "/api/models/me/tiny/commit/main":
            self._commit([json.loads(line) for line in body.splitlines()])
        else:
            self._answer({"error": f"no {path} here"}, 404)

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        assert hashlib.sha256(content).hexdigest() == self.path.removeprefix("/large/")
        self.server.large[self.path.removeprefix("/large/")] = content
        self._answer({})

    def do_GET(self) -> None:
        self._answer({"error": "Repository not found"}, 404)

    def _create(self, wish: dict[str, Any]) -> None:
        if self.server.refuses:
            self._answer({"error": "You are not allowed to"}, self.server.refuses)
            return
        self.server.created = wish
        self._answer({"url": f"{self.server.address}/me/tiny", "name": "me/tiny"})

    def _place(self, wish: dict[str, Any]) -> dict[str, Any]:
        href = f"{self.server.address}/large/{wish['oid']}"
        return {**wish, "actions": {"upload": {"href": href, "header": {}}}}

    def _commit(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                self.server.commits.append(value["summary"])
            elif line["key"] == "file":
                self.server.files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                self.server.files[value["path"]] = self.server.large[value["oid"]]
        self._answer({"commitUrl": f"{self.server.address}/me/tiny/commit/{'0' * 40}", "commitOid": "0" * 40})

    def _answer(self, value: dict[str, Any], status: int = 200) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _mode(file: dict[str, Any]) -> dict[str, Any]:
    large = file["path"].endswith(".safetensors")
    return {"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A stand-in that this process's huggingface_hub, which read HF_ENDPOINT when it was imported, speaks to."""
    from huggingface_hub import constants

    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # as the tests are otherwise
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_test")
    yield server
    server.shutdown()
    server.server_close()


def test_what_is_pushed_opens_in_transformers(hub: Hub, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    address = push_run(run(tmp_path / "run", "modern"), "me/tiny", private=True)
    assert address == f"{hub.address}/me/tiny"
    assert (hub.created["name"], hub.created["organization"], hub.created["visibility"]) == ("tiny", "me", "private")
    assert hub.tokens == {"Bearer hf_of_the_test"}
    assert hub.commits == ["Update 7 of a Trainwright run"]
    assert b"# me/tiny" in hub.files["README.md"]
    for name, content in hub.files.items():
        (tmp_path / name).write_bytes(content)
    theirs, ours = AutoModelForCausalLM.from_pretrained(tmp_path), model("modern")
    ids = torch.tensor([AutoTokenizer.from_pretrained(tmp_path)("import numpy as np")["input_ids"]])
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, ours(ids), atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_the_command_pushes_to_the_hub_that_the_environment_names(hub: Hub, tmp_path: Path) -> None:
    folder = run(tmp_path / "run", "gpt2")
    environment = os.environ | {
        "HF_ENDPOINT": hub.address, "HF_TOKEN": "hf_of_the_test", "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path),
        "HF_HUB_OFFLINE": "0",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "trainwright", "lm", "push", str(folder), "me/tiny"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{hub.address}/me/tiny"
    assert hub.created.get("visibility") != "private"
    wanted = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert set(hub.files) == wanted | {"README.md"}


def test_without_a_token_nothing_is_sent(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="hf auth login"):
        push_run(run(tmp_path / "run", "modern"), "me/tiny")
    assert not hub.tokens


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_hub_that_refuses_is_named_with_its_reason(hub: Hub, status: int, tmp_path: Path) -> None:
    hub.refuses = status
    with pytest.raises(WriteError, match=f"{hub.address} did not accept me/tiny: .*{status}"):
        push_run(run(tmp_path / "run", "modern"), "me/tiny")
    assert not hub.files


def test_a_hub_that_is_not_there_is_named(hub: Hub, tmp_path: Path) -> None:
    hub.shutdown()
    hub.server_close()
    with pytest.raises(WriteError, match=hub.address):
        push_run(run(tmp_path / "run", "modern"), "me/tiny")


@pytest.mark.parametrize("name", ["a/b/c", "me/ti ny", "", "--"])
def test_a_name_that_is_none_is_refused(hub: Hub, name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="owner/name"):
        push_run(run(tmp_path / "run", "modern"), name)
    assert not hub.tokens
