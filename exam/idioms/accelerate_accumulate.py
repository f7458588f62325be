"""A no_trainer.py style script: accumulation, clipping, linear schedule, gather_for_metrics."""
import argparse
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_scheduler


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--learning_rate", type=float, default=5e-3)
    p.add_argument("--num_train_epochs", type=int, default=10)
    p.add_argument("--per_device_train_batch_size", type=int, default=32)
    p.add_argument("--gradient_accumulation_steps", type=int, default=2)
    p.add_argument("--num_warmup_steps", type=int, default=20)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def main():
    args = parse_args()
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps, cpu=True)
    set_seed(args.seed)
    X, y = load_digits(return_X_y=True)
    X_tr, X_ev, y_tr, y_ev = train_test_split(X / 16, y, test_size=0.25, stratify=y, random_state=args.seed)
    as_ds = lambda a, b: TensorDataset(torch.tensor(a, dtype=torch.float32), torch.tensor(b))
    train_dataloader = DataLoader(as_ds(X_tr, y_tr), shuffle=True, batch_size=args.per_device_train_batch_size)
    eval_dataloader = DataLoader(as_ds(X_ev, y_ev), batch_size=100)
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(96, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    updates_per_epoch = -(-len(train_dataloader) // args.gradient_accumulation_steps)
    max_train_steps = args.num_train_epochs * updates_per_epoch
    lr_scheduler = get_scheduler("linear", optimizer, num_warmup_steps=args.num_warmup_steps, num_training_steps=max_train_steps)
    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, lr_scheduler)
    accelerator.print(f"***** Running training: {max_train_steps} optimization steps *****")
    completed_steps = 0
    for epoch in range(args.num_train_epochs):
        model.train()
        total_loss = 0.0
        for step, (x, t) in enumerate(train_dataloader):
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(x), t)
                total_loss += loss.detach().float()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                completed_steps += 1
        model.eval()
        correct = seen = 0
        for x, t in eval_dataloader:
            with torch.no_grad():
                predictions = model(x).argmax(dim=-1)
            predictions, references = accelerator.gather_for_metrics((predictions, t))
            correct, seen = correct + (predictions == references).sum().item(), seen + len(references)
        accelerator.print(f"epoch {epoch}: steps {completed_steps} loss {total_loss.item() / len(train_dataloader):.4f} accuracy {correct / seen:.4f}")


if __name__ == "__main__":
    main()
