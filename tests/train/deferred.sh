#!/bin/sh
# deferred.sh LIBRARY SCRATCH: `clip LIMIT deferred` gives the losses, norms and
# final weights of `clip LIMIT`, bit for bit: every schedule and P, plain and
# with random sleeps, where no update is undone, some are, and all would be; and
# ends as it does where the norm is no number.
pipec=$1/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1
. "$here/same"
cp "$here/bits.pipe" "$here/reference_mlp.pipe" "$here/reference_mlp.txt" "$here/late.csv" .
model=bits.pipe
shapes='1f1b-2-1 gpipe-2-1 interleaved-2-2 1f1b-4-1 gpipe-4-1'

# train NAME OPTION...: losses in NAME.losses, weights in NAME.weights/
train() {
    into=$1
    shift
    timeout 60 "$pipec" run $model -o out --quiet --losses "$into.losses" --save "$into.weights" \
        -D steps=10 "$@" >log 2>&1 && return
    echo "not ok $into: $(head -3 log | tr '\n' ' ')"
    return 1
}

# crosses NAME LIMIT LEAST MOST: how many times a step is clipped and the one before is not.
crosses() {
    count=$(awk -v limit="$2" '$3 > limit && !was { n++ } { was = $3 > limit } END { print n + 0 }' "$1.losses")
    [ "$count" -ge "$3" ] && [ "$count" -le "$4" ] && echo "ok $1-crosses" ||
        echo "not ok $1-crosses: $count times, not $3 to $4"
}

# deferred NAME LIMIT SHAPE OPTION...: against NAME, plain and shaken; a shape is schedule-P-v.
deferred() {
    kind=$1 limit=$2 shape=$3 name=$1-$3
    shift 3
    set -- -D "schedule=${shape%-*-*}" -D "virtual=${shape##*-}" -D "clip=$limit deferred" "$@"
    shape=${shape%-*}
    set -- -D "stages=${shape##*-}" "$@"
    train "$name" "$@" && same "$kind" "$name"
    train "$name-shaken" "$@" --delay 300 && same "$kind" "$name-shaken"
}

# cases NAME LIMIT OPTION...: the plain order on one rank, then the other in all shapes.
cases() {
    case=$1 clip=$2
    shift 2
    train "$case" -D stages=1 -D schedule=naive -D microbatches=8 -D "clip=$clip" "$@" || return
    for one in gpipe-1-1 $shapes; do
        deferred "$case" "$clip" "$one" -D microbatches=8 "$@"
    done
}

cases never 1000
cases sometimes 1.2
crosses sometimes 1.2 2 5
deferred sometimes 1.2 interleaved-4-2 -D microbatches=8
cases always 0.5
crosses always 0.5 1 1
cases momentum 1.2 -D 'optimizer=sgd(lr = 0.3, momentum = 0.9)'
crosses momentum 1.2 2 5
cases descent 1 -D 'optimizer=sgd(lr = 0.3, momentum = 0, decay = 0.01)'
crosses descent 1 1 5

# A loss or a norm that is no number ends the job: at the same step, for the same reason.
# ends NAME WHAT CLIP OPTION...: NAME is why and when
ends() {
    name=$1 what=$2 clip=$3
    shift 3
    for one in naive-1-1 gpipe-1-1 $shapes; do
        for how in '' ' deferred'; do
            shape=${one%-*}
            timeout 60 "$pipec" run $model -o out --quiet -D steps=10 -D microbatches=8 -D "schedule=${shape%-*}" \
                -D "virtual=${one##*-}" -D "stages=${shape##*-}" -D "clip=$clip$how" "$@" >log 2>&1
            status=$?
            sed -n 's/^pprun: error: rank .*: the \(.* of step [0-9]* is [a-z]*\).*/\1/p' log >said
            [ -f "$name" ] || cp said "$name"
            [ $status = 1 ] && grep -q "$what" said && cmp -s said "$name" && echo "ok $name-$one$how" ||
                echo "not ok $name-$one$how: status $status, not $(cat "$name"): $(head -3 log | tr '\n' ' ')"
        done
    done
}
ends nan 'loss of micro-batch .* is nan' 1000 -D 'optimizer=adamw(lr = 1e6)' -D warmup=0
model=reference_mlp.pipe
ends infinite 'norm of the gradients of .* is infinite' 1e9 -D 'optimizer=sgd(lr = 10, momentum = 0.9)' -D warmup=0

# Rank 0 has forwards that wait for a backward of rank 1: it must stop before them.
model=bits.pipe
train late -D stages=1 -D schedule=naive -D microbatches=2 -D clip=1.2
crosses late 1.2 2 5
set -- -D stages=2 -D virtual=2 -D microbatches=2 -D 'schedule=from "late.csv"' -D 'clip=1.2 deferred'
train late-csv "$@" && same late late-csv
train late-csv-shaken "$@" --delay 300 && same late late-csv-shaken

# Every schedule that there is, against itself.
for schedule in $("$pipec" --help schedules | awk '/^  [a-z0-9]/ { print $1 }'); do
    set -- -D stages=4 -D microbatches=8 -D "schedule=$schedule"
    train "own-$schedule" "$@" -D clip=1.2 && train "late-$schedule" "$@" -D 'clip=1.2 deferred' --delay 300 &&
        same "own-$schedule" "late-$schedule"
done

# A step that a stop makes the last is settled before it is saved.
"$pipec" run bits.pipe -o out --losses stopped.losses --save stopped.weights -D stages=2 -D 'clip=1.2 deferred' \
    -D steps=1000000 >log 2>&1 &
for i in 1 2 3 4 5 6 7 8 9; do
    sleep 0.3
    [ -s stopped.losses ] && break
done
kill -INT $!
wait $!
steps=$(sed -n 's/^stopped after \([0-9]*\) of.*/\1/p' log)
train unstopped -D stages=2 -D clip=1.2 --steps "${steps:-1}" && same unstopped stopped

# The example, on four ranks and on one.
model=$here/../../examples/zero_bubble.pipe
train example-one -D stages=1 -D schedule=naive && train example --delay 300
if cmp -s example-one.losses example.losses; then echo "ok example"; else echo "not ok example: losses differ from one rank"; fi
