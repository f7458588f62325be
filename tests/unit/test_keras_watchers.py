"""The rehearsal's watcher of Keras: a watched run is the run, and its record tells what happened in it."""

import pytest

pytestmark = pytest.mark.keras

# Runs each training twice, unwatched and watched, and prints what both gave, and the records.
_RUN = """
import json, sys
import numpy as np, keras
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.keras import finish_keras, watch_keras
{script}
def run(training):
    keras.utils.clear_session()
    keras.utils.set_random_seed(5)
    losses = training()
    return [float(v).hex() for v in losses] + [float(keras.random.normal(())).hex(), float(np.random.rand()).hex()]
def told(record):
    return dict(
        updates=record.updates, losses=record.losses, rates=[s.rate for s in record.steps],
        norms=[s.gradient_norm for s in record.steps],
        trainings=[[t.kind, t.begins, t.ends, t.planned, t.is_cut, t.where and t.where.line] for t in record.trainings],
        answers=[[str(a.output), a.trains, len(a.labels), a.total, a.update, a.inputs is not None,
                  float((a.guesses == a.labels).mean()) if a.guesses is not None
                  else 1 - float(((a.values - a.labels) ** 2).mean() / a.labels.var())] for a in record.answers],
        labels={{str(o): sum(c.classes.values()) or c.count for o, c in record.trained_labels.items()}},
        passes=[[p.update, p.is_trained, p.weights] for p in record.passes],
        best=[[b.name, b.higher_is_better, b.kept, len(b.values)] for b in record.best],
        parameters=[[p.name.split("/")[-1], p.is_trainable, p.had_gradient, p.has_moved, p.steps] for p in record.parameters],
        kept=[[k.how, k.weights] for k in record.kept], loaded=[[k.before, k.after] for k in record.loaded],
        numbers=sorted({{n.name for n in record.numbers}}), rows=[len(k) for _, _, k in record.trained_rows.values()],
        errors=record.watcher_errors)
plain = [run(t) for t in TRAININGS]
watched, records = [], []
recorder = Recorder()
for training in TRAININGS:
    recorder.__init__()
    if training is TRAININGS[0]:
        watch_keras(recorder, keras)
    if training.__name__ == "cut":
        recorder.is_over = lambda: recorder.record.updates >= 3
    watched.append(run(training))
    from trainwright.rehearsal.watch import keras as module
    pair = module._watches[recorder][0]
    finish_keras(recorder)
    records.append(told(recorder.finish()))
    module.again(recorder, pair)
print("RESULT" + json.dumps(dict(plain=plain, watched=watched, records=records)))
"""
