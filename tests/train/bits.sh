#!/bin/sh
# bits.sh LIBRARY SCRATCH: losses, norms and final weights on P ranks equal
# those on one rank, bit for bit: every schedule, P, v and M, plain and with
# random sleeps before every action and message.
pipec=$1/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1
. "$here/same"

# train NAME OPTION...: losses in NAME.losses, weights in NAME.weights/
train() {
    into=$1
    shift
    "$pipec" run "$here/bits.pipe" -o out --quiet --losses "$into.losses" --save "$into.weights" "$@" >log 2>&1 &&
        return
    echo "not ok $into: $(head -3 log | tr '\n' ' ')"
    return 1
}

for M in 1 3 8; do
    train one$M -D stages=1 -D schedule=naive -D microbatches=$M
    for P in 1 2 4; do
        for v in 1 2; do
            for schedule in naive gpipe 1f1b interleaved; do
                [ $v = 2 ] && [ $schedule != interleaved ] && continue
                name=$schedule-$P-$v-$M
                train $name -D stages=$P -D virtual=$v -D microbatches=$M -D schedule=$schedule && same one$M $name
                [ $P = 1 ] && continue
                train $name-shaken -D stages=$P -D virtual=$v -D microbatches=$M -D schedule=$schedule \
                    --delay 400 && same one$M $name-shaken
            done
        done
    done
done
# A cut that gives a rank nothing but an embedding, another nothing but the head.
train uneven -D stages=4 -D microbatches=3 -D schedule=1f1b -D 'split=[1 1 5 1]' && same one3 uneven
if head -c 200 uneven.weights/*-rank0-of-4.safetensors | grep -aq '"__metadata__":{"format":"pt","pipec_format":"1",'; then
    echo "ok format"
else
    echo "not ok format: a save names none"
fi
