"""Trains a small model with DistributedDataParallel over gloo: train.py FOLDER FAULT.

Rank 0 keeps a checkpoint a step in FOLDER, and all go on from it. Before step 5
of the first attempt rank 1 is hit by FAULT: kill, raise or none. At the end
rank 0 compares the model with one that plain SGD trained on the whole batches.
"""
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel

STEPS = 12


def batch(step, rank):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(8, 4, generator=generator)
    return x, x.prod(1, keepdim=True)


def new_model():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def loss_of(model, x, y):
    return ((model(x) - y) ** 2).mean()


def reference(world):
    model, optimizer = new_model()
    for step in range(STEPS):
        optimizer.zero_grad()
        sum(loss_of(model, *batch(step, rank)) for rank in range(world)).div(world).backward()
        optimizer.step()
    return model


def fail(fault):
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "raise":
        raise RuntimeError("the data ran out")


@record
def main():
    folder, fault = sys.argv[1:]
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model, optimizer = new_model()
    checkpoint = os.path.join(folder, "checkpoint.pt")
    begin = 0
    if os.path.exists(checkpoint):
        state = torch.load(checkpoint)
        begin = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    parallel = DistributedDataParallel(model)
    for step in range(begin, STEPS):
        if step == 5 and rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            fail(fault)
        optimizer.zero_grad()
        loss_of(parallel, *batch(step, rank)).backward()
        optimizer.step()
        if rank == 0:
            torch.save({"step": step + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint + ".tmp")
            os.replace(checkpoint + ".tmp", checkpoint)
    if rank == 0:
        pairs = zip(model.parameters(), reference(world).parameters())
        error = max((a - b).abs().max().item() for a, b in pairs)
        print(f"from step {begin}, world {world}, off by {'little' if error < 1e-5 else error}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
