#!/bin/sh
# auto.sh RUNTIME SCRATCH: `schedule auto` plans within its memory, is never worse than a schedule with a name that fits
# the same memory, says a bound that is not above its result, gives the same order each time, and says what to type when
# nothing fits. What it plans is trained in tests/train/schedules.sh.
pipec=$1/../../bin/pipec
file=$(dirname "$0")/../train/bits.pipe
scratch=$2
costs='-D flops=1G -D link=40M -D latency=20us -D rows=4'

# plan NAME OPTION...: what inspect says, in $scratch/NAME
plan() {
    name=$1
    shift
    # shellcheck disable=SC2086
    "$pipec" inspect "$file" $costs "$@" >"$scratch/$name" 2>&1
}
# makespan NAME; largest NAME: arena of a rank
makespan() { sed -n 's/^makespan \([0-9.e+-]*\) ms.*/\1/p' "$scratch/$1"; }
largest() { awk '/^ *[0-9]+  .* %/ { if ($(NF-1) > most) most = $(NF-1) } END { printf "%d", most }' "$scratch/$1"; }
share() { sed -n "s/^searched: .*-> \([0-9.]*\) % bubble.*can be below \([0-9.]*\) %.*/\1 \2/p" "$scratch/$1"; }
holds() { awk "BEGIN { exit !($1) }"; }

for placement in loop vee; do
    named='1f1b eager zbh1 zbh2'
    v=1
    [ $placement = vee ] && named='zbv vmin' && v=2
    for stages in 2 4; do
        for M in 3 8; do
            shape="-D stages=$stages -D microbatches=$M -D virtual=$v -D placement=$placement"
            tag=$placement-$stages-$M
            for other in $named; do
                # shellcheck disable=SC2086
                plan "$tag-$other" -D stages=$stages -D microbatches=$M -D virtual=$v -D "schedule=$other"
                memory=$(largest "$tag-$other")
                # shellcheck disable=SC2086
                plan "$tag-auto" $shape -D "schedule=auto(memory = $memory)"
                if holds "$(makespan "$tag-auto") <= $(makespan "$tag-$other") * 1.0005 && $(largest "$tag-auto") <= $memory" &&
                    holds "$(share "$tag-auto" | sed 's/ / >= /')"; then
                    echo "ok $tag as $other"
                else
                    echo "not ok $tag: auto $(makespan "$tag-auto") ms in $(largest "$tag-auto") bytes," \
                        "$other $(makespan "$tag-$other") ms in $memory: $(tail -1 "$scratch/$tag-auto")"
                fi
            done
        done
    done
done

# Where no gradient crosses a boundary, an order can be better than all that wait for one.
cat >"$scratch/none.pipe" <<'X'
model m { input x[8]; a : relu; b : linear(8); c : linear(4); loss : mse }
pipeline { stages 2 microbatches 3 rows 200 split [1 2] schedule auto }
cluster { forward [4ms 6ms] input_gradient [24ms 9ms] weight_gradient [1ms 8ms] latency 5ms }
X
"$pipec" inspect "$scratch/none.pipe" >"$scratch/none" 2>&1
[ "$(share none)" = "2.25 0.00" ] && echo 'ok none' || echo "not ok none: $(grep searched "$scratch/none")"

plan once -D stages=4 -D microbatches=12 -D 'schedule=auto(span = 1, seed = 7)'
plan twice -D stages=4 -D microbatches=12 -D 'schedule=auto(span = 1, seed = 7)'
grep -q 'longest own span' "$scratch/once" && cmp -s "$scratch/once" "$scratch/twice" && echo 'ok same' || echo 'not ok same'

# refuses NAME TEXT OPTION...
refuses() {
    name=$1 text=$2
    shift 2
    plan "$name" "$@"
    grep -q -- "$text" "$scratch/$name" && echo "ok $name" || echo "not ok $name: $(head -3 "$scratch/$name")"
}
refuses little 'for one micro-batch at a time: give more memory' -D stages=4 -D 'schedule=auto(memory = 10K)'
refuses wave 'use `placement vee`, or `virtual 1`' -D stages=2 -D virtual=2 -D placement=wave -D schedule=auto
refuses twin 'leave the placement out, or use `placement vee`' -D stages=2 -D placement=twin -D schedule=auto
