"""A fault for each program of tests/idioms whose author's own fault is not named: what is changed, and what is named where."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """One change to a sound program."""

    old: str
    new: str
    rule: str
    line: str
    """The text of the line that is named."""


FAULTS: dict[str, Fault] = {
    "a2c_rollout": Fault(
        "        with torch.no_grad():\n            next_value = agent(storage.obs[-1])[1]",
        "        next_value = agent(storage.obs[-1])[1]",
        "repeated-backward",
        "self.returns[step] = self.rewards[step] + gamma * self.returns[step + 1] * self.masks[step]",
    ),
    "accelerate_accumulate": Fault(
        "                accelerator.backward(loss)",
        "                optimizer.zero_grad()\n                accelerator.backward(loss)",
        "wiped-accumulation",
        "optimizer.zero_grad()",
    ),
    "accumulate_leftover": Fault(
        "        (loss / accumulation_steps).backward()",
        "        optimizer.zero_grad(set_to_none=True)\n        (loss / accumulation_steps).backward()",
        "wiped-accumulation",
        "optimizer.zero_grad(set_to_none=True)",
    ),
    "active_learning": Fault(
        "X, y = torch.from_numpy(X), torch.from_numpy(y)",
        "X, y = torch.from_numpy(X), torch.from_numpy(y).float()",
        "wrong-target-dtype",
        "loss = nn.functional.cross_entropy(self.net(X[idx]), y[idx])",
    ),
    "argparse_dqn": Fault(
        ".gather(1, a.unsqueeze(1)).squeeze(1)",
        ".gather(1, a.unsqueeze(1))",
        "broadcast-loss",
        "loss = F.mse_loss(td_target, old_val)",
    ),
    "array_split_manual_sgd": Fault(
        "            p.grad.detach_()\n            p.grad.zero_()",
        "            p.grad.detach_()",
        "uncleared-gradients",
        "loss.backward()",
    ),
    "autoencoder_then_probe": Fault(
        "decoder(encoder(x))",
        "decoder(encoder(x).detach())",
        "severed-graph",
        "loss = nn.functional.mse_loss(decoder(encoder(x).detach()), x)",
    ),
    "chain_autoencoder": Fault(
        "for epoch in range(1, 21):\n    seen, total = 0, 0.0\n    for (x,) in chain(north, south):",
        "batches = chain(north, south)\nfor epoch in range(1, 21):\n    seen, total = 0, 0.0\n    for (x,) in batches:",
        "exhausted-data",
        "batches = chain(north, south)",
    ),
    "char_rnn": Fault("        optimizer.zero_grad()\n", "", "uncleared-gradients", "loss.backward()"),
    "choice_batches_ordinal": Fault(
        "return self.score(x) - cuts",
        "return torch.sigmoid(self.score(x) - cuts)",
        "double-activation",
        "return torch.sigmoid(self.score(x) - cuts)  # (N, LEVELS - 1)",
    ),
    "clip_norm_slices": Fault(
        "        optimizer.zero_grad()\n        loss = criterion(net(train_x[idx]), train_y[idx])\n        loss.backward()",
        "        loss = criterion(net(train_x[idx]), train_y[idx])\n        loss.backward()\n        optimizer.zero_grad()",
        "wiped-accumulation",
        "optimizer.zero_grad()",
    ),
    "coin_flip_multi_crop": Fault(
        "return crops, ys[self.ids[k]]",
        "return crops, ys[k]",
        "misaligned-labels",
        "noisy = forever(DataLoader(Crops(shuffled[700:1400], 0.1), batch_size=32, shuffle=True))",
    ),
    "ctc_toy": Fault(
        "return self.fc(self.gru(x)[0]).log_softmax(-1)",
        "return self.fc(self.gru(x)[0])",
        "missing-activation",
        "loss = ctc_loss(log_probs, targets, input_lengths, target_lengths)",
    ),
    "cycle_finetune": Fault(
        "        optimizer.step()\n        optimizer.zero_grad()\n",
        "        optimizer.step()\n",
        "uncleared-gradients",
        "loss.backward()",
    ),
    "dataclass_loader": Fault(
        "            sched.step()\n            total += loss.item()\n",
        "            total += loss.item()\n        sched.step()\n",
        "schedule-in-wrong-unit",
        "sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=cfg.max_lr, epochs=cfg.epochs, steps_per_epoch=len(train))",
    ),
    "ddpg_pointmass": Fault(
        "        for p in ac.q.parameters():\n            p.requires_grad = True\n",
        "",
        "no-gradient",
        "loss_q.backward()",
    ),
    "ddpm_accelerate": Fault(
        "lr=2e-3", "lr=2", "excessive-learning-rate", "optimizer = torch.optim.AdamW(unet.parameters(), lr=2)"
    ),
    "distillation": Fault(
        "test_loader = DataLoader(TensorDataset(X_te, y_te)",
        "test_loader = DataLoader(TensorDataset(X_tr, y_tr)",
        "evaluation-on-training-data",
        "test_loader = DataLoader(TensorDataset(X_tr, y_tr), batch_size=300)",
    ),
    "double_dqn_maze": Fault(
        "        q = online(state).gather(1, action).squeeze(1)\n        with torch.no_grad():\n            best",
        "        with torch.no_grad():\n            q = online(state).gather(1, action).squeeze(1)\n            best",
        "no-gradient",
        "best = online(nxt).argmax(1, keepdim=True)",
    ),
    "early_stopping": Fault(
        "((logits > 0).float() == y_test)",
        "((logits > 0).float() == y_test.squeeze(1))",
        "broadcast-metric",
        "test_acc = ((logits > 0).float() == y_test.squeeze(1)).float().mean().item()",
    ),
    "ema_swap": Fault(
        "optimizer = torch.optim.SGD(",
        "for p in model.parameters():\n    nn.init.constant_(p, 0.05)\noptimizer = torch.optim.SGD(",
        "identical-units",
        "model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 6))",
    ),
    "enumerate_tqdm_vae": Fault(
        "return torch.sigmoid(self.dec2(F.relu(self.dec1(z))))",
        "return self.dec2(F.relu(self.dec1(z)))",
        "missing-activation",
        'bce = F.binary_cross_entropy(recon, x, reduction="sum")',
    ),
    "fgsm_adversarial": Fault("        optimizer.zero_grad()\n", "", "uncleared-gradients", "loss.backward()"),
    "gan_blobs": Fault(
        "fake = netG(torch.randn(real.size(0), nz))",
        "fake = netG(torch.randn(real.size(0), nz)).detach()",
        "severed-graph",
        "fake = netG(torch.randn(real.size(0), nz)).detach()",
    ),
    "grad_none_gradient_noise": Fault(
        "p.sub_(lr * p.grad)", "p = p - lr * p.grad", "unstepped-optimizer", "p = p - lr * p.grad"
    ),
    "gradscaler_cpu": Fault(
        "X, y = X[shuffle], y[shuffle]",
        "X, y = X[shuffle], y[torch.randperm(len(y))]",
        "misaligned-labels",
        "train_loader = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50, shuffle=True)",
    ),
    "graph_adjacency_for_else": Fault(
        "F.dropout(h, 0.3, self.training)", "F.dropout(h, 0.3)", "training-mode-evaluation", "h = F.dropout(h, 0.3)"
    ),
    "hydra_structured": Fault(
        "acc = ((logits > 0).float() == y_te)",
        "acc = (logits.argmax(1, keepdim=True) == y_te)",
        "argmax-of-one-column",
        "acc = (logits.argmax(1, keepdim=True) == y_te).float().mean().item()",
    ),
    "islice_diffusion": Fault(
        "torch.linspace(1e-3, 0.15, T)",
        "torch.linspace(1e-3, 1.5, T)",
        "non-finite-activation",
        "return ab.sqrt() * x0 + (1 - ab).sqrt() * noise",
    ),
    "iter_next_range": Fault(
        "for epoch in range(10):\n    model.train()\n",
        "model.train()\nfor epoch in range(10):\n",
        "inactive-training-mode",
        "model.eval()",
    ),
    "kfold_fresh_model": Fault(
        "Xs = torch.from_numpy(standardise(X[train_ids], X))",
        "Xs = torch.from_numpy(X)",
        "unscaled-inputs",
        "dataset = TensorDataset(Xs, torch.from_numpy(y))",
    ),
    "lightning_manual_opt": Fault(
        "        opt_e.zero_grad()\n        opt_d.zero_grad()\n",
        "        opt_e.zero_grad()\n",
        "uncleared-gradients",
        "opt_e.zero_grad()",
    ),
    "lr_finder": Fault(
        "return lrs[losses.index(min(losses))] / 10",
        "return lrs[-1]",
        "excessive-learning-rate",
        "fit(10, model, torch.optim.SGD(model.parameters(), lr=lr), train_dl, valid_dl)",
    ),
    "moco_queue": Fault(
        "l_neg = q @ self.queue.clone().detach().T",
        "l_neg = q @ self.queue.T",
        "in-place-change",
        "self.queue[self.ptr:self.ptr + n] = keys",
    ),
    "nanogpt_micro_steps": Fault(
        "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        "F.scaled_dot_product_attention(q, k, v)",
        "future-leak",
        "y = F.scaled_dot_product_attention(q, k, v)",
    ),
    "optuna_pruning": Fault(
        "nn.Linear(in_features, 10))",
        "nn.Linear(in_features, 10), nn.Softmax(dim=1))",
        "double-activation",
        "return nn.Sequential(*layers, nn.Linear(in_features, 10), nn.Softmax(dim=1))",
    ),
    "own_optimizer_own_function": Fault(
        '                p.mul_(1 - group["lr"] * group["weight_decay"])\n                p.add_(buf.sign(), alpha=-group["lr"])',
        '                p = p * (1 - group["lr"] * group["weight_decay"])\n                p = p - group["lr"] * buf.sign()',
        "unstepped-optimizer",
        "opt.step()",
    ),
    "peft_own_loop": Fault(
        "return (start + step * torch.arange(LENGTH)) % VOCAB",
        "return start + step * torch.arange(LENGTH)",
        "tokens-beyond-vocabulary",
        "base = GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0,",
    ),
    "pinn_heat": Fault("        optimizer.zero_grad()\n", "", "uncleared-gradients", "loss.backward()"),
    "ppo_cleanrl": Fault(
        "((newvalue.view(-1) - b_returns[mb_inds]) ** 2)",
        "((newvalue - b_returns[mb_inds]) ** 2)",
        "broadcast-loss",
        "v_loss = 0.5 * ((newvalue - b_returns[mb_inds]) ** 2).mean()",
    ),
    "prefetcher": Fault(
        "self.next_input = self.next_input.float().div_(255.0)",
        "self.next_input = self.next_input.float()",
        "unscaled-inputs",
        "train_loader = DataLoader(TensorDataset(pixels[tr], labels[tr]), batch_size=64, shuffle=True)",
    ),
    "pseudo_labels": Fault(
        "return self.fc2(F.relu(self.fc1(x.flatten(1))))",
        "return F.softmax(self.fc2(F.relu(self.fc1(x.flatten(1)))), dim=1)",
        "double-activation",
        "return F.softmax(self.fc2(F.relu(self.fc1(x.flatten(1)))), dim=1)",
    ),
    "quantile_hand_schedule": Fault("        optimizer.zero_grad()\n", "", "uncleared-gradients", "loss.backward()"),
    "realnvp_moons": Fault(
        "    def log_prob(self, x):",
        "    @torch.no_grad()\n    def log_prob(self, x):",
        "no-gradient",
        "s, t = self.s(x_) * (1 - self.mask), self.t(x_) * (1 - self.mask)",
    ),
    "reinforce_cartpole": Fault(
        "    del policy.rewards[:]\n    del policy.saved_log_probs[:]\n",
        "    del policy.rewards[:]\n",
        "repeated-backward",
        "self.saved_log_probs = []",
    ),
    "resume_checkpoint": Fault(
        "    X[i, y[i], where[i]:where[i] + 4] += 1.6\n",
        '    X[i, y[i], where[i]:where[i] + 4] += 1.6\nX[torch.rand(N) < 0.02] = float("nan")  # lost packets\n',
        "non-finite-data",
        "train_loader = DataLoader(TensorDataset(X[:1000], y[:1000]), batch_size=25, shuffle=True)",
    ),
    "retain_graph_learner": Fault(
        "        self.optimizer.zero_grad()\n        self.backward(loss_kind)\n",
        "        self.backward(loss_kind)\n        self.optimizer.zero_grad()\n",
        "wiped-accumulation",
        "self.optimizer.zero_grad()",
    ),
    "rich_progress_charlm": Fault(
        "p.data += -lr * p.grad", "p = p.data - lr * p.grad", "unstepped-optimizer", "p = p.data - lr * p.grad"
    ),
    "row_by_row_nonlocal": Fault("        optimizer.zero_grad()\n", "", "uncleared-gradients", "loss.backward()"),
    "runner_hooks_padding": Fault(
        "        runner.optimizer.zero_grad()\n", "", "uncleared-gradients", 'runner.outputs["loss"].backward()'
    ),
    "sam": Fault(
        "        F.cross_entropy(model(inputs), targets).backward()",
        "        loss.backward()  # at the moved weights",
        "repeated-backward",
        "loss.backward()",
    ),
    "seq2seq_t5": Fault(
        "predict_with_generate=True, generation_max_length=7",
        "generation_max_length=7",
        "metrics-on-logits",
        "def compute_metrics(p):",
    ),
    "siamese_triplet": Fault(
        "nn.functional.normalize(self.body(x), dim=1)",
        "nn.functional.normalize(self.body(x), dim=0)",
        "crossed-samples",
        "return nn.functional.normalize(self.body(x), dim=0)",
    ),
    "simclr_digits": Fault(
        "features = F.normalize(features, dim=1)",
        "features = F.normalize(features.data, dim=1)",
        "no-gradient",
        "features = F.normalize(features.data, dim=1)",
    ),
    "skorch_like": Fault(
        "torch.as_tensor(np.searchsorted(self.classes_, y))",
        "torch.as_tensor(np.searchsorted(self.classes_, y), dtype=torch.float32)",
        "wrong-target-dtype",
        "loss = self.criterion_(self.module_(Xb), yb)",
    ),
    "st_mnrl": Fault(
        'save_strategy="no",',
        'save_strategy="no", evaluation_strategy="no",',
        "renamed-argument",
        'warmup_steps=10, logging_steps=20, save_strategy="no", evaluation_strategy="no", report_to="none",',
    ),
    "step_closure_foreach": Fault(
        "val_loader = DataLoader(TensorDataset(x[va], y[va])",
        "val_loader = DataLoader(TensorDataset(x[tr], y[tr])",
        "evaluation-on-training-data",
        "val_loader = DataLoader(TensorDataset(x[tr], y[tr]), batch_size=100)",
    ),
    "survival_partial_logging": Fault(
        "lr=3e-3), cox_loss",
        "lr=3e-8), cox_loss",
        "negligible-learning-rate",
        "run_step = partial(step, model, torch.optim.Adam(model.parameters(), lr=3e-8), cox_loss)",
    ),
    "swa": Fault("swa_model.eval()\n", "", "training-mode-evaluation", "out = swa_model(x_test)"),
    "timm_engine": Fault(
        "nn.Flatten(), nn.Linear(128, 10))",
        "nn.Flatten(), nn.Linear(128, 10), nn.Softmax(dim=1))",
        "double-activation",
        "nn.Flatten(), nn.Linear(128, 10), nn.Softmax(dim=1))",
    ),
    "timm_warmup_engine": Fault(
        "torch.randint(0, 3, (n,))\n    for i in range(n):\n        r, c = torch.randint(1, 7, (2,)).tolist()\n        h, w = [(1, 5), (5, 1), (4, 4)][y[i]]",
        "torch.randint(1, 4, (n,))\n    for i in range(n):\n        r, c = torch.randint(1, 7, (2,)).tolist()\n        h, w = [(1, 5), (5, 1), (4, 4)][y[i] - 1]",
        "misnumbered-labels",
        "train_loader = DataLoader(make_shapes(900), batch_size=30, shuffle=True)",
    ),
    "tqdm_auto_spirals": Fault(
        "train_ds, val_ds = random_split(TensorDataset(X, y), [720, 180], generator=torch.Generator().manual_seed(0))",
        "train_ds, val_ds = TensorDataset(X[:720], y[:720]), TensorDataset(X[720:], y[720:])",
        "split-of-sorted-data",
        "train_ds, val_ds = TensorDataset(X[:720], y[:720]), TensorDataset(X[720:], y[720:])",
    ),
    "trainer_class_weights": Fault(
        "def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):",
        "def compute_loss(self, model, inputs, return_outputs=False):",
        "renamed-argument",
        "def compute_loss(self, model, inputs, return_outputs=False):",
    ),
    "trange_reinforce": Fault("    optimizer.zero_grad()\n", "", "uncleared-gradients", "loss.backward()"),
    "trl_dpo": Fault(
        "max_length=32",
        "max_length=4",
        "empty-dataset",
        "trainer = DPOTrainer(model=model, ref_model=ref_model, args=training_args, train_dataset=make_pairs(200), processing_class=tokenizer)",
    ),
    "two_phase_finetune": Fault("model = Net(2)", "model = Net(1)", "label-out-of-range", "model = Net(1)"),
    "unfreeze_by_epoch_weight_norm": Fault(
        "for part in (model.lower, model.middle):",
        "for part in model.children():",
        "frozen-model",
        "part.requires_grad_(False)",
    ),
    "vae_digits": Fault(
        "return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))",
        "return self.fc4(F.relu(self.fc3(z)))",
        "missing-activation",
        'BCE = F.binary_cross_entropy(recon_x, x, reduction="sum")',
    ),
    "vmap_ensemble": Fault("    optimizer.zero_grad()\n", "", "uncleared-gradients", "losses.sum().backward()"),
    "vqvae_straight_through": Fault(
        "loss = F.mse_loss(q, z.detach())",
        "loss = F.mse_loss(q.detach(), z)",
        "severed-graph",
        "loss = F.mse_loss(q.detach(), z) + self.beta * F.mse_loss(z, q.detach())",
    ),
    "warmup_on_copy": Fault(
        "        self.optimizer.zero_grad()\n",
        "        self.optimizer.zero_grad\n",
        "uncleared-gradients",
        "loss.backward()",
    ),
    "wgan_clip": Fault(
        "loss_G = -torch.mean(critic(generator(z)))",
        "loss_G = -torch.mean(critic(fake))",
        "severed-graph",
        "fake = generator(z).detach()",
    ),
    "zip_multitask": Fault(
        "v = torch.tanh(x @ w_value / 3)",
        "v = 1000 * torch.tanh(x @ w_value / 3)",
        "unequal-loss-terms",
        "loss_b = F.mse_loss(model(xb)[1], yb)",
    ),
}
