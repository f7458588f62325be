"""Loops that are begun anew leave alone what they go over."""

import pytest

from walking import loud, said, walk

pytestmark = pytest.mark.slow

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.005)
lines = open({file!r})
for line in lines:
    *inputs, target = map(float, line.split())
    loss = (net(torch.tensor([inputs])).squeeze() - target) ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_file_that_a_loop_reads_is_not_closed_by_the_walk(tmp_path) -> None:
    """`yield from` a file closes it when the generator that yields is closed: the next turn then failed."""
    rows = tmp_path / "rows.txt"
    rows.write_text("".join(f"{i % 3} {i % 5} {i % 7} {i % 3 + i % 5}\n" for i in range(400)))
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(file=str(rows)))
    report = walk(script)
    assert not loud(report) and not report.faulty, said(report)
