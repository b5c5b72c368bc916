#!/bin/sh
# cases.sh LIBRARY SCRATCH: what users of other pipeline schedulers have reported, as
# inputs here, with the behaviour that is right. The numbers are those of the
# project's list of reports; those about placements and split backwards wait for
# the schedules that have them.
pipec=$1/../../bin/pipec
cd "$2" || exit 1

# model LAYERS > FILE: so many equal layers.
model() {
    echo 'model m {'
    echo '    input tokens[4] of 8'
    echo '    e : embedding(8)'
    [ "$1" -gt 1 ] && echo "    h : linear(8) * $(($1 - 1))"
    echo '    loss : cross_entropy'
    echo '}'
    echo 'train { data bytes "digits.txt" steps 2 }'
}
awk 'BEGIN { for (i = 0; i < 200; i++) printf "%c", i * i % 7 }' >digits.txt
model 8 >m8.pipe
model 16 >m16.pipe

# shows NAME FILE PATTERN OPTION...: inspect prints the pattern.
shows() {
    name=$1 file=$2 pattern=$3
    shift 3
    "$pipec" inspect "$file" --all "$@" >out 2>&1 && grep -qE "$pattern" out && echo "ok $name" ||
        echo "not ok $name: $(head -2 out | tr '\n' ' ')"
}

# refuses NAME FILE PATTERN OPTION...: check ends with status 1 and says so.
refuses() {
    name=$1 file=$2 pattern=$3
    shift 3
    "$pipec" check "$file" "$@" >out 2>&1
    [ $? -eq 1 ] && grep -qE "$pattern" out && echo "ok $name" || echo "not ok $name: $(head -2 out | tr '\n' ' ')"
}

trains() {
    name=$1 file=$2
    shift 2
    timeout 30 "$pipec" run "$file" -o out.d --quiet "$@" >out 2>&1 && echo "ok $name" ||
        echo "not ok $name: $(head -2 out | tr '\n' ' ')"
}

# M against P
trains 1-one-microbatch-1f1b m8.pipe -D stages=8 -D microbatches=1 -D schedule=1f1b
shows 1-makespan m8.pipe '^makespan 24,' -D stages=8 -D microbatches=1 -D schedule=1f1b
trains 1-one-microbatch-interleaved m16.pipe -D stages=8 -D virtual=2 -D microbatches=1
for schedule in gpipe 1f1b; do
    trains 2-fewer-than-stages-$schedule m8.pipe -D stages=4 -D microbatches=2 -D schedule=$schedule
done
for n in 1 2 4; do
    trains 4-as-many-as-stages-$n m8.pipe -D stages=$n -D microbatches=$n -D schedule=1f1b
done
shows 5-interleaved-below m16.pipe '^makespan 42,' -D stages=6 -D virtual=2 -D microbatches=3
for M in 9 11 13 14; do
    shows 7-any-$M m8.pipe "^makespan $((3 * (2 * M + 3)))," -D stages=4 -D virtual=2 -D microbatches=$M
done
refuses 8-small-group m8.pipe 'rank 0 cannot run 4F3.*waits for rank' -D stages=4 -D virtual=2 -D microbatches=8 \
    -D 'schedule=interleaved(group = 2)'
trains 9-two-ranks m8.pipe -D stages=2 -D virtual=2 -D microbatches=4
shows 9-makespan m8.pipe '^makespan 27,' -D stages=2 -D virtual=2 -D microbatches=4
refuses 13-chunks-of-1f1b m8.pipe 'runs one chunk per rank, but .virtual. is 2' -D stages=4 -D virtual=2 -D schedule=1f1b

# partition
model 30 >m30.pipe
shows 17-remainder m30.pipe '^ +1 +1 +8 ' -D stages=4
"$pipec" check m30.pipe --dump=partition -D stages=4 | awk -F'[][, )]+' '{ sum += $8 - $7 } END { exit sum != 30 }' &&
    echo 'ok 17-none-lost' || echo 'not ok 17-none-lost'
model 7 >m7.pipe
shows 18-explicit m7.pipe '^ +0 +0 +3 ' -D stages=2 -D 'split=[3 4]'
model 6 >m6.pipe
trains 26-uneven m6.pipe -D stages=2 -D 'split=[2 4]'
trains 28-empty-stage m8.pipe -D stages=5 -D 'split="Et|(tt|)*2|ttL"'
shows 29-head-alone m8.pipe 'e .. h.5' -D stages=2 -D 'split=[7 1]'
"$pipec" check m8.pipe --dump=partition -D stages=4 | grep -q 'layers \[0, 2)' && echo 'ok 32-half-open' ||
    echo 'not ok 32-half-open'

# pictures and formats
"$pipec" inspect m8.pipe -D stages=4 -D microbatches=8 -o t.svg && grep -q 'cost model: ' t.svg && echo 'ok 66-cost-model' ||
    echo 'not ok 66-cost-model'
{ cat m8.pipe; echo 'cluster { flops 1M latency 3ms }'; } >slow.pipe
"$pipec" check slow.pipe --dump=prove -D stages=2 -D microbatches=2 >out
awk '$4 == "rank" && $6 == "0F0" { end = $3 } $6 == "1F0" { start = $1 } END { d = start - end - 0.003; exit d > 1e-9 || d < -1e-9 }' \
    out && echo 'ok 68-earliest-start' || echo "not ok 68-earliest-start: $(grep F0 out | tr '\n' ' ')"
"$pipec" inspect m8.pipe -D stages=4 -D microbatches=8 -o t.csv
{ sed 's/^train.*//' m8.pipe; echo 'pipeline { stages 4 microbatches 8 schedule from "t.csv" }'; } >from.pipe
shows 70-import from.pipe '^makespan 33,'
"$pipec" compare m8.pipe --schedule all --microbatches 8 -D stages=4 >out 2>&1 && grep -q 'Pareto\|nothing is both' out &&
    echo 'ok 70-compare' || echo 'not ok 70-compare'
