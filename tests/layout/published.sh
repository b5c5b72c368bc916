#!/bin/sh
# published.sh LIBRARY SCRATCH: layouts that were published for Megatron-LM (published.txt) are cut as Megatron cuts
# them: size and offset of every stage of every rank equal those of published.expected, which a script of its own has
# worked out (published.py), for as many ranks as stages, half as many and a quarter.
pipec=$1/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1

grep '^==' "$here/published.expected" | while read -r _ layout _ blocks _ ranks; do
    cat >one.pipe <<END
layer block { x + linear(gelu(linear(layernorm(x), 4)), 4) }
model m {
    input tokens[8] of 16
    wte  : embedding(4)
    wpe  : position
    h    : block * $blocks
    ln_f : layernorm
    head : linear(16)
    loss : cross_entropy
}
pipeline { stages $ranks  microbatches 2  split "$layout" }
END
    echo "== $layout blocks $blocks ranks $ranks"
    "$pipec" inspect one.pipe 2>&1 | sed -n '/error/p; s/^\(PP rank [0-9]*\) */\1: /p' | sed 's/  */ /g; s/\(@[0-9]*\) \(.\)/\1; \2/g'
done >found
while read -r layout; do
    for table in expected found; do
        file=found
        [ $table = expected ] && file=$here/published.expected
        awk -v of="$layout" '/^==/ {on = $2 == of} on' "$file" >"$table.one"
    done
    if [ -s expected.one ] && cmp -s expected.one found.one; then
        echo "ok $layout"
    else
        echo "not ok $layout: $(diff expected.one found.one | head -4 | tr '\n' ' ')"
    fi
done <"$here/published.txt"
