#!/bin/sh
# compile.sh LIBRARY SCRATCH: do all CUDA sources compile with the real nvcc, for
# sm_80, sm_90 and sm_100, in f32 and bf16, without a warning; do all kernels
# keep their numbers in registers (what ptxas reports as spilled would go to
# memory and back in the inner loops); and do generated programs compile and link
# against the real libraries? Where there is no nvcc it says so.
root=$(cd "$1/../../.." && pwd)
cd "$root" || exit 1
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ]; then
    echo 'ok compile (skipped: no nvcc here)'
    exit 0
fi
make --no-print-directory -s -j"$(nproc)" NVCC="$nvcc" cuda >"$2/make.log" 2>&1 || {
    echo "not ok compile: $(grep -m3 -i error "$2/make.log" | tr '\n' ' ')"
    exit 1
}
for log in build/cuda/*/*.o.log; do
    name=$(basename "$(dirname "$log")")-$(basename "$log" .o.log)
    spills=$(grep -B1 '[1-9][0-9]* bytes spill' "$log" |
        sed -n "s/.*entry function '\([^']*\)'.*/\1/p; s/.*properties for //p" | tr '\n' ' ')
    if grep -qi 'warning' "$log"; then echo "not ok $name: $(grep -i -m1 warning "$log")"
    elif [ -n "$spills" ]; then echo "not ok $name spills registers in $spills"
    else echo "ok $name"; fi
done
for dtype in f32 bf16; do
    if NVCC="$nvcc -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror" build/bin/pipec build \
        tests/train/bits.pipe --target cuda -D dtype=$dtype -D stages=2 -o "$2/$dtype" >"$2/log" 2>&1; then
        echo "ok program-$dtype"
    else
        echo "not ok program-$dtype: $(tail -3 "$2/log" | tr '\n' ' ')"
    fi
done
