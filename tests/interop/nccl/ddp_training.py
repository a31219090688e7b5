#!/usr/bin/env python3
"""Trains a small network by PyTorch's DistributedDataParallel, in ranks that share the first GPU, over whatever network
NCCL is told to use, and prints what must not depend on it: losses and a hash of the parameters at the end.

    NCCL_NET_PLUGIN=$PWD/build/release/lib/libnccl-net-paceline.so NCCL_NET=Paceline tests/interop/nccl/ddp_training.py
    NCCL_NET_PLUGIN=none NCCL_NET=Socket tests/interop/nccl/ddp_training.py
"""

import argparse
import hashlib
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WARM_UP_STEPS = 5
ROWS, WIDTH, HIDDEN = 256, 1024, 4096


def train(rank, ranks, port, steps):
    # Ranks that share a GPU are hosts of their own to NCCL, and reach each other by the network alone.
    os.environ.update(NCCL_HOSTID=f"rank{rank}", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(0)
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    torch.manual_seed(1)
    layers = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, HIDDEN),
        torch.nn.GELU(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.GELU(),
        torch.nn.Linear(HIDDEN, 1),
    ).cuda()
    model = torch.nn.parallel.DistributedDataParallel(layers, device_ids=[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    generator = torch.Generator().manual_seed(100 + rank)
    losses = []
    for step in range(WARM_UP_STEPS + steps):
        if step == WARM_UP_STEPS:
            torch.cuda.synchronize()
            start = time.monotonic()
        rows = torch.randn(ROWS, WIDTH, generator=generator).cuda()
        wanted = rows[:, :8].sum(1, keepdim=True).tanh()
        loss = ((model(rows) - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.cuda.synchronize()
    step_ms = (time.monotonic() - start) / steps * 1e3
    parameters = [parameter.detach().cpu().numpy().tobytes() for parameter in layers.parameters()]
    print(
        f"rank {rank}: {sum(map(len, parameters)) / 1e6:.0f} MB of gradients a step, {step_ms:.1f} ms a step, "
        f"loss {losses[0]:.6f} -> {losses[-1]:.6f}, parameters {hashlib.sha256(b''.join(parameters)).hexdigest()[:16]}",
        flush=True,
    )
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20, help="that are timed, after five that are not")
    options = parser.parse_args()
    if options.ranks < 2 or options.steps < 1:
        parser.error("--ranks must be 2 or more, --steps 1 or more")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(train, args=(options.ranks, port, options.steps), nprocs=options.ranks)


if __name__ == "__main__":
    main()
