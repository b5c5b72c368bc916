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
# The result and the bound.
found() { sed -n 's/^searched: .* \([0-9.e+-]*\) ms\( within[^;]*\)*; no order.* can be below \([0-9.e+-]*\) ms.*/\1 \3/p' "$scratch/$1"; }
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
                    holds "$(found "$tag-auto" | sed 's/ / >= /')" &&
                    holds "$(found "$tag-auto" | sed 's/ .*//') == $(makespan "$tag-auto")"; then
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
[ "$(found none)" = "87 87" ] && echo 'ok none' || echo "not ok none: $(grep searched "$scratch/none")"

# A whole backward may be shorter than its parts: then it is used, beside split ones where these are better, and the bound is
# not above what an order that a person has written takes. Once this was an abort.
cat >"$scratch/mixed.csv" <<'X'
0F3,0F2,0F1,0F0,0F6,0F4,0F5,0F7,0B0,0B3,0B1,0B2,0B6,0B5,0B4,0B7
1F3,1F2,1F1,1F0,1F6,1F5,1F7,1F4,1B0,1B3,1B1,1B2,1B6,1B5,1B4,1I7,1W7
2F3,2F2,2F1,2F0,2F6,2B3,2B0,2F7,2B1,2F5,2F4,2B2,2I6,2B5,2B4,2I7,2W6,2W7
3F3,3I3,3F2,3F0,3B0,3F1,3B1,3F6,3B2,3F5,3I6,3I5,3F4,3B4,3F7,3I7,3W7,3W6,3W5,3W3
X
cat >"$scratch/mixed.pipe" <<'X'
model m { input x[16]; a : linear(16) * 8; loss : mse }
pipeline { stages 4 microbatches 8 schedule auto }
cluster { forward 10ms backward 15ms input_gradient 10ms weight_gradient 10ms latency 0s }
X
mixed() { "$pipec" inspect "$scratch/mixed.pipe" "$@" 2>&1; }
mixed >"$scratch/mixed-auto"
mixed -D "schedule=from \"$scratch/mixed.csv\"" >"$scratch/mixed-written"
mixed -D stages=2 -D forward=1ms -D backward=1ms -D input_gradient=1ms -D weight_gradient=1ms >"$scratch/mixed-short"
mixed -D virtual=2 -D placement=vee >"$scratch/mixed-vee"
if holds "$(makespan mixed-auto) <= $(makespan mixed-written) && $(found mixed-auto | sed 's/.* //') <= $(makespan mixed-written)" &&
    [ "$(found mixed-short)" = "18 18" ] && holds "$(makespan mixed-vee) <= 450"; then
    echo 'ok mixed'
else
    echo "not ok mixed: $(grep -h '^searched\|rror' "$scratch"/mixed-*)"
fi

# Receives that are posted: better than what is best without a search, by more than rounding.
sed -e 's/cluster .*/cluster { forward 1ms backward 2ms latency 3ms }/' "$scratch/mixed.pipe" >"$scratch/posted.pipe"
"$pipec" inspect "$scratch/posted.pipe" --target cuda >"$scratch/posted" 2>&1
"$pipec" inspect "$scratch/posted.pipe" --target cuda -D schedule=zbh2 >"$scratch/posted-named" 2>&1
"$pipec" inspect "$scratch/posted.pipe" --target cuda -D virtual=2 -D placement=vee >"$scratch/posted-vee" 2>&1
# What it says is what is planned, with the WAITs of the arenas.
if holds "$(makespan posted) < $(makespan posted-named) * 0.97 && $(makespan posted) == $(found posted | sed 's/ .*//') &&
    $(makespan posted-vee) == $(found posted-vee | sed 's/ .*//')"; then
    echo 'ok posted'
else
    echo "not ok posted: $(makespan posted) ms, zbh2 $(makespan posted-named); $(grep -h '^searched' "$scratch/posted-vee")"
fi

plan once -D stages=4 -D microbatches=12 -D 'schedule=auto(span = 1, seed = 7)'
plan twice -D stages=4 -D microbatches=12 -D 'schedule=auto(span = 1, seed = 7)'
grep -q 'longest own span' "$scratch/once" && cmp -s "$scratch/once" "$scratch/twice" && echo 'ok same' || echo 'not ok same'

# In activations: no worse than what fits, and what a person can count: until its backward a chunk is one.
for limit in 2 3 4; do
    plan "activations-$limit" -D stages=4 -D microbatches=8 -D "schedule=auto(activations = $limit)"
    peak=$(awk '/^ *[0-9]+  .* %/ { if ($(NF-2) > most) most = $(NF-2) } END { print most }' "$scratch/activations-$limit")
    grep -q "within $limit activations; no order of these chunks under this limit" "$scratch/activations-$limit" &&
        [ "$peak" -ge "$limit" ] && echo "ok activations $limit" ||
        echo "not ok activations $limit: $peak chunks; $(grep searched "$scratch/activations-$limit")"
done
plan activations-1f1b -D stages=4 -D microbatches=8 -D schedule=1f1b
holds "$(makespan activations-4) < $(makespan activations-1f1b) && $(makespan activations-4) <= $(makespan activations-2)" &&
    echo 'ok activations' || echo "not ok activations: $(makespan activations-4) ms, 1f1b $(makespan activations-1f1b)"

# refuses NAME TEXT OPTION...
refuses() {
    name=$1 text=$2
    shift 2
    plan "$name" "$@"
    grep -q -- "$text" "$scratch/$name" && echo "ok $name" || echo "not ok $name: $(head -3 "$scratch/$name")"
}
refuses little 'for one micro-batch at a time: give more memory' -D stages=4 -D 'schedule=auto(memory = 10K)'
refuses fewer '`activations = 2`' -D stages=4 -D virtual=2 -D placement=vee -D 'schedule=auto(activations = 1)'
refuses both 'within 90000000 bytes and 4 activations; no order of these chunks under this limit' -D stages=4 \
    -D 'schedule=auto(memory = 90M, activations = 4)'
refuses wave 'use `placement vee`, or `virtual 1`' -D stages=2 -D virtual=2 -D placement=wave -D schedule=auto
refuses twin 'leave the placement out, or use `placement vee`' -D stages=2 -D placement=twin -D schedule=auto
