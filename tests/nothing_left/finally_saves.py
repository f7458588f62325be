"""What a script does in `finally` after the check is no result of a training."""

import torch

from digits import loader, model, step, stop_here

try:
    with open("log.txt", "w") as log:
        log.write("head\n")
        log.flush()
        if __import__("os").environ.get("STOP"):
            __import__("os")._exit(0)
        for xb, yb in loader:
            loss = step(xb, yb)
            log.write(f"{loss.item()}\n")
finally:
    torch.save(model.state_dict(), "last.pt")
    with open("log.txt", "a") as log:
        log.write("the end")
