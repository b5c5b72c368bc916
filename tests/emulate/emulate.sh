#!/bin/sh
# emulate.sh LIBRARY SCRATCH: programs whose kernels are sleeps keep the plan's
# order, need no data, and take as long as it says: exactly so by their clocks of
# model time, which they move by messages alone; nearly so in fact. bench/emulate
# measures how nearly; 20 % here, for a busy machine.
# alone: compares the length of steps
library=$1
pipec=$1/../../bin/pipec
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$2" || exit 1
cat >m.pipe <<'END'
layer block { relu(linear(x, 8)) }
model m {
    input points[8]
    h    : block * 15
    out  : linear(1)
    loss : mse
}
pipeline { stages 4 microbatches 8 rows 2 schedule 1f1b }
END

verdict() { [ "$2" -eq 0 ] && echo "ok $1" || echo "not ok $1: $(head -3 log | tr '\n' '|')"; }

# near: the run took at most 20 % more or less than planned.
near() {
    grep '^emulated: ' run.log >log
    sed -n 's/^emulated: .* ms, \([-+][0-9.]*\) %.*/\1/p' run.log | awk '{ n++; off = $1 } END { exit !(n == 1 && off > -20 && off < 20) }'
}

# exact: the ranks' clocks say what the plan says, but for the rounding of each time to ns.
exact() {
    sed -n "s/^emulated: .* planned \([0-9.]*\) ms.* clocks \([0-9.]*\) ms.*/\1 \2/p" run.log |
        awk '{ n++; off = $1 - $2 } END { exit !(n == 1 && off < 0.0015 && off > -0.0015) }'
}

# emulated NAME FILE OPTION...: order, times, and both timelines.
emulated() {
    name=$1 file=$2
    shift 2
    # shellcheck disable=SC2086
    "$pipec" check "$file" --dump=memory $plan >plan &&
        "$pipec" run "$file" --emulate -o "$name" $plan --trace "$name.trace" "$@" >run.log 2>log &&
        awk -v STEPS="${steps:-5}" -f "$root/tests/trace/check.awk" plan "$name.trace" >log 2>&1
    verdict "$name-order" $?
    near
    verdict "$name-time" $?
    exact
    verdict "$name-clocks" $?
    # shellcheck disable=SC2086
    "$pipec" inspect "$file" $plan --measured "$name.trace" >log 2>&1
    verdict "$name-inspect" $?
}
for case in "1f1b 4 1" "gpipe 4 1" "naive 3 1" "interleaved 4 2" "interleaved 2 4" "1f1b 1 1" "1f1b 16 1"; do
    # shellcheck disable=SC2086
    set -- $case
    plan="-D schedule=$1 -D stages=$2 -D virtual=$3"
    emulated "$1-$2-$3" m.pipe --unit-ms 3
done
plan="-D microbatches=8"
steps=2
emulated big "$root/examples/big.pipe" --steps 2

# Nothing but sleeps and messages of 16 floats: all the functions that are called.
cat 1f1b-4-1/rank*.c | grep -o 'pp_[a-z_]*(' | sort -u | tr -d '\n' >log
[ "$(cat log)" = 'pp_begin(pp_emulate(pp_end(pp_finish(pp_next_step(pp_recv(pp_send(pp_sleep(pp_start(pp_wait(' ]
verdict sleeps-alone $?
grep -h 'arena = ' 1f1b-4-1/rank*.c big/rank*.c >log
[ "$(grep -c 'arena = 128,' log)" = 12 ]
verdict small-arena $?
grep -q 'pp_sleep(3000000);' 1f1b-4-1/rank0.c && grep -q 'pp_sleep(6000000);' 1f1b-4-1/rank0.c
verdict lengths $?
${CC:-cc} -std=c11 -Wall -Wextra -Werror -fsyntax-only -I"$library" big/rank*.c 1f1b-1-1/rank0.c >log 2>&1
verdict clean $?

# A message is under way as long as link and latency say, and its receiver is free meanwhile.
grep -h pp_send_over big/rank0.c | head -1 >log
under_way=$(sed -n 's/.*pp_send_over(&send_f0, 0, m + sent, \([0-9]*\), \([0-9]*\), -1).*/\1 + \2/p' log)
awk -v least="$((${under_way:-0}))" '
    !/^#/ && $3 ~ /SEND_F/ { sub(/SEND/, "RECV", $3); sent[$2, $3 + 1 substr($3, length($3 + 0) + 1)] = $5; next }
    !/^#/ && $3 ~ /RECV_F/ { n++; end[$2, $3] = $5 }
    END { for (k in end) if (!(k in sent) || end[k] - sent[k] < 0.8 * least - 2e6) { bad++; print k, end[k] - sent[k] }
          exit !(n > 0 && least > 0 && !bad) }' big.trace >>log
verdict latency $?

# filled NAME FILE MS OPTION...: a step takes so long, by hand: wires that are as busy as ranks, or busier. The
# processes know only how long each message is, and keep the wires themselves. Their clocks are exact.
filled() {
    name=$1 file=$2 hand=$3
    shift 3
    "$pipec" run "$file" --emulate -o "$name" --steps 3 "$@" >run.log 2>log
    grep '^emulated: ' run.log >>log
    grep -q "by the ranks' clocks $hand.000 ms;" run.log && grep -q "planned $hand.000 ms" run.log
    verdict "$name" $?
}
# F = B = 1 ms, a message 10 ms: the wire 0 -> 1, then 1 -> 0, 80 ms each, and what is before and behind them.
cat >fills.pipe <<'END'
model m { input x[1000]; a : linear(1000) * 2; loss : mse }
pipeline { stages 2  microbatches 8 schedule gpipe }
cluster { forward 1ms backward 1ms link 400k latency 0s }
END
filled fills-gpipe fills.pipe 164
filled fills-1f1b fills.pipe 106 -D schedule=1f1b
filled fills-eager fills.pipe 94 -D schedule=eager
filled fills-gpipe-late fills.pipe 174 -D latency=5ms
filled fills-1f1b-late fills.pipe 146 -D schedule=1f1b -D latency=5ms
filled fills-eager-late fills.pipe 112 -D schedule=eager -D latency=5ms
# Messages of 320 and of 20 ms on the same wires: a long one holds up short ones.
cat >unequal.pipe <<'END'
model m { input x[250]; l0 : linear(4000); l1 : linear(4000); l2 : linear(250); l3 : linear(1000); loss : mse }
pipeline { stages 2 virtual 2 microbatches 3 schedule vhalf }
cluster { forward 20ms input_gradient 20ms weight_gradient 20ms link 50k }
END
filled unequal unequal.pipe 2060

# refused NAME TEXT WORD...
refused() {
    name=$1 text=$2
    shift 2
    "$pipec" "$@" >log 2>&1 && echo "status 0" >>log
    grep -q "$text" log && ! grep -q 'status 0' log
    verdict "$name" $?
}
refused unit-and-cluster 'this plan is in seconds' build "$root/examples/big.pipe" --emulate --unit-ms 2 -o x
refused unit-alone 'needs .--emulate.' build m.pipe --unit-ms 2 -o x
refused unit-zero 'takes milliseconds' build m.pipe --emulate --unit-ms 0 -o x
refused inspect 'belongs to' inspect m.pipe --emulate
refused cuda 'of the cpu' build m.pipe --emulate --target cuda -o x
refused save 'no parameters to save' run m.pipe --emulate --save x -o x
