#!/bin/sh
# boundaries.sh LIBRARY SCRATCH: numbers at 2^31 - 1, 2^31 and 2^32, alone and as products: what comes of them is right,
# or refused with the numbers; nothing is negative, nothing is 0, nothing crashes. (The same files pass through the
# sanitizers in tests/fuzz/replay.sh.)
library=$1
pipec=$1/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1
cp "$here"/boundaries.pipe m.pipe
printf 'the quick brown fox jumps over the lazy dog\n' >bytes

verdict() { [ "$2" -eq 0 ] && echo "ok $1" || echo "not ok $1: $(head -3 log | tr '\n' '|')"; }
# refused NAME TEXT OPTION...: one error, with that text and what to type
refused() {
    name=$1 text=$2
    shift 2
    "$pipec" check m.pipe "$@" >log 2>&1
    [ $? = 1 ] && grep -q "error: .*$text" log && grep -q '^  help: \|, but must be ' log
    verdict "refused-$name" $?
}
# right NAME TEXT OPTION...: the programs hold that text, nothing negative, and numbers that C takes as they are
right() {
    name=$1 text=$2
    shift 2
    "$pipec" check m.pipe "$@" --dump=emit >emitted 2>log && "$pipec" inspect m.pipe "$@" >shown 2>>log &&
        grep -q -e "$text" emitted && ! grep -e '[=(, ]-[0-9]' emitted shown >>log && sed -n '1,/^\/\* pipec program 1: rank 1/p' emitted |
        sed '$d' >rank.c && ${CC:-cc} -std=c11 -Wall -Wextra -Werror -Wconversion -fsyntax-only -I"$library" rank.c >>log 2>&1
    verdict "right-$name" $?
}
for number in 2147483647 2147483648 4294967296; do
    for setting in stages virtual microbatches rows steps warmup clip ctx dim vocab heads layers; do
        refused "$setting-$number" "$number, but must be" -D $setting=$number
    done
    right seed-$number "seed = $number," -D seed=$number
    for schedule in 'interleaved(group' 'eager(warmup'; do
        "$pipec" check m.pipe -D "schedule=$schedule = $number)" -D virtual=2 -D layers=8 >log 2>&1
        [ $? = 1 ]
        verdict "refused-$schedule-$number" $?
    done
done
right most-seed 'seed = 9007199254740991,' -D seed=9007199254740991
# The next two are one number in the reader's doubles.
refused seed 'seed. is 9.00719925474099e+15, but must be' -D seed=9007199254740992
refused seed-odd 'seed. is 9.00719925474099e+15, but must be' -D seed=9007199254740993
right steps 'steps = 1000000000,' -D steps=1000000000 -D warmup=1000000000

# ---- products ----

right positions ' n = 2130706432,' -D rows=1048576 -D ctx=2032 -D vocab=16
right positions-wide '2130706432' -D rows=1048576 -D ctx=2032 -D dim=4 -D vocab=2
refused positions-strides '1048576 rows of 2033 positions are 2131755008 in a micro-batch' -D rows=1048576 -D ctx=2033
refused positions-31 '1048576 rows of 2048 positions are 2147483648 in a micro-batch' -D rows=1048576 -D ctx=2048
refused positions-32 '1048576 rows of 4096 positions are 4294967296 in a micro-batch' -D rows=1048576 -D ctx=4096
refused positions-44 '1048576 rows of 16777216 positions are 17592186044416 in' -D rows=1048576 -D ctx=16777216
refused actions '16384 microbatches over 65536 chunks are 2.15e+09 actions' -D stages=1024 -D virtual=64 -D layers=65534 \
    -D schedule=interleaved -D microbatches=16384
refused values 'values per micro-batch' -D ctx=8388608 -D dim=16384 -D heads=1
# Values of a tensor, of a parameter and of an arena beyond 2^32.
right values-32 '\[268435456 x 64\]\|17179869184' -D rows=1048576 -D ctx=256 -D dim=64
right parameter-32 '4294967296' -D dim=65536 -D ctx=4 -D rows=1 -D layers=1 -D heads=2

# ---- runs ----

# emulated NAME TEXT OPTION...: ends well, and says so
emulated() {
    name=$1 text=$2
    shift 2
    timeout 60 "$pipec" run m.pipe --emulate -o emulated "$@" >log 2>&1 && grep -q -e "$text" log && ! grep -e '[ (]-[0-9]*[ :]' log >seen
    verdict "emulated-$name" $?
}
for rows in 524288 1048576; do # 2^31 - 2^20 and 2^32 - 2^21 positions in a step
    emulated rate-$rows '  [0-9]\{9,\} tok/s' -D rows=$rows -D ctx=2032 -D vocab=16 -D microbatches=2 --unit-ms 1
done
"$pipec" run m.pipe --emulate -o long -D "forward=1000000s" -D "backward=1000000s" -D microbatches=16384 >log 2>&1
[ $? = 1 ] && grep -q 'is too long for an emulation' log
verdict emulated-long $?
run() { timeout 60 "$library/pprun" --data bytes "$@" 2 out/rank >log 2>&1; }
"$pipec" build m.pipe -o out -D layers=2 >log 2>&1
verdict build $?
for number in 2147483647 2147483648 4294967296 18446744073709551616; do
    run --steps $number
    [ $? = 2 ] && grep -q 'not a whole number in range: --steps' log
    verdict steps-$number $?
done
for number in 2147483647 2147483648 4294967296 18446744073709551615; do
    run --steps 1 --seed $number && grep -q 'loss [0-9.]*' log
    verdict seed-$number $?
done
run --steps 1 --seed 18446744073709551616
[ $? = 2 ]
verdict seed-too-large $?
# The most steps that there can be: lines, the time left and the end are numbers, when somebody stops it.
"$library/pprun" --data bytes --steps 2147483646 2 out/rank >log 2>&1 &
job=$!
until grep -q '^step ' log || ! kill -0 $job; do sleep 0.05; done 2>/dev/null
kill -INT $job && wait $job && grep -q '^stopped after [0-9]* of 2147483646 steps' log && ! grep -e ' -[0-9]' log >seen
verdict most-steps $?
# Data of as many bytes, and tokens; most of it is a hole.
for bytes in 2147483647 2147483648 4294967296 4294967297; do
    truncate -s $bytes holes && timeout 60 "$library/pprun" --data holes --steps 2 2 out/rank >log 2>&1 && grep -q '^done: 2 steps' log
    verdict data-$bytes $?
    rm -f holes
done
