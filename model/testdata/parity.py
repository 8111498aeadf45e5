"""Writes the fixtures that TestParity compares with: python3 parity.py

A plain GPT in PyTorch, float64, on weights and tokens that both sides compute
from a formula. parity.json holds each case's settings and the losses, gradient
norms and learning rates of ten training steps; CASE.f32 holds the logits
[B,T,V] and then the gradient of the summed losses of every parameter, in the
order and layout of Config.Params, as little-endian float32.
"""

import array
import itertools
import json
import math
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

B, T, V, C, H, L = 4, 12, 37, 24, 3, 2
STEPS = 10
BETAS, EPS, WEIGHT_DECAY, CLIP = (0.9, 0.95), 1e-8, 0.1, 1.2
LR, MIN_LR, WARMUP, TOTAL = 1e-2, 1e-3, 3, 8


def mixed(i, stream):
    """A 32-bit hash of an index, the same in TestParity."""
    h = (i * 2654435761 + (stream + 1) * 2246822519) & 0xFFFFFFFF
    h ^= h >> 16
    h = (h * 0x45D9F3B) & 0xFFFFFFFF
    return h ^ (h >> 16)


def uniform(n, stream):
    """n values in [-1/4, 1/4)."""
    return torch.tensor([(mixed(i, stream) / 2**32 - 0.5) / 2 for i in range(n)])


def batch():
    tokens = [mixed(i, 1000) % V for i in range(B * T)]
    targets = [-1 if mixed(i, 1001) % 5 == 0 else mixed(i, 1002) % V for i in range(B * T)]
    return torch.tensor(tokens).view(B, T), torch.tensor(targets).view(B, T)


class Norm(nn.Module):
    """LayerNorm whose bias is optional."""

    def __init__(self, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(C))
        self.bias = nn.Parameter(torch.zeros(C)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, (C,), self.weight, self.bias, 1e-5)


class Attention(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.c_attn = nn.Linear(C, 3 * C, bias=bias)
        self.c_proj = nn.Linear(C, C, bias=bias)

    def forward(self, x):
        q, k, v = (part.view(B, T, H, C // H).transpose(1, 2) for part in self.c_attn(x).split(C, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(C // H)
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        y = scores.masked_fill(future, float("-inf")).softmax(dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class MLP(nn.Module):
    def __init__(self, bias, gelu):
        super().__init__()
        self.c_fc = nn.Linear(C, 4 * C, bias=bias)
        self.c_proj = nn.Linear(4 * C, C, bias=bias)
        self.approximate = "tanh" if gelu == "tanh" else "none"

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate=self.approximate))


class Block(nn.Module):
    def __init__(self, bias, gelu):
        super().__init__()
        self.ln_1, self.attn = Norm(bias), Attention(bias)
        self.ln_2, self.mlp = Norm(bias), MLP(bias, gelu)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, tied, bias, gelu):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, C), nn.Embedding(T, C)
        self.h = nn.ModuleList(Block(bias, gelu) for _ in range(L))
        self.ln_f = Norm(bias)
        self.lm_head = nn.Linear(C, V, bias=False)
        if tied:
            self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(T))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def stored(name, x):
    """Inside the blocks GPT-2's files hold Linear weights transposed, [in,out]."""
    return x.t() if name.startswith("h.") and x.dim() == 2 else x


def set_weights(model):
    with torch.no_grad():
        for stream, (name, p) in enumerate(model.named_parameters()):
            value = uniform(p.numel(), stream)
            if ".ln_" in "." + name and name.endswith("weight"):
                value = value + 1
            view = stored(name, p)
            view.copy_(value.view(view.shape))


def decayed(model, rule):
    """The parameters that decay: minGPT's rule by modules, or nanoGPT's by shape."""
    if rule == "matrices":
        return [p for p in model.parameters() if p.dim() >= 2]
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    return [m.weight for m in model.modules() if isinstance(m, nn.Linear) and id(m.weight) not in embeddings]


def learning_rate(it, kind):
    if it < WARMUP:
        return LR * (it + 1) / (WARMUP + 1)
    if kind == "constant":
        return LR
    if it > TOTAL:
        return MIN_LR
    ratio = (it - WARMUP) / (TOTAL - WARMUP)
    remaining = 1 - ratio if kind == "linear" else 0.5 * (1 + math.cos(math.pi * ratio))
    return MIN_LR + remaining * (LR - MIN_LR)


def train(model, rule, schedule, tokens, targets):
    decay = decayed(model, rule)
    chosen = {id(p) for p in decay}
    rest = [p for p in model.parameters() if id(p) not in chosen]
    groups = [{"params": decay, "weight_decay": WEIGHT_DECAY}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPS)
    losses, norms, rates = [], [], []
    for it in range(STEPS):
        rates.append(learning_rate(it, schedule))
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
        loss = F.cross_entropy(model(tokens).view(-1, V), targets.view(-1), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), CLIP)))
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "norms": norms, "rates": rates}


def case(folder, tied, bias, gelu):
    name = f"{'tied' if tied else 'untied'}-{'bias' if bias else 'nobias'}-{gelu}"
    # Rules and schedules are spread over the cases so that each kind occurs.
    rule = "mingpt" if gelu == "tanh" else "matrices"
    schedule = "constant" if not bias else "cosine" if tied else "linear"
    model = GPT(tied, bias, gelu)
    set_weights(model)
    tokens, targets = batch()
    logits = model(tokens)
    F.cross_entropy(logits.view(-1, V), targets.view(-1), ignore_index=-1, reduction="sum").backward()
    values = array.array("f", logits.flatten().tolist())
    for parameter, p in model.named_parameters():
        values.extend(stored(parameter, p.grad).flatten().tolist())
    if sys.byteorder == "big":
        values.byteswap()
    (folder / f"{name}.f32").write_bytes(values.tobytes())
    settings = {"name": name, "tied": tied, "bias": bias, "gelu": gelu, "decay": rule, "schedule": schedule}
    return settings | train(model, rule, schedule, tokens, targets)


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    folder = pathlib.Path(__file__).parent
    cases = [case(folder, *options) for options in itertools.product((True, False), (True, False), ("tanh", "exact"))]
    fixture = {
        "batch": B, "block": T, "vocabulary": V, "embed": C, "heads": H, "layers": L,
        "betas": BETAS, "eps": EPS, "weight_decay": WEIGHT_DECAY, "clip": CLIP,
        "lr": LR, "min_lr": MIN_LR, "warmup": WARMUP, "total": TOTAL, "cases": cases,
    }
    (folder / "parity.json").write_text(json.dumps(fixture, indent=1) + "\n")


if __name__ == "__main__":
    main()
