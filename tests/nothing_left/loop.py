"""A loop that writes in each way that a script may, into files that were open before and others."""

import csv
import gzip
import io
import json
import logging
import os
import pickle
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from digits import loader, model, optimizer, step, stop_here

logging.basicConfig(filename="train.log", level=logging.INFO)
log = logging.getLogger("mine")
log.info("start")
class Tee:
    def __init__(self, f): self.f, self.o = f, sys.stdout
    def write(self, t): self.f.write(t); self.o.write(t)
    def flush(self): self.f.flush(); self.o.flush()
sys.stdout = Tee(open("tee.txt", "w"))
print("begin")
out = open("out.txt", "w"); out.write("head\n")
app = open("app.txt", "a")
rows = open("rows.csv", "w", newline=""); writer = csv.writer(rows); writer.writerow(["step", "loss"])
fd = os.open("fd.txt", os.O_WRONLY | os.O_CREAT); os.write(fd, b"x")
zipped = io.TextIOWrapper(gzip.GzipFile("log.gz", "wb", mtime=0)); zipped.write("begin\n")
db = sqlite3.connect("runs.db"); db.execute("create table t (a)"); db.commit()
wal = sqlite3.connect("wal.db"); wal.execute("pragma journal_mode=wal"); wal.execute("create table t (a)"); wal.commit()
mm = np.memmap("mm.bin", dtype="float32", mode="w+", shape=(2048,))
mm.flush()
count = 0
for file in (out, app, rows, zipped):
    file.flush()
stop_here()
for epoch in range(3):
    for xb, yb in loader:
        loss = step(xb, yb)
        count += 1
        log.info("loss %f", loss.item())
        logging.getLogger().handlers[0].emit(logging.LogRecord("a", 20, "b", 1, "m", (), None))
        print("loss", loss.item())
        print("loss", loss.item(), file=out)
        sys.stdout.write("written\n"); sys.__stdout__.write("real\n"); sys.stderr.write("err\n")
        app.write("line\n"); app.flush()
        writer.writerow([count, loss.item()]); rows.flush()
        assert len(pd.read_csv("rows.csv")) >= 1
        os.write(fd, b"abc"); os.write(1, b"fd1\n")
        zipped.write("row\n")
        db.execute("insert into t values (1)"); db.commit()
        wal.execute("insert into t values (1)"); wal.commit()
        assert db.execute("select count(*) from t").fetchone()[0] > 0
        mm[0] = loss.item(); mm[1500] = 3; mm.flush()
        Path("new.txt").write_text("new")
        assert Path("new.txt").read_text() == "new" and "new.txt" in os.listdir(".") and list(Path(".").glob("new*"))
        np.save("a.npy", xb.numpy()); np.savetxt("a.txt", xb.numpy())
        assert np.load("a.npy").shape == tuple(xb.shape)
        pd.DataFrame({"a": [1]}).to_csv("df.csv")
        json.dump({"a": 1}, open("j.json", "w"))
        with open("p.pkl", "wb") as p: pickle.dump({"a": 1}, p)
        os.makedirs("ckpt", exist_ok=True)
        torch.save(model.state_dict(), f"ckpt/{count}.pt")
        ck = sorted(Path("ckpt").glob("*.pt"))
        assert ck
        for old in ck[:-3]: old.unlink()
        model.load_state_dict(torch.load(ck[-1]))
        other = sqlite3.connect("other.db"); other.execute("create table if not exists t (a)"); other.close()
        subprocess.run(["touch", "touched"], check=True); os.system("touch touched2")
        assert subprocess.call(["touch", "x"]) == 0
