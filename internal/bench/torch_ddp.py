#!/usr/bin/env python3
"""The peer of `ddp bench step`: the same GPT step in PyTorch DDP over gloo.

    torchrun --standalone --nproc-per-node 2 torch_ddp.py --threads 1

Rank 0 prints one JSON line with the median tokens a second. The model is
minGPT's block with untied head, fused AdamW, scaled_dot_product_attention and
gradients as bucket views: the fastest that stock PyTorch offers for it.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F


def arguments():
    p = argparse.ArgumentParser()
    for name, default in dict(layers=8, heads=8, embd=512, block=128, vocab=65, batch=16, steps=6, warmup=2, threads=1).items():
        p.add_argument(f"--{name}", type=int, default=default)
    return p.parse_args()


class Block(nn.Module):
    def __init__(self, embd, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(embd), nn.LayerNorm(embd)
        self.c_attn, self.attn_proj = nn.Linear(embd, 3 * embd), nn.Linear(embd, embd)
        self.c_fc, self.mlp_proj = nn.Linear(embd, 4 * embd), nn.Linear(4 * embd, embd)

    def forward(self, x):
        b, t, c = x.shape
        qkv = self.c_attn(self.ln_1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        x = x + self.attn_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(a.vocab, a.embd), nn.Embedding(a.block, a.embd)
        self.h = nn.Sequential(*(Block(a.embd, a.heads) for _ in range(a.layers)))
        self.ln_f, self.lm_head = nn.LayerNorm(a.embd), nn.Linear(a.embd, a.vocab, bias=False)

    def forward(self, x, y):
        h = self.h(self.wte(x) + self.wpe.weight[: x.shape[1]])
        return F.cross_entropy(self.lm_head(self.ln_f(h)).flatten(0, 1), y.flatten())


def main():
    a = arguments()
    torch.set_num_threads(a.threads)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        dist.init_process_group("gloo")
    model = GPT(a)
    net = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True) if world > 1 else model
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    times = []
    for step in range(a.warmup + a.steps):
        x, y = (torch.randint(a.vocab, (a.batch, a.block)) for _ in range(2))
        began = time.perf_counter()
        loss = net(x, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        times.append(time.perf_counter() - began)
    if int(os.environ.get("RANK", "0")) == 0:
        median = statistics.median(times[a.warmup :])
        tokens = world * a.batch * a.block
        print(json.dumps(dict(name="torch", world=world, step_ms=round(median * 1e3, 1), tokens_per_s=round(tokens / median, 1))))
    if world > 1:
        dist.destroy_process_group()


main()
