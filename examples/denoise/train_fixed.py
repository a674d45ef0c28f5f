"""Teaches a small network to remove noise from heartbeat-like signals.

train.py with its bug repaired: each worker of each epoch gets a generator of its own.
"""
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class AddNoise:
    """Adds baseline wander and sensor noise, new ones for each sample."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, clean):
        t = np.linspace(0, 1, len(clean), dtype=np.float32)
        wander = np.sin(2 * np.pi * (t * self.rng.uniform(0.2, 2) + self.rng.uniform()))
        return clean + 0.5 * wander + self.rng.normal(0, 0.2, len(clean))


class Heartbeats(Dataset):
    def __init__(self, samples, length, transform):
        rng = np.random.default_rng(1)
        t = np.linspace(0, 1, length)
        rate, phase = rng.uniform(3, 8, (samples, 1)), rng.uniform(0, 1, (samples, 1))
        self.clean = np.exp(-60 * ((t * rate + phase) % 1 - 0.5) ** 2).astype(np.float32)
        self.transform = transform

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, index):
        clean = self.clean[index]
        return self.transform(clean).astype(np.float32), clean


def seed_worker(worker_id):
    info = torch.utils.data.get_worker_info()
    seeds = random.Random(info.seed)  # info.seed is another one in each worker and each pass
    bits = info.dataset.transform.rng.bit_generator
    bits.state = type(bits)(seeds.getrandbits(63)).state


def main():
    torch.manual_seed(0)
    data = Heartbeats(samples=2048, length=256, transform=AddNoise(seed=7))
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=2, worker_init_fn=seed_worker)
    model = torch.nn.Sequential(
        torch.nn.Conv1d(1, 16, 9, padding=4), torch.nn.ReLU(),
        torch.nn.Conv1d(16, 16, 9, padding=4), torch.nn.ReLU(),
        torch.nn.Conv1d(16, 1, 9, padding=4))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(3):
        total = 0.0
        for noisy, clean in loader:
            loss = torch.nn.functional.mse_loss(model(noisy[:, None])[:, 0], clean)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}  loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
