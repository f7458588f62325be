"""The command `trainwright mcp`, asked by the official client: a check, its rows, and a cure tried in memory."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[1] / "contract" / "excessive_learning_rate" / "with_torch.py"


def test_a_cure_is_tried_before_it_is_written(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    source = f"{SCRIPT.read_text()}print('this is no message of the protocol')\n"
    script.write_text(source)
    command = ["-m", "trainwright", "mcp", str(tmp_path)]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ), cwd=tmp_path)

    async def ask() -> None:
        async with Client(server) as client:
            heard = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard.append(message)

            async def ask_for(tool: str, **asked: object) -> dict:
                return json.loads((await client.call_tool(tool, asked, progress_callback=hear)).content[0].text)

            first = await ask_for("check", script="train.py")
            assert "TW605 excessive-learning-rate (error) train.py:28" in first["first_cause"]
            assert any("rehearsing the script" in one for one in heard)
            rows = await ask_for("rows", id="c1", wrong=True)
            assert all(" wrong | " in row for row in rows["rows"])
            cured = await ask_for("check", script="train.py", patch=first["diff"])
            assert "excessive-learning-rate" in cured["no_longer_found"] and "broken" not in cured["verdict"]

    asyncio.run(ask())
    assert script.read_text() == source
