"""GRPO: each prompt comes num_generations times, over ranks and steps, as each time another answer is drawn (TRL's RepeatSampler)."""
# e2e torchrun:2 shards
#   torch: >=1.10
# e2e torchrun:2 same
#   torch: >=1.10
# e2e one
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Sampler

GENERATIONS, PROMPTS_PER_STEP, ITERATIONS = 4, 4, 2


class RepeatSampler(Sampler):
    """Groups of prompts, each prompt GENERATIONS times in a row, each group ITERATIONS times: the same on all ranks."""

    def __init__(self, n, seed):
        self.n, self.generator = n, torch.Generator().manual_seed(seed)

    def __iter__(self):
        order = torch.randperm(self.n, generator=self.generator).tolist()
        for start in range(0, self.n - PROMPTS_PER_STEP + 1, PROMPTS_PER_STEP):
            for _ in range(ITERATIONS):
                for i in order[start:start + PROMPTS_PER_STEP]:
                    yield from [i] * GENERATIONS

    def __len__(self):
        return self.n // PROMPTS_PER_STEP * PROMPTS_PER_STEP * GENERATIONS * ITERATIONS


class Share(Sampler):
    """Batches of this rank, as accelerate deals them out."""

    def __init__(self, sampler, size, rank, world):
        self.sampler, self.size, self.rank, self.world = sampler, size, rank, world

    def __iter__(self):
        batch = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.size * self.world:
                yield batch[self.size * self.rank:self.size * (self.rank + 1)]
                batch = []

    def __len__(self):
        return len(self.sampler) // self.size // self.world


class Prompts(Dataset):
    def __len__(self):
        return 26

    def __getitem__(self, i):
        return {"prompt": "What is %d times %d?" % (i, i % 7), "answer": str(i * (i % 7))}


def main():
    world = int(os.environ.get("WORLD_SIZE", 1))
    rank = 0
    torch.manual_seed(3)
    policy = nn.Linear(8, 12)
    if world > 1:
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        policy = DistributedDataParallel(policy)
    sampler = RepeatSampler(len(Prompts()), seed=42)
    if sys.argv[1] == "same":  # every rank takes all prompts and draws answers of its own
        loader = DataLoader(Prompts(), batch_size=8, sampler=sampler, collate_fn=list)
    else:
        loader = DataLoader(Prompts(), batch_sampler=Share(sampler, 8, rank, world), collate_fn=list)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    drawn = torch.Generator().manual_seed(rank)
    for epoch in range(2):
        for examples in loader:
            text = torch.tensor([[float(ord(c)) / 100 for c in e["prompt"][-8:]] for e in examples])
            logits = nn.functional.log_softmax(policy(text), 1)
            answers = torch.multinomial(logits.exp().detach(), 1, generator=drawn)
            reward = torch.tensor([float(len(e["answer"]) == a) for e, a in zip(examples, answers.squeeze(1).tolist())])
            optimizer.zero_grad()
            (-(reward - reward.mean()) * logits.gather(1, answers).squeeze(1)).mean().backward()
            optimizer.step()
    if rank == 0:
        print("reward %.3f" % reward.mean().item())
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
