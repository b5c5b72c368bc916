#!/bin/sh
# placements.sh LIBRARY SCRATCH: chunks on ranks as a list says, with unequal numbers of them, by schedules of ours, by an
# order of one's own and from a file that alone says where they lie: the bits of one rank, with random sleeps.
library=$(cd "$1" && pwd)
pipec=$library/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1
. "$here/same"
sed 's/^pipeline .*/pipeline { rows 2  microbatches 5 }/; s/h    : block \* 4/h    : block * 6/' "$here/bits.pipe" >bits.pipe
sed 's/^pipeline .*/pipeline { rows 2 }/' bits.pipe >shape.pipe
cat >>bits.pipe <<END
schedule mine {                               # all of the rank's chunks, as many as it has
    for k in 0 .. v { for m in 0 .. M { F(m, k) } }
    for k in 0 .. v down { for m in 0 .. M { B(m, k) } }
}
END

# train NAME FILE OPTION...: losses in NAME.losses, weights in NAME.weights/
train() {
    into=$1 file=$2
    shift 2
    "$pipec" run "$file.pipe" -o out --quiet --losses "$into.losses" --save "$into.weights" --delay 400 "$@" >log 2>&1 && return
    echo "not ok $into: $(head -3 log | tr '\n' ' ')"
    return 1
}

train one bits -D stages=1 -D schedule=naive
train newest bits -D stages=1 -D schedule=bfs

listed() { # REFERENCE SCHEDULE PLACEMENT OPTION...
    reference=$1 schedule=$2 placement=$3
    shift 3
    name="$schedule-$(echo "$placement" | tr -d ' []')"
    train "$name" bits -D "schedule=$schedule" -D "placement=$placement" "$@" && same $reference "$name"
}

listed newest bfs '[0 0 1 2 0]' -D split=balanced
listed newest bfs '[1 0 0 0]'
listed one mine '[2 1 1 0 2 0 0]' -D split=balanced
listed one naive '[0 1 0 0]'
listed one 1f1b '[2 0 3 1]'
listed one interleaved '[1 0 1 0]'
listed one zbv '[1 0 2 2 0 1]'
listed one auto '[2 1 0]'
listed one hanayo '[1 0 0 1 1 0 0 1]'

# The file says ranks, chunks, micro-batches and where they lie.
from() { # PLACEMENT [whole or split backwards]
    awk -v map="$1" -v M=5 -v split_backward="$2" -f "$here/order.awk" >order.csv
    name="from-$(echo "$1" | tr -d ' ')${2:+-split}"
    train "$name" shape -D 'schedule=from "order.csv"' -D split=balanced && same one "$name"
}

from '0 0 1 1'
from '0 1 1 0 2'
from '2 0 1 0 0 1' 1
from '1 1 1 0'
from '3 0 1 0 2 0 1' 1
