#!/bin/sh
# train.sh LIBRARY SCRATCH: an order that was written to a file and read back trains as the schedule that it came from:
# the same losses and weights, bit for bit. An order that no schedule of ours has trains as one rank does.
pipec=$(cd "$1" && pwd)/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1
${CC:-cc} -std=gnu11 -O1 -Wall -Wextra -Werror "$here/../train/bits.c" -o compare || exit 1
bits=$here/../train/bits.pipe

# train NAME OPTION...: losses in NAME.losses, weights in NAME.weights/, programs in NAME/
train() {
    into=$1
    shift
    "$pipec" run "$bits" -o "$into" --quiet --losses "$into.losses" --save "$into.weights" "$@" >log 2>&1 && return
    echo "not ok $into: $(head -3 log | tr '\n' ' ')"
    return 1
}

same() {
    if cmp -s "$1.losses" "$2.losses" && ./compare "$1.weights" "$2.weights" >log 2>&1; then
        echo "ok $2"
    else
        echo "not ok $2: $(diff "$1.losses" "$2.losses" | head -2) $(head -1 log)"
    fi
}

# back NAME SCHEDULE SETTING...: by the name; by its file; by its file with communication
back() {
    name=$1 schedule=$2
    shift 2
    train "$name" "$@" -D "schedule=$schedule" || return
    "$pipec" inspect "$bits" "$@" -D "schedule=$schedule" -o "$name.csv" || echo "not ok $name.csv"
    "$pipec" inspect "$bits" "$@" -D "schedule=$schedule" -o "$name-comms.csv" --comms || echo "not ok $name-comms.csv"
    for file in "$name" "$name-comms"; do
        train "$file-back" "$@" -D "schedule=from \"$file.csv\"" && same "$name" "$file-back"
    done
}

back gpipe gpipe -D stages=2 -D microbatches=3
back 1f1b 1f1b -D stages=4 -D microbatches=6
back interleaved interleaved -D stages=2 -D virtual=2 -D microbatches=5
back one-rank naive -D stages=1 -D virtual=1 -D microbatches=3

# Messages that bind: PyTorch's own, and RECVs that stand far before what they are for.
tar xzf "$here/pytorch-2.15-csv.tgz" pt/Interleaved1F1B_2_2_6_comms.csv pt/ZBVZeroBubble_2_2_4_comms.csv
train six -D stages=2 -D virtual=2 -D microbatches=6 -D schedule=interleaved
train pytorch -D stages=2 -D virtual=2 -D microbatches=6 -D 'schedule=from "pt/Interleaved1F1B_2_2_6_comms.csv"' &&
    same six pytorch
train zbv-one -D stages=1 -D virtual=1 -D microbatches=4 -D schedule=naive
train pytorch-zbv -D stages=2 -D virtual=2 -D microbatches=4 -D placement=vee \
    -D 'schedule=from "pt/ZBVZeroBubble_2_2_4_comms.csv"' && same zbv-one pytorch-zbv

train one -D stages=1 -D schedule=naive -D microbatches=8
train eager -D stages=4 -D microbatches=8 -D "schedule=from \"$here/eager-4-8.csv\"" && same one eager
train eager-shaken -D stages=4 -D microbatches=8 -D "schedule=from \"$here/eager-4-8.csv\"" --delay 400 &&
    same one eager-shaken

# A path in the .pipe file is relative to it, one from -D to where the user stands.
mkdir -p folder
sed 's/rows 2/rows 2 stages 2 microbatches 4 schedule from "order.csv"/' "$bits" >folder/there.pipe
cp "$here/1f1b-2-4.csv" folder/order.csv
printf '0F0\n' >order.csv
if "$pipec" check folder/there.pipe >log 2>&1; then echo "ok path-in-file"; else echo "not ok path-in-file $(cat log)"; fi
"$pipec" check folder/there.pipe -D 'schedule=from "order.csv"' >log 2>&1
if grep -q 'order.csv:1:1: error: the file has 1 row' log; then echo "ok path-from-define"; else echo "not ok path-from-define $(cat log)"; fi
if "$pipec" check folder/there.pipe -D schedule=gpipe >log 2>&1; then
    echo "ok define-wins"
else
    echo "not ok define-wins $(cat log)"
fi

# Two copies of the model: PyTorch has no place for them, which is said once; we take them back, without another word.
train twins -D stages=2 -D microbatches=4 -D schedule=dualpipe
"$pipec" inspect "$bits" -D stages=2 -D microbatches=4 -D schedule=dualpipe -o twins.csv >log 2>&1
if [ "$(grep -c 'PyTorch cannot load it' log)" -eq 1 ]; then echo "ok twins-note"; else echo "not ok twins-note $(cat log)"; fi
"$pipec" inspect "$bits" -D stages=2 -D microbatches=4 -o alone.csv >log 2>&1
if [ -s log ]; then echo "not ok no-note $(cat log)"; else echo "ok no-note"; fi
train twins-back -D 'schedule=from "twins.csv"' && same twins twins-back

# The layout and the list of sizes are one split.
"$pipec" check --dump=emit "$bits" -D stages=4 -D 'split="E|tt|t|tL"' >layout
"$pipec" check --dump=emit "$bits" -D stages=4 -D 'split=[2 2 1 3]' >sizes
if [ -s layout ] && cmp -s layout sizes; then echo "ok layout"; else echo "not ok layout"; fi
