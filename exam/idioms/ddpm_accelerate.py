"""Unconditional DDPM on 8x8 digits; the loop follows diffusers' train_unconditional.py."""
import copy
import math
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader


class DDPMScheduler:
    def __init__(self, num_train_timesteps=60, beta_start=1e-3, beta_end=0.15):
        self.n = num_train_timesteps
        self.betas = torch.linspace(beta_start, beta_end, num_train_timesteps)
        self.alphas = 1 - self.betas
        self.alphas_cumprod = self.alphas.cumprod(0)

    def add_noise(self, x, noise, t):
        a = self.alphas_cumprod[t].view(-1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * noise

    def step(self, eps, t, x):
        a, ac = self.alphas[t], self.alphas_cumprod[t]
        mean = (x - self.betas[t] / (1 - ac).sqrt() * eps) / a.sqrt()
        return mean if t == 0 else mean + self.betas[t].sqrt() * torch.randn_like(x)


class UNet(nn.Module):
    def __init__(self, dim=64, width=192):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, width), nn.SiLU(), nn.Linear(width, width))
        self.inp, self.mid, self.out = nn.Linear(dim, width), nn.Linear(width, width), nn.Linear(width * 2, dim)

    def forward(self, x, t):
        freqs = torch.exp(-math.log(1000) * torch.arange(16) / 16)
        ang = t.float()[:, None] * freqs
        temb = self.time(torch.cat([ang.sin(), ang.cos()], 1))
        h1 = F.silu(self.inp(x) + temb)
        h2 = F.silu(self.mid(h1) + temb)
        return self.out(torch.cat([h1, h2], 1))


class EMAModel:
    def __init__(self, model, decay=0.98):
        self.decay, self.shadow = decay, copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def step(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


def main():
    set_seed(0)
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
    images = torch.tensor(load_digits().data / 8.0 - 1.0, dtype=torch.float32)
    dataloader = DataLoader(images, batch_size=64, shuffle=True, drop_last=True)
    unet, scheduler = UNet(), DDPMScheduler()
    optimizer = torch.optim.AdamW(unet.parameters(), lr=2e-3)
    ema = EMAModel(unet)
    unet, optimizer, dataloader = accelerator.prepare(unet, optimizer, dataloader)
    global_step = 0
    for epoch in range(32):
        unet.train()
        losses = []
        for clean_images in dataloader:
            noise = torch.randn_like(clean_images)
            timesteps = torch.randint(0, scheduler.n, (clean_images.shape[0],))
            noisy = scheduler.add_noise(clean_images, noise, timesteps)
            with accelerator.accumulate(unet):
                model_output = unet(noisy, timesteps)
                loss = F.mse_loss(model_output, noise)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(unet.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                ema.step(accelerator.unwrap_model(unet))
                global_step += 1
            losses.append(loss.detach().item())
        if epoch % 8 == 0 or epoch == 31:
            accelerator.print(f"epoch {epoch} step {global_step} loss {sum(losses) / len(losses):.4f}")
    x = torch.randn(300, 64)
    with torch.no_grad():
        for t in reversed(range(scheduler.n)):
            x = scheduler.step(ema.shadow(x, torch.full((300,), t)), t, x)
    near = torch.cdist(x.clamp(-1, 1), images).min(1).values.mean().item()
    base = torch.cdist(torch.randn(300, 64).clamp(-1, 1), images).min(1).values.mean().item()
    accelerator.print(f"distance of a sample to the nearest digit: noise {base:.2f}, generated {near:.2f}")


if __name__ == "__main__":
    main()
