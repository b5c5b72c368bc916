#!/bin/sh
# demo.sh: trains examples/gpt.pipe on this machine, then shows its plan and its programs.
cd "$(dirname "$0")/.." || exit 1
build/bin/pipec run examples/gpt.pipe "$@" || exit
echo
build/bin/pipec inspect examples/gpt.pipe
echo
echo "the programs: out/gpt/last/rank0.c .. rank3.c; the steady phase of rank 2:"
echo
awk '/^static void steady\(float/,/^}/' out/gpt/last/rank2.c
