#!/usr/bin/env python3
"""flags.py > flags.expected: sizes and offsets of the stages that Megatron-LM makes by its flags, one line a case:

    layers PP VPP first last account : size@offset of each stage, in the order of the model

Written from get_num_layers_to_build (megatron/core/transformer/transformer_block.py) and get_transformer_layer_offset
(transformer_layer.py, of August 2026), not from pipec; cases that Megatron refuses are left out. 0: the flag is not
given. No test runs this script; flags.sh compares with what it wrote.
"""


def sizes_of(layers, ranks, virtual, first, last, embedding, loss):
    """[rank][virtual stage], or None where an assertion there fails."""
    if first or last:
        if embedding or loss:
            return None
        left, stages = layers - first - last, ranks - (first > 0) - (last > 0)
        if left < 0 or (stages and left % stages) or (not stages and left):
            return None
        per_rank = [left // stages if stages else 0] * ranks
        per_rank[0] = first or per_rank[0]
        per_rank[-1] = last or per_rank[-1]
    else:
        if (layers + embedding + loss) % ranks:
            return None
        per_rank = [(layers + embedding + loss) // ranks] * ranks
    if any(n % virtual for n in per_rank):
        return None
    sizes = [[n // virtual] * virtual for n in per_rank]
    sizes[0][0] -= embedding
    sizes[-1][-1] -= loss
    return sizes if min(map(min, sizes)) >= 0 else None


def offset_of(layers, ranks, virtual, first, last, embedding, loss, rank, stage):
    if first or last:
        middle_stages = ranks - (first > 0) - (last > 0)
        middle = layers - first - last
        middle_rank = rank - 1 if first else rank
        in_chunks = first // virtual + middle // virtual + last // virtual
        if rank == 0:
            return stage * in_chunks
        between = middle // virtual // middle_stages if middle_stages else 0
        return stage * in_chunks + first // virtual + middle_rank * between
    all_layers = layers + embedding + loss
    offset = stage * (all_layers // virtual) + rank * (all_layers // ranks // virtual)
    return offset - (embedding and not (rank == 0 and stage == 0))


CASES = [(n, p, v, f, l, e, o)
         for n in (10, 12, 22, 24, 31, 61) for p in (2, 4, 8) for v in (1, 2, 3)
         for f, l, e, o in ((0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (0, 0, 1, 1),
                            (2, 0, 0, 0), (0, 1, 0, 0), (3, 1, 0, 0), (2, 4, 0, 0), (6, 4, 0, 0), (4, 6, 0, 0))]
for case in CASES:
    sizes = sizes_of(*case)
    if not sizes:
        continue
    n, p, v, f, l, e, o = case
    stages = ["%d@%d" % (sizes[s % p][s // p], offset_of(*case, s % p, s // p)) for s in range(p * v)]
    print(n, p, v, f, l, ("none", "embedding", "loss", "embedding,loss")[e + 2 * o], ":", " ".join(stages))
