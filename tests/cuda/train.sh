#!/bin/sh
# train.sh LIBRARY SCRATCH: generated CUDA programs on the simulated device (see
# tests/cudasim/README): losses equal the CPU's, to 1e-4 in f32 and within the
# error of bf16; the same bits for every P and both transports, as a graph and
# directly, also when streams are shaken; and what is broken is seen to break.
# needs: sim
root=$(cd "$1/../../.." && pwd)
cd "$2" || exit 1
export NVCC="$root/tests/cudasim/nvcc" CUDASIM_WATCHDOG=10
pipec=$root/build/sim/bin/pipec
model=$root/tests/train/bits.pipe

# train NAME OPTION...: NAME.losses
train() {
    name=$1
    shift
    timeout 120 "$pipec" run "$model" -o "out-$name" --quiet --losses "$name.losses" "$@" >"$name.log" 2>&1 && return
    echo "not ok $name: $(head -2 "$name.log" | tr '\n' ' ')"
    return 1
}

# near A B TOLERANCE: each loss and norm of B within the relative tolerance of A.
near() {
    paste "$1.losses" "$2.losses" | awk -v limit="$3" '
        function off(a, b) { return a == b ? 0 : (a > b ? a - b : b - a) / (a > 0 ? a : 1) }
        !(off($2, $5) <= limit) || !(off($3, $6) <= 3 * limit) { bad = 1; print $0 }
        END { exit bad || NR == 0 }' >near.log
}

check() { # NAME LIKE TOLERANCE; 0: the same bits
    if [ "$3" = 0 ] && cmp -s "$2.losses" "$1.losses"; then echo "ok $1"
    elif [ "$3" != 0 ] && near "$2" "$1" "$3"; then echo "ok $1"
    else echo "not ok $1: losses differ from $2: $(paste "$2.losses" "$1.losses" | tail -1)"; fi
}

for M in 1 5; do
    train cpu$M -D stages=1 -D microbatches=$M
    train f32-$M --target cuda -D dtype=f32 -D stages=1 -D microbatches=$M && check f32-$M cpu$M 1e-4
    train bf16-$M --target cuda -D stages=1 -D microbatches=$M && check bf16-$M cpu$M 3e-2
done
for case in "2 1 1f1b" "4 1 gpipe" "2 2 interleaved" "4 2 interleaved" "4 1 zbh2" "2 2 zbv"; do
    # shellcheck disable=SC2086
    set -- $case
    options="-D stages=$1 -D virtual=$2 -D schedule=$3 -D microbatches=5"
    for transport in nccl local; do
        name=$transport-$1-$2-$3
        # shellcheck disable=SC2086
        train $name --target cuda -D dtype=f32 $options --transport $transport && check $name f32-5 0
    done
    # shellcheck disable=SC2086
    train bf16-$1-$2-$3 --target cuda $options && check bf16-$1-$2-$3 bf16-5 0
done
# Two copies of the model, and one rank that has both.
train copies --target cuda -D dtype=f32 -D stages=1 -D schedule=naive -D placement=twin -D microbatches=5
for transport in nccl local; do
    name=$transport-dualpipe
    train $name --target cuda -D dtype=f32 -D stages=4 -D schedule=dualpipe -D microbatches=5 --transport $transport &&
        check $name copies 0
done
# Ranks of unequal numbers of chunks.
train uneven --target cuda -D dtype=f32 -D 'placement=[0 1 1 2 0]' -D schedule=naive -D microbatches=5 &&
    check uneven f32-5 0
# Chunks without layers, which hand on what they get.
for transport in nccl local; do
    name=$transport-empty
    train $name --target cuda -D dtype=f32 -D stages=4 -D schedule=zbh1 -D microbatches=5 -D 'split="E||t*4|L"' \
        --transport $transport && check $name f32-5 0
done
four="-D stages=4 -D schedule=1f1b -D microbatches=5"
# shellcheck disable=SC2086
train direct --target cuda -D dtype=f32 $four --graph off && check direct f32-5 0
# The messages of a file, posted where it has them.
tar xzf "$root/tests/exchange/pytorch-2.15-csv.tgz" pt/Interleaved1F1B_4_1_5_comms.csv
train imported --target cuda -D dtype=f32 -D stages=4 -D microbatches=5 --graph off \
    -D 'schedule=from "pt/Interleaved1F1B_4_1_5_comms.csv"' && check imported f32-5 0
for seed in 1 2; do
    # shellcheck disable=SC2086
    CUDASIM_SHAKE=$((400 * seed)) train shaken$seed --target cuda -D dtype=f32 $four && check shaken$seed f32-5 0
done
for dtype in f32 bf16; do
    model=$root/examples/mlp.pipe
    train mlp-$dtype --target cuda -D dtype=$dtype -D stages=2 --steps 5
    train mlp-cpu --steps 5
    check mlp-$dtype mlp-cpu "$([ $dtype = f32 ] && echo 1e-4 || echo 5e-2)"
    model=$root/tests/train/bits.pipe
done

# ---- what is wrong is seen to be wrong ----

# Every event wait of a rank in turn does nothing: what it ordered comes too early.
red=0 all=0
# shellcheck disable=SC2086
"$pipec" build "$model" -o drop --target cuda -D dtype=f32 -D stages=2 -D schedule=1f1b -D microbatches=5 >/dev/null
data="--data $root/tests/train/bits.pipe"
k=1
while [ $k -le 24 ]; do
    # shellcheck disable=SC2086
    CUDASIM_DROP_WAIT=$k CUDASIM_SHAKE=3000 CUDASIM_WATCHDOG=5 timeout 60 "$root/build/lib/pipec/pprun" --quiet \
        --losses drop.losses --graph off --steps 2 $data 2 drop/rank >drop.log 2>&1 && status=0 || status=1
    head -2 f32-5.losses | cmp -s - drop.losses || status=1
    red=$((red + status))
    all=$((all + 1))
    k=$((k + 1))
done
[ $red -ge 8 ] && echo "ok dropped-waits ($red of $all were noticed)" || echo "not ok dropped-waits: only $red of $all"

# broken NAME SED-SCRIPT FILE: a program changed by hand must not train well in silence.
broken() {
    rm -rf broken
    cp -r drop broken
    sed "$2" "drop/$3.cu" >"broken/$3.cu"
    cmp -s "drop/$3.cu" "broken/$3.cu" && { echo "not ok $1: nothing was changed"; return; }
    "$NVCC" -std=c++20 -O1 -I "$root/build/lib/pipec" "broken/$3.cu" -o "broken/$3" \
        "$root/build/sim/lib/pipec/libpp_cuda_f32.a" || { echo "not ok $1: does not compile"; return; }
    # shellcheck disable=SC2086
    CUDASIM_WATCHDOG=5 timeout 60 "$root/build/lib/pipec/pprun" --quiet --losses broken.losses --steps 2 $data 2 broken/rank \
        >broken.log 2>&1 && head -2 f32-5.losses | cmp -s - broken.losses && { echo "not ok $1: went unnoticed"; return; }
    [ -s broken.log ] || echo "wrong numbers" >broken.log
    echo "ok $1 ($(head -1 broken.log | cut -c1-90))"
}
broken swapped-sends 's/pp_send(&send_f0, 0, m + y0_0)/pp_send(\&send_f0, 1, m + y0_1)/' rank0
broken shorter-message 's|recv_f1 = {.peer = 0, .floats = 256|recv_f1 = {.peer = 0, .floats = 240|' rank1
broken shorter-arena 's/\.arena = [0-9]*/.arena = 65536/' rank0
broken no-take 's/pp_take(&recv_f1, [0-9], [0-9]);//' rank1

CUDASIM_DEVICES=0 "$pipec" run "$model" -o out-none --target cuda >none.log 2>&1
if [ $? -eq 1 ] && [ "$(wc -l <none.log)" -eq 1 ] && grep -q 'no GPU can be used' none.log; then echo "ok no-gpu"
else echo "not ok no-gpu: $(head -2 none.log)"; fi

# Without pprun: rank and world by the variables of torchrun and Open MPI.
for starter in torchrun mpi; do
    for r in 1 0; do
        if [ $starter = torchrun ]; then
            RANK=$r WORLD_SIZE=2 LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=29611 \
                timeout 60 drop/rank$r --steps 2 --data "$root/tests/train/bits.pipe" >$starter$r.log 2>&1 &
        else
            OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29612 \
                timeout 60 drop/rank$r --steps 2 --data "$root/tests/train/bits.pipe" >$starter$r.log 2>&1 &
        fi
    done
    wait
    grep -q '^step 2/2  loss 5.4' $starter*.log && echo "ok $starter" || echo "not ok $starter: $(tail -1 $starter*.log)"
done

# The script for a real GPU, here on the simulated one.
SIM=1 OUT=$PWD/gpu sh "$root/tests/gpu-test" >gpu.log 2>&1 && echo "ok gpu-test ($(tail -1 gpu.log))" ||
    echo "not ok gpu-test: $(grep -m1 'not ok' gpu.log)"
