#!/bin/sh
# nonfinite.sh LIBRARY SCRATCH: a loss or a norm that is no number, in generated CUDA programs on the simulated device:
# `on nonfinite skip` leaves out the steps that the CPU leaves out, with the same bits for any number of ranks, either
# transport, as a graph and directly; else the first of them ends the job as on the CPU, and an earlier save stays.
# needs: sim
root=$(cd "$1/../../.." && pwd)
cd "$2" || exit 1
export NVCC="$root/tests/cudasim/nvcc" CUDASIM_WATCHDOG=10
pipec=$root/build/sim/bin/pipec

cat >m.pipe <<'END'
model m {
    input points[2]
    a : linear(6)
    b : relu
    c : linear(5)
    d : linear(1)
    loss : mse
}
pipeline { stages 4 microbatches 4 rows 2 schedule 1f1b }
train { data numbers "points" optimizer adamw(lr = 0.01) steps 16 seed 3 }
END
# Of 60 records one has a target whose loss is infinite.
awk 'BEGIN { for (i = 0; i < 60; i++) print i / 60, 1 - i / 60, i == 20 ? "1e30" : i / 30 }' >points
# The loss is a number, but the norm is not.
sed 's/1e30/1/; 41s/^[^ ]*/6e19/' points >large

verdict() { [ "$2" -eq 0 ] && echo "ok $1" || echo "not ok $1: $(tail -3 log | tr '\n' '|')"; }
train() { timeout 120 "$pipec" run m.pipe -o out --quiet "$@" >log 2>&1; }
cuda='--target cuda -D dtype=f32'

# left_out FILE: the steps whose loss or norm is none
left_out() { awk '$2 !~ /^[0-9.e+-]*$/ || $3 !~ /^[0-9.e+-]*$/ { print $1 }' "$1"; }
near() {
    paste "$1" "$2" | awk '$2 ~ /^[0-9.e+-]*$/ { d = $2 - $5; if (d * d > 1e-8 * $2 * $2) exit 1 }'
}
for options in 'adamw(lr = 0.01)/0' 'sgd(lr = 0.01, momentum = 0.9)/0.5'; do
    name=${options%%(*}
    skip() {
        losses=$1
        shift
        train -D 'on=nonfinite skip' -D "optimizer=${options%/*}" -D "clip=${options#*/}" --losses "$losses" "$@"
    }
    skip cpu -D stages=1 -D schedule=naive || verdict "cpu-$name" 1
    # shellcheck disable=SC2086
    skip one $cuda -D stages=1 -D schedule=naive --save "one-$name"
    verdict "one-$name" $?
    [ "$(left_out cpu | wc -l)" -ge 2 ] && [ "$(left_out cpu)" = "$(left_out one)" ] && near cpu one
    verdict "steps-$name" $?
    for run in 'nccl' 'local' 'nccl --graph off'; do
        # shellcheck disable=SC2086
        skip many $cuda --transport $run && cmp one many >>log
        verdict "$name-$run" $?
    done
done
# A step that is left out changes nothing: every step is bad.
awk '{ print $1, $2, "1e30" }' points >bad
# shellcheck disable=SC2086
for steps in 0 3; do
    train -D 'on=nonfinite skip' $cuda -D data=bad --steps $steps --save steps-$steps
done
tail -c 100 steps-0/m-rank0-of-4.safetensors >0
tail -c 100 steps-3/m-rank0-of-4.safetensors >3
cmp 0 3 >>log
verdict nothing $?

# ---- stop ----

# shellcheck disable=SC2086
train $cuda --steps 1 --save good && cp -R good kept
verdict good $?
# stops NAME OPTION...: as on the CPU, but for the layer and the micro-batch of a norm
stops() {
    name=$1
    shift
    train -D stages=1 -D schedule=naive "$@"
    sed 's/.*: the \(loss\|norm\)/the \1/; s/: the first layer.*;/;/; s/ in micro-batch [0-9]*;/;/' log | head -1 >said.cpu
    for run in 'nccl' 'local' 'nccl --graph off'; do
        # shellcheck disable=SC2086
        train $cuda --save good --transport $run "$@"
        [ $? = 1 ] && diff -r good kept >>log && [ "$(find good -name '*.new' | wc -l)" = 0 ] &&
            sed 's/.*: the \(loss\|norm\)/the \1/' log | head -1 | cmp - said.cpu >>log
        verdict "$name-$run" $?
    done
}
stops loss
stops loss-clip -D clip=1
stops norm -D data=large -D 'optimizer=sgd(lr = 0)' -D clip=1
