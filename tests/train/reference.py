"""reference.py: computes with PyTorch what reference.sh expects of pipec.

    make && /usr/bin/python3 tests/train/reference.py

Writes reference.expected and reference_mlp.expected: `step loss norm`, the norm before clipping.
Only the initial weights and the .txt files are pipec's; modules, gradients, clipping and optimizers
are torch's, and the order of the data and the learning rate are written again below, from pp.h. A
step is one batch of all its micro-batches' rows, so nothing here knows of micro-batches, stages or
ranks. The expected numbers are those of float64; float32 and pipec are compared with them.
Made with torch 1.13 of Debian 12 (python3-torch); not part of `make test`.
"""
import json
import math
import os
import struct
import subprocess
import tempfile

import torch
from torch import nn
from torch.nn import functional

HERE = os.path.dirname(os.path.abspath(__file__))
PIPEC = os.path.join(HERE, "../../build/bin/pipec")
SEED = 1
STEPS = 10


# ---- pipec: its initial weights and its losses ----

def run(folder, name, *options):
    subprocess.run([PIPEC, "run", os.path.join(HERE, name + ".pipe"), "-o", folder + "/out",
                    "--quiet", *options], check=True)


def read_safetensors(path):
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32"
        begin, end = entry["data_offsets"]
        values = struct.unpack("<%df" % ((end - begin) // 4), data[begin:end])
        tensors[name] = torch.tensor(values, dtype=torch.float64).reshape(entry["shape"])
    return tensors


def initial_weights(name):
    with tempfile.TemporaryDirectory() as folder:
        run(folder, name, "--steps", "0", "--save", folder + "/saved")
        with open(folder + "/saved/model.safetensors.index.json") as file:
            places = json.load(file)["weight_map"]
        shards = {shard: read_safetensors(os.path.join(folder, "saved", shard))
                  for shard in set(places.values())}
    assert sorted(places) == sorted(key for shard in shards.values() for key in shard)
    return {key: shards[shard][key] for key, shard in places.items()}


def pipec_losses(name):
    with tempfile.TemporaryDirectory() as folder:
        run(folder, name, "--losses", folder + "/losses")
        with open(folder + "/losses") as file:
            return [tuple(map(float, line.split()[1:])) for line in file]


# ---- the order of the data, the learning rate ----

def splitmix64(x):
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def sample_starts(step, count, choices):
    """Where the `count` samples of a step begin; step from 0."""
    return [splitmix64(splitmix64(SEED) ^ (step * count + i)) % choices for i in range(count)]


def learning_rate(step, rate, warmup, floor):
    """Of a step, from 1."""
    if step <= warmup:
        return rate * step / warmup
    way = (step - warmup) / (STEPS - warmup)
    return rate * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * way)))


# ---- the models: modules are named as in the .pipe files ----

class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.ln_2 = nn.LayerNorm(dim)
        self.mlp_in = nn.Linear(dim, 4 * dim)
        self.mlp_out = nn.Linear(4 * dim, dim)

    def attention(self, x):
        rows, seq, width = x.shape[0], x.shape[1], x.shape[2] // 3
        q, k, v = (part.reshape(rows, seq, self.heads, -1).transpose(1, 2)
                   for part in x.split(width, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        future = torch.ones(seq, seq, dtype=torch.bool).triu(1)
        probabilities = functional.softmax(scores.masked_fill(future, -math.inf), dim=3)
        return (probabilities @ v).transpose(1, 2).reshape(rows, seq, width)

    def forward(self, x):
        a = x + self.proj(self.attention(self.qkv(self.ln_1(x))))
        return a + self.mlp_out(functional.gelu(self.mlp_in(self.ln_2(a)), approximate="tanh"))


class Gpt(nn.Module):
    name, microbatches, rows = "reference", 3, 2
    dim, heads, ctx = 48, 4, 24
    warmup, floor, rate, clip = 3, 0.1, 1e-3, 1.95

    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(256, self.dim)
        self.wpe = nn.Embedding(self.ctx, self.dim)
        self.h = nn.ModuleList(Block(self.dim, self.heads) for _ in range(3))
        self.ln_f = nn.LayerNorm(self.dim)
        self.head = nn.Linear(self.dim, 256, bias=False)
        self.head.weight = self.wte.weight
        with open(os.path.join(HERE, "reference.txt"), "rb") as file:
            self.text = file.read()

    def optimizer(self):
        matrices = [p for p in self.parameters() if p.dim() == 2]
        vectors = [p for p in self.parameters() if p.dim() == 1]
        return torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                  {"params": vectors, "weight_decay": 0.0}],
                                 lr=self.rate, betas=(0.9, 0.95), eps=1e-8)

    def loss(self, step):
        starts = sample_starts(step, self.microbatches * self.rows, len(self.text) - self.ctx)
        tokens = torch.tensor([list(self.text[at:at + self.ctx + 1]) for at in starts])
        x = self.wte(tokens[:, :-1]) + self.wpe.weight
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return functional.cross_entropy(logits.reshape(-1, 256), tokens[:, 1:].reshape(-1))


class Hidden(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.fc = nn.Linear(inputs, width)

    def forward(self, x):
        return functional.relu(self.fc(x))


class Mlp(nn.Module):
    name, microbatches, rows = "reference_mlp", 4, 8
    warmup, floor, rate, clip = 2, 1.0, 0.05, None

    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList([Hidden(2, 24), Hidden(24, 24), Hidden(24, 24)])
        self.out = nn.Linear(24, 2)
        with open(os.path.join(HERE, "reference_mlp.txt")) as file:
            self.records = torch.tensor([list(map(float, line.split())) for line in file
                                         if not line.startswith("#")]).to(torch.get_default_dtype())

    def optimizer(self):
        matrices = [p for p in self.parameters() if p.dim() == 2]
        vectors = [p for p in self.parameters() if p.dim() == 1]
        return torch.optim.SGD([{"params": matrices, "weight_decay": 0.01},
                                {"params": vectors, "weight_decay": 0.0}],
                               lr=self.rate, momentum=0.9)

    def loss(self, step):
        batch = self.records[sample_starts(step, self.microbatches * self.rows, len(self.records))]
        x = batch[:, :2]
        for layer in self.h:
            x = layer(x)
        return functional.mse_loss(self.out(x), batch[:, 2:])


# ---- training ----

def train(kind, weights, real):
    torch.set_default_dtype(real)
    model = kind()
    model.load_state_dict({key: value.to(real) for key, value in weights.items()})
    optimizer = model.optimizer()
    result = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step + 1, kind.rate, kind.warmup, kind.floor)
        optimizer.zero_grad()
        loss = model.loss(step)
        loss.backward()
        norm = math.nan
        if kind.clip:
            norm = nn.utils.clip_grad_norm_(model.parameters(), kind.clip).item()
        optimizer.step()
        result.append((loss.item(), norm))
    return result


def print_differences(what, values, truth):
    for column, word in enumerate(("loss", "norm")):
        worst = max(abs(a[column] - b[column]) / abs(b[column]) for a, b in zip(values, truth))
        if not math.isnan(worst):
            print("  %-16s largest relative difference of a %s  %.1e" % (what, word, worst))


def make_fixture(kind):
    weights = initial_weights(kind.name)
    if "head.weight" in weights:
        assert torch.equal(weights["head.weight"], weights["wte.weight"])
    truth = train(kind, weights, torch.float64)
    with open(os.path.join(HERE, kind.name + ".expected"), "w") as file:
        for step, (loss, norm) in enumerate(truth, 1):
            file.write("%d %.9g %.9g\n" % (step, loss, norm))
    print("%s, against torch in float64" % kind.name)
    print_differences("torch in float32", train(kind, weights, torch.float32), truth)
    print_differences("pipec", pipec_losses(kind.name), truth)


if __name__ == "__main__":
    make_fixture(Gpt)
    make_fixture(Mlp)
