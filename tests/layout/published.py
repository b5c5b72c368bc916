#!/usr/bin/env python3
"""published.py < published.txt > published.expected: what Megatron-LM builds of each layout, for several numbers of
pipeline ranks, as the table that `pipec inspect` prints.

Written from Megatron's own definition (megatron/core/transformer/pipeline_parallel_layer_layout.py, of August 2026) and
from nothing of pipec: commas are nothing, (..)*n and then x*n are written out, | ends a stage, stage s is virtual stage
s // PP of rank s % PP, and the offset of a stage is the number of decoder layers in all stages before it. No test runs
this script; published.sh compares with what it wrote.
"""
import re
import sys

WORDS = {"E": "embedding", "t": "decoder", "m": "mtp", "L": "loss"}


def written_out(text):
    text = text.replace(",", "")
    text = re.sub(r"\(([^)]+)\)\*(\d+)", lambda m: m[1] * int(m[2]), text)
    return re.sub(r"(.)\*(\d+)", lambda m: m[1] * int(m[2]), text)


def cell(stage, offset):
    counts = [(word, stage.count(letter)) for letter, word in WORDS.items()]
    words = [word if count == 1 else "%s*%d" % (word, count) for word, count in counts if count]
    return "%s @%d" % (",".join(words) or "(empty stage)", offset)


def show(text, stages, ranks):
    cells, offset = [], 0
    for stage in stages:
        cells.append(cell(stage, offset))
        offset += stage.count("t")
    print("== %s blocks %d ranks %d" % (text, offset, ranks))
    for rank in range(ranks):
        print("PP rank %d: %s" % (rank, "; ".join(cells[rank::ranks])))


for line in sys.stdin:
    stages = written_out(line.strip()).split("|")
    for virtual in (1, 2, 4):
        if len(stages) % virtual == 0:
            show(line.strip(), stages, len(stages) // virtual)
