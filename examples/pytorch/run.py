#!/usr/bin/env python3
"""Runs schedules that pipec has written in PyTorch's pipeline runtime, on one process per rank, over gloo.

    pipec inspect gpt.pipe -o order.csv             the order of the computes; PyTorch adds the messages
    pipec inspect gpt.pipe -o order.csv --comms     messages, waits and reductions, too
    python3 run.py order.csv                        one row of the file per process

Stages, micro-batches and ranks are those of the file. The model is gpt.py's, cut into that many stages. After the
first step every stage's gradients are compared with those of one process that runs the whole model: the ratio of
their lengths has to be 1. Several files of as many ranks run in turns, step by step, on the same model; a name such
as ZBVZeroBubble among them is PyTorch's own schedule. `--trace` keeps what the first file's actions took, for
`pipec inspect --measured`."""

import argparse
import csv
import logging
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.distributed.pipelining import PipelineStage, schedules

import gpt

CPU = torch.device("cpu")

# ---- what is run ----


class Order:
    """A file of pipec's, or the name of one of PyTorch's schedules."""

    def __init__(self, name, ranks, microbatches, virtual):
        self.name, self.ranks, self.microbatches = name, ranks, microbatches
        self.is_file = name.endswith(".csv")
        if self.is_file:
            self.read(name)
            return
        kind = schedules.get_schedule_class(name)
        self.single = issubclass(kind, schedules.PipelineScheduleSingle)
        vee = name in ("ZBVZeroBubble", "DualPipeV")
        self.stages = ranks * (1 if self.single else 2 if vee else virtual)
        self.rank_of = [s % ranks if s < ranks or not vee else 2 * ranks - 1 - s for s in range(self.stages)]

    def read(self, path):
        with open(path, newline="") as file:
            rows = [[schedules._Action.from_str(cell) for cell in row] for row in csv.reader(file)]
        actions = [(r, part) for r, row in enumerate(rows) for a in row if a for part in (a.sub_actions or (a,))]
        computes = [(r, a) for r, a in actions if a.is_compute_op]
        self.ranks = len(rows)
        self.stages = 1 + max(a.stage_index for _, a in computes)
        self.microbatches = 1 + max(a.microbatch_index for _, a in computes)
        owner = {a.stage_index: r for r, a in computes}
        self.rank_of = [owner[s] for s in range(self.stages)]
        self.format = "compute_only" if len(computes) == len(actions) else "compute_comms"

    def schedule(self, stages):
        if self.is_file:
            result = schedules._PipelineScheduleRuntime(stages, self.microbatches, loss_fn=gpt.loss)
            result._load_csv(self.name, format=self.format)
            return result
        kind = schedules.get_schedule_class(self.name)
        return kind(stages[0] if self.single else stages, self.microbatches, loss_fn=gpt.loss)


# ---- when each action began and ended ----


class Log:
    """Lines of a trace: step, action, begin, end in nanoseconds of a clock that all processes share."""

    def __init__(self):
        self.lines, self.step, self.free = [], 0, 0

    def add(self, action, begin, end):
        self.lines.append((self.step, action, begin, end))
        self.free = end


class Stage(PipelineStage):
    """Notes its actions. A rank does one thing after another: from the end of what it did last until a compute
    begins, it has waited for the message that the compute reads. That is a TAKE where the file says when its receive
    is posted, as in a plan of `--messages pair`; else a RECV, as in a plan of one process per CPU."""

    def __init__(self, log, order, slow, *args):
        super().__init__(*args)
        self.log = log
        self.least = 1e6 * slow / order.stages  # ns of an F, an I or a W
        rank = order.rank_of
        here = self.stage_index
        self.takes = here > 0 and rank[here - 1] != rank[here]
        self.is_given = here + 1 < order.stages and rank[here + 1] != rank[here]
        self.posts = order.is_file and order.format == "compute_comms"

    def timed(self, kind, micro, takes, compute, *args, **kwargs):
        begin = time.monotonic_ns()
        if takes:
            self.log.add(f"{self.stage_index}{'TAKE' if self.posts else 'RECV'}_{takes}{micro}", self.log.free, begin)
        result = compute(*args, **kwargs)
        left = begin + (2 if kind == "B" else 1) * self.least - time.monotonic_ns()
        if left > 0:
            time.sleep(1e-9 * left)
        self.log.add(f"{self.stage_index}{kind}{micro}", begin, time.monotonic_ns())
        return result

    def forward_one_chunk(self, micro, *args, **kwargs):
        return self.timed("F", micro, self.takes and "F", super().forward_one_chunk, micro, *args, **kwargs)

    def backward_one_chunk(self, micro, *args, full_backward=True, **kwargs):
        return self.timed("B" if full_backward else "I", micro, self.is_given and "B",
                          super().backward_one_chunk, micro, *args, full_backward=full_backward, **kwargs)

    def backward_weight_one_chunk(self, micro, *args, **kwargs):
        return self.timed("W", micro, None, super().backward_weight_one_chunk, micro, *args, **kwargs)

    def get_fwd_send_ops(self, micro):
        return self.named(f"SEND_F{micro}", super().get_fwd_send_ops(micro))

    def get_bwd_send_ops(self, micro):
        return self.named(f"SEND_B{micro}", super().get_bwd_send_ops(micro))

    def get_fwd_recv_ops(self, micro):
        return self.named(f"RECV_F{micro}", super().get_fwd_recv_ops(micro))

    def get_bwd_recv_ops(self, micro):
        return self.named(f"RECV_B{micro}", super().get_bwd_recv_ops(micro))

    def named(self, name, operations):
        for operation in operations:
            operation.name = f"{self.stage_index}{name}"
            if "SEND" in name or self.posts:
                now = time.monotonic_ns()
                self.log.add(operation.name, now, now)
        return operations


# ---- messages in the order of NCCL ----


class Turn:
    """What `Work` is to PyTorch."""

    def __init__(self, channels, future):
        self.channels, self.future = channels, future

    def wait(self):
        try:
            self.future.result(self.channels.timeout)
        except TimeoutError:
            raise RuntimeError(f"waits for ever; heads of its channels: {self.channels.heads}") from None


class Channels:
    """gloo matches each direction of a pair by itself. NCCL has one communicator for both, which carries one
    call after another: here a thread for each peer, that ends one before it begins the next."""

    def __init__(self, timeout):
        self.timeout, self.threads, self.heads = timeout, {}, {}

    def issue(self, operations, desc=None):
        """In place of PyTorch's _batch_p2p: what is issued in one call begins together."""
        peers = dict.fromkeys(op.peer for op in operations)
        return [Turn(self, self.thread(peer).submit(self.perform, [op for op in operations if op.peer == peer]))
                for peer in peers]

    def thread(self, peer):
        if peer not in self.threads:
            self.threads[peer] = ThreadPoolExecutor(1)
        return self.threads[peer]

    def perform(self, operations):
        self.heads[operations[0].peer] = " ".join(op.name for op in operations)
        work = [op.op(op.tensor, group=op.group, tag=op.tag,
                      **{"group_dst" if op.op is dist.isend else "group_src": op.group_peer}) for op in operations]
        for one in work:
            one.wait()
        del self.heads[operations[0].peer]


# ---- one schedule on one rank ----


class Pipeline:
    def __init__(self, order, options, batch):
        self.order, self.options, self.batch = order, options, batch
        self.log, self.rank = Log(), dist.get_rank()
        self.whole = gpt.build(options)
        self.split = options.split or gpt.even_split(len(self.whole), order.stages)
        if len(self.split) != order.stages or sum(self.split) != len(self.whole) or min(self.split) < 1:
            raise ValueError(f"{len(self.whole)} layers are not cut into {order.stages} stages by {self.split}")
        self.stages = [
            Stage(self.log, order, options.slow, gpt.cut(self.whole, self.split, s), s, order.stages, CPU)
            for s in range(order.stages) if order.rank_of[s] == self.rank
        ]
        self.schedule = order.schedule(self.stages)
        self.optimizer = torch.optim.AdamW([p for s in self.stages for p in s.submod.parameters()], lr=1e-3)
        self.last = order.rank_of[-1]
        self.lengths = []

    def step(self):
        """Forward and backward of the batch; the loss, on every rank."""
        self.optimizer.zero_grad()
        tokens, targets = self.batch
        losses = []
        dist.barrier()
        self.log.step += 1
        begin = self.log.free = time.monotonic_ns()
        self.schedule.step(*([tokens] if self.order.rank_of[0] == self.rank else []),
                           **({"target": targets, "losses": losses} if self.last == self.rank else {}),
                           return_outputs=False)
        length = torch.tensor([time.monotonic_ns() - begin, 0], dtype=torch.float64)
        length[1] = torch.stack(losses).mean().item() if losses else 0
        dist.all_reduce(length, dist.ReduceOp.MAX)
        self.lengths.append(1e-9 * length[0].item())
        self.add_tied()
        return length[1].item()

    def add_tied(self):
        """Two copies of one weight: PyTorch's runtime has no action for their sum, so it is made here."""
        first, last = self.order.rank_of[0], self.last
        if not self.options.tied or self.order.stages == 1 or self.rank not in (first, last):
            return
        own = [self.stages[i].submod[i].weight for i, s in ((0, 0), (-1, self.order.stages - 1))
               if self.order.rank_of[s] == self.rank]
        total = sum(w.grad for w in own)
        if first != last:
            other = torch.empty_like(total)
            peer = last if self.rank == first else first
            both = [dist.P2POp(dist.isend, total, peer), dist.P2POp(dist.irecv, other, peer)]
            for work in dist.batch_isend_irecv(both):
                work.wait()
            total = total + other
        for weight in own:
            weight.grad.copy_(total)

    def compare(self):
        """Of each stage: how long its gradient is beside that of one process, and how far off."""
        tokens, targets = self.batch
        self.whole.zero_grad()
        gpt.loss(self.whole(tokens), targets).backward()
        found = []
        for stage in self.stages:
            first = sum(self.split[: stage.stage_index])
            theirs = self.whole[first : first + self.split[stage.stage_index]]
            a = torch.cat([p.grad.flatten() for p in stage.submod.parameters()]).double()
            b = torch.cat([p.grad.flatten() for p in theirs.parameters()]).double()
            found.append((stage.stage_index, (a.norm() / b.norm()).item(), ((a - b).norm() / b.norm()).item()))
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, found)
        return sorted(sum(everyone, []))

    def write_trace(self, path):
        everyone = [None] * dist.get_world_size() if self.rank == 0 else None
        dist.gather_object(self.log.lines, everyone)
        if self.rank != 0:
            return
        zero = min(line[2] for lines in everyone for line in lines)
        with open(path, "w") as out:
            out.write(f"# pipec trace 1: gpt, {self.order.name} in PyTorch {torch.__version__}\n")
            for rank, lines in enumerate(everyone):
                for step, action, begin, end in lines:
                    out.write(f"{rank} {step} {action} {begin - zero} {end - zero}\n")


def run_all(orders, options):
    """All orders in turns: whatever else the machine does slows all of them."""
    pipelines = []
    failed = False
    for order in orders:
        made = torch.Generator().manual_seed(options.seed)
        tokens = torch.randint(options.vocabulary, (order.microbatches * options.rows, options.ctx + 1), generator=made)
        try:
            pipelines.append(Pipeline(order, options, (tokens[:, :-1], tokens[:, 1:])))
        except (AssertionError, KeyError, RuntimeError, ValueError) as error:  # PyTorch refuses it on every rank
            failed = True
            if dist.get_rank() == 0:
                print(f"not ok {order.name}: {str(error).splitlines()[0]}", flush=True)
    for pipeline in pipelines:
        loss = pipeline.step()
        stages = pipeline.compare()
        good = all(abs(ratio - 1) < options.most and off < options.most for _, ratio, off in stages)
        failed |= not good
        if pipeline.rank == 0:
            ratios = " ".join(f"{ratio:.6g}" for _, ratio, _ in stages)
            print(f"{'ok' if good else 'not ok'} {pipeline.order.name}: loss {loss:.6f}; gradient by stage {ratios}",
                  f"largest difference {max(off for *_, off in stages):.1e}", flush=True)
    if not pipelines:
        return failed
    for _ in range(options.steps - 1):
        for pipeline in pipelines:
            pipeline.optimizer.step()
            pipeline.step()
    if options.trace:
        pipelines[0].write_trace(options.trace)
    if options.steps > 1 and dist.get_rank() == 0:
        base = statistics.median(pipelines[0].lengths[1:])
        for pipeline in pipelines:
            middle = statistics.median(pipeline.lengths[1:])
            print(f"{1e3 * middle:9.2f} ms a step, {middle / base:.3f} times the first: {pipeline.order.name}")
    return failed


def work(rank, orders, options, store):
    """A process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=orders[0].ranks,
                            timeout=timedelta(seconds=2 * options.timeout))
    logging.getLogger(schedules.__name__).setLevel(logging.CRITICAL)  # it prints the whole order for each error
    if options.in_order:
        schedules._batch_p2p = Channels(options.timeout).issue
    try:
        status = int(run_all(orders, options))
    except Exception as error:
        print(f"rank {rank}: {error}", file=sys.stderr, flush=True)
        status = 2
        time.sleep(2)  # the others say what they wait for before they lose this one
    sys.stdout.flush()
    os._exit(status)  # threads that wait for ever would keep the process


def numbers(text):
    return [int(word) for word in text.replace(",", " ").split()]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("orders", nargs="+", metavar="ORDER", help="FILE.csv, or the name of a schedule of PyTorch's")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--trace", metavar="FILE", help="writes what the first order's actions took")
    parser.add_argument("--in-order", action="store_true", help="one queue for each pair of ranks, as NCCL has it")
    parser.add_argument("--slow", type=float, default=0, metavar="MS",
                        help="a forward of the whole model lasts as long at least: few cores are enough then")
    parser.add_argument("--split", type=numbers, help="layers of each stage, as `split` of the .pipe file; even")
    parser.add_argument("--tied", action="store_true", help="the head's weight is the embedding's")
    for name, default in (("dim", 32), ("heads", 4), ("ctx", 16), ("blocks", 8), ("vocabulary", 256), ("rows", 2),
                          ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{default}")
    parser.add_argument("--dtype", default="float64", choices=("float32", "float64"), help="float64")
    parser.add_argument("--ranks", type=int, default=2, help="of PyTorch's own schedules, where no file says it; 2")
    parser.add_argument("--microbatches", type=int, default=4, help="the same; 4")
    parser.add_argument("--virtual", type=int, default=2, help="stages on each rank of PyTorch's own schedules; 2")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="of a message; 60")
    options = parser.parse_args()
    options.most = 1e-9 if options.dtype == "float64" else 1e-4
    return options


def read_order(name, *sizes):
    try:
        return Order(name, *sizes)
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        sys.exit(f"{name}: {error}")


def main():
    options = read_options()
    files = [read_order(name, 0, 0, 0) for name in options.orders if name.endswith(".csv")]
    ranks = sorted({order.ranks for order in files}) or [options.ranks]
    if len(ranks) > 1:
        sys.exit(f"all orders of a run need the same number of ranks, not {ranks}")
    microbatches = files[0].microbatches if files else options.microbatches
    orders = [read_order(name, ranks[0], microbatches, options.virtual) for name in options.orders]
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        processes = torch.multiprocessing.start_processes(
            work, (orders, options, store), nprocs=orders[0].ranks, join=False, start_method="fork").processes
        for process in processes:
            process.join()
    sys.exit(max(process.exitcode for process in processes))


if __name__ == "__main__":
    main()
