#!/bin/sh
# kernels.sh LIBRARY SCRATCH: every CUDA kernel on the simulated device beside the
# CPU's, in both dtypes; and the simulator's own test.
# needs: sim build/sim/self build/sim/kernels_f32 build/sim/kernels_bf16
root=$(cd "$1/../../.." && pwd)
cd "$root" || exit 1
good=0 bad=0
for program in self kernels_f32 kernels_bf16; do
    build/sim/$program >"$2/log" 2>&1
    count=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$2/log")
    [ -n "$count" ] || { echo "$program: $(tail -3 "$2/log")"; count='0 1'; }
    grep '^not ok' "$2/log"
    good=$((good + ${count% *})) bad=$((bad + ${count#* }))
done
echo "$good passed, $bad failed"
