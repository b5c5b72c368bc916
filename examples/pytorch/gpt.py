"""The GPT of gpt.pipe in PyTorch: a list of layers, which a pipeline cuts into stages."""

import copy

import torch
from torch import nn
from torch.nn import functional


class Position(nn.Module):
    """Adds a learned vector to each place of the text."""

    def __init__(self, ctx, dim):
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(ctx, dim))

    def forward(self, x):
        return x + self.weight


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp_in, self.mlp_out = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        rows, ctx, dim = x.shape
        q, k, v = (
            t.view(rows, ctx, self.heads, dim // self.heads).transpose(1, 2)
            for t in self.qkv(self.ln_1(x)).split(dim, dim=2)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(rows, ctx, dim))
        return x + self.mlp_out(functional.gelu(self.mlp_in(self.ln_2(x)), approximate="tanh"))


def build(options):
    """The whole model: the same on every process, for the same seed."""
    torch.manual_seed(options.seed)
    wte = nn.Embedding(options.vocabulary, options.dim)
    nn.init.normal_(wte.weight, std=0.02)
    head = nn.Linear(options.dim, options.vocabulary, bias=False)
    layers = [wte, Position(options.ctx, options.dim)]
    layers += [Block(options.dim, options.heads) for _ in range(options.blocks)]
    layers += [nn.LayerNorm(options.dim), head]
    if options.tied:
        head.weight = wte.weight
    return nn.Sequential(*layers).to(getattr(torch, options.dtype))


def even_split(layers, stages):
    """As evenly as it goes; the first stages have one more."""
    return [layers // stages + (s < layers % stages) for s in range(stages)]


def cut(model, split, stage):
    """The layers of one stage: copies, since tied layers on two stages are two parameters."""
    first = sum(split[:stage])
    return copy.deepcopy(model[first : first + split[stage]])


def loss(output, target):
    return functional.cross_entropy(output.flatten(0, 1), target.flatten())
