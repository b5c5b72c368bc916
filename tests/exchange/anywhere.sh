#!/bin/sh
# anywhere.sh LIBRARY SCRATCH: orders of chunks that lie anywhere, unequal numbers of them on a rank, proved in each way
# that messages meet; written with the messages of that way, and read back in it. The file alone says the shape.
pipec=$(cd "$1" && pwd)/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1
cat >x.pipe <<END
model chain {
    input tokens[2] of 4
    e    : embedding(4)
    h    : linear(4) * 11
    loss : cross_entropy
}
pipeline { schedule from "x.csv"  split balanced }
END
seed=0 passed=0
while [ $seed -lt "${MAPS:-40}" ]; do
    seed=$((seed + 1))
    ranks=$((seed % 4 + 1)) M=$((seed % 5 + 1)) split=''
    [ $((seed % 3)) -gt 0 ] || split=1
    map=$(awk -v s=$seed -v ranks=$ranks -v chunks=$((ranks + seed % 7)) 'BEGIN {
        srand(s)
        for (c = 0; c < chunks; c++) {
            with = int(rand() * (c + 1))
            at[c] = at[with]
            at[with] = c < ranks ? c : int(rand() * ranks)
        }
        for (c = 0; c < chunks; c++) printf "%s%d", c ? " " : "", at[c]
    }')
    awk -v map="$map" -v M=$M -v split_backward=$split -f "$here/../train/order.awk" >order.csv
    for way in blocking posted pair; do
        cp order.csv x.csv
        "$pipec" check x.pipe --messages $way >said 2>&1 && "$pipec" inspect x.pipe --messages $way >plan 2>&1 &&
            "$pipec" inspect x.pipe --messages $way --comms -o y.csv >said 2>&1 && cp y.csv x.csv &&
            "$pipec" inspect x.pipe --messages $way >back 2>said
        if [ $? -eq 0 ] && [ "$(grep ^makespan plan)" = "$(grep ^makespan back)" ]; then
            passed=$((passed + 1))
        else
            echo "not ok [$map], M=$M, $way: $(head -3 said) $(grep -h ^makespan plan back)"
        fi
    done
done
echo "ok $passed plans"

# What compares plans keeps such a placement apart from the values of `virtual`.
awk -v map="0 1 1 0 2" -v M=4 -f "$here/../train/order.awk" >x.csv
expect() { # NAME TEXT COMMAND...
    name=$1 text=$2
    shift 2
    "$pipec" "$@" >said 2>&1
    if grep -q -- "$text" said; then echo "ok $name"; else echo "not ok $name: $(head -20 said)"; fi
}
expect own-row '^[* ] from "x.csv" *3  -    4 ' compare x.pipe
expect own-row-once '^[* ] from "x.csv" *3  -    4 ' compare x.pipe --virtual 1,2
expect other-rows '^[* ] zbv *3  2    4 ' compare x.pipe
expect json '"from .*"virtual": null' compare x.pipe --json
expect explained '^  schedule=naive ' explain x.pipe r1@0
expect diff '1 to 2, 4' diff x.pipe --schedule bfs,naive -D 'placement=[0 1 1 0 2]' -D microbatches=4
expect head '3 ranks x 1 to 2 chunks' inspect x.pipe
