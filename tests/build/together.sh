#!/bin/sh
# together.sh LIBRARY SCRATCH: runs of one file that start at one moment, with other values, a slow compiler among
# them: each learns just what it learns alone. RUNS of them, 40 unless given; eight at a time.
. "$(dirname "$0")/setup"

rates='0.1 0.2 0.3 0.4 0.5 0.6'
for rate in $rates; do
    "$pipec" run s.pipe -o alone -D rate="$rate" --quiet --losses "alone-$rate" >log 2>&1 || { verdict alone 1; exit; }
done
cmp -s alone-0.1 alone-0.6 && not_ok alone "all rates learn the same"

# one ROUND PLACE: waits for the barrier, then runs
one() {
    rate=$(echo $rates | cut -d' ' -f$((($1 + $2) % 6 + 1)))
    command=cc
    [ $(($2 % 4)) -ne 1 ] || command=./slow-cc
    while [ ! -e go ]; do :; done
    CC=$command "$pipec" run s.pipe -D rate="$rate" --quiet --losses "losses-$2" >"log-$2" 2>&1 &&
        cmp -s "losses-$2" "alone-$rate" && echo right >"verdict-$2"
}
right=0 runs=0 round=0
while [ $runs -lt "${RUNS:-40}" ]; do
    rm -rf go verdict-* losses-*
    [ $((round % 2)) = 1 ] || rm -rf out
    jobs=''
    for place in 1 2 3 4 5 6 7 8; do
        one $round $place &
        jobs="$jobs $!"
    done
    : >go
    # shellcheck disable=SC2086
    wait $jobs
    runs=$((runs + 8)) round=$((round + 1))
    right=$((right + $(cat verdict-* 2>/dev/null | wc -l)))
done
cat log-* >log
[ $right = $runs ]
verdict "$right of $runs runs together were right" $?
[ "$(find out/s -name '*.new' | wc -l)" = 0 ] && [ -f out/s/last/rank0.c ] && [ -h out/s/last ]
verdict tidy $?

# ---- a folder with a name ----

"$pipec" run s.pipe -o held --steps 100000000 --quiet >log 2>&1 &
job=$!
until [ -f held/job ] || ! kill -0 $job; do sleep 0.05; done 2>/dev/null
for command in 'run --quiet' build; do
    # shellcheck disable=SC2086
    "$pipec" $command s.pipe -o held -D rate=0.2 >log 2>&1
    [ $? = 1 ] && grep -q 'the folder held is in use: another job' log && grep -q -e 'help: .*-o FOLDER' log
    verdict "locked-$command" $?
done
kill -0 $job && kill -INT $job && wait $job && "$pipec" build s.pipe -o held -D rate=0.2 >log 2>&1
verdict free-again $?

# Whoever saves in a folder has it alone, for as long as it trains.
"$pipec" run s.pipe --steps 100000000 --quiet --save saved >log 2>&1 &
job=$!
until [ -f saved/.lock ] || ! kill -0 $job; do sleep 0.05; done 2>/dev/null
"$pipec" run s.pipe --quiet --save saved >second 2>&1
[ $? = 1 ] && grep -q 'cannot save in saved: another job saves there' second
verdict save-locked $? second
kill -INT $job && wait $job && [ -f saved/model.safetensors.index.json ] && "$pipec" run s.pipe --quiet --save saved >log 2>&1
verdict save-free-again $?

# ---- programs of two jobs ----

"$pipec" build s.pipe -o one >log 2>&1 && "$pipec" build s.pipe -o other -D rate=0.2 >log 2>&1
mkdir -p mixed && cp one/rank0 other/rank1 mixed
"$library/pprun" --quiet --data points 2 mixed/rank >log 2>&1
[ $? = 1 ] && grep -q "the program of rank 1 belongs to job $(sed -n 's/.*job \([0-9a-f]*\),.*/\1/p' other/job), not to" log
verdict mixed $?
"$library/pprun" --quiet --data points --job 0123456789abcdef 2 one/rank >log 2>&1
[ $? = 1 ] && grep -q 'belongs to job .*, not to 0123456789abcdef: build all ranks again' log
verdict wrong-job $?
"$library/pprun" --quiet --data points 2 one/rank >log 2>&1
verdict by-hand $?
