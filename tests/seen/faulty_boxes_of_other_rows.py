# verdict: learns in part
# finds: unlearned-part
# The Trainer; the class is learned, the box is that of the next row.
import torch
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(2)
MAP, PLACE = torch.randn(10, 3), torch.randn(10, 4)


def rows(count, shift):
    values = torch.randn(count, 10)
    kinds, boxes = (values @ MAP).argmax(1), torch.tanh(values @ PLACE).roll(shift, 0)
    return [{"values": v, "kind": k, "box": b} for v, k, b in zip(values, kinds, boxes)]


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.kinds, self.boxes = nn.Sequential(nn.Linear(10, 64), nn.ReLU()), nn.Linear(64, 3), nn.Linear(64, 4)

    def forward(self, values, kind=None, box=None):
        hidden = self.body(values)
        kinds, boxes = self.kinds(hidden), self.boxes(hidden)
        loss = nn.functional.cross_entropy(kinds, kind) + nn.functional.smooth_l1_loss(boxes, box)
        return {"loss": loss, "kinds": kinds, "boxes": boxes}


arguments = TrainingArguments(
    "out", num_train_epochs=8, per_device_train_batch_size=50, learning_rate=3e-3, eval_strategy="epoch", save_strategy="no",
    report_to="none", disable_tqdm=True, label_names=["kind", "box"], per_device_eval_batch_size=100, use_cpu=True,
)
Trainer(Detector(), arguments, train_dataset=rows(1500, 1), eval_dataset=rows(500, 0)).train()
