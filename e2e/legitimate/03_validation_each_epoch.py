"""After each epoch the same validation in the same order, the test set with batch_size 1, and a calibration set without no_grad."""
# e2e
import torch
from torch import nn
from torch.utils.data import DataLoader, SequentialSampler, TensorDataset, random_split


def main():
    torch.manual_seed(4)
    depth = torch.rand(200, 5)
    soundings = TensorDataset(depth, depth.sum(1, keepdim=True).sin())
    train, val, test, calibration = random_split(soundings, [130, 34, 12, 24], generator=torch.Generator().manual_seed(8))
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    batches = DataLoader(train, batch_size=13, shuffle=True, num_workers=2)
    held_out = DataLoader(val, batch_size=11, num_workers=2, persistent_workers=True)  # 34 = 3 * 11 + 1
    tests = DataLoader(test, batch_size=1)
    calibrate = DataLoader(calibration, batch_size=8, sampler=SequentialSampler(calibration))
    for epoch in range(3):
        model.train()
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            error = sum(nn.functional.mse_loss(model(x), y, reduction="sum").item() for x, y in held_out)
            worst = max(nn.functional.mse_loss(model(x), y).item() for x, y in tests)
        offset = sum((model(x) - y).sum().detach().item() for x, y in calibrate)  # gradients on, nothing learned
        print("epoch %d validation %.4f worst %.4f offset %.4f" % (epoch, error / 34, worst, offset / 24))


if __name__ == "__main__":
    main()
