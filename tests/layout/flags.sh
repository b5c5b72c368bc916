#!/bin/sh
# flags.sh LIBRARY SCRATCH: `first`, `last` and `account` cut as the flags of Megatron-LM do that docs/language.md names
# beside them: size and offset of every stage equal those of flags.expected, which a script of its own has worked out
# (flags.py).
pipec=$1/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1

while read -r layers ranks virtual first last account _ stages; do
    split=
    [ "$first" -gt 0 ] && split="first $first"
    [ "$last" -gt 0 ] && split="$split last $last"
    if [ -n "$split" ]; then split="split $split"; else split="split even  account $account"; fi
    cat >one.pipe <<END
model m {
    input tokens[4] of 8
    wte  : embedding(4)
    h    : linear(4) * $layers
    head : linear(8)
    loss : cross_entropy
}
pipeline { stages $ranks  virtual $virtual  microbatches 2  $split }
END
    "$pipec" inspect one.pipe >said 2>&1
    # decoder*2 @7 or decoder @7 -> 2@7, of rank r and virtual stage k to the place k P + r.
    found=$(sed -n 's/^PP rank [0-9]* *//p' said | awk -v ranks="$ranks" '
        { gsub(/ @/, "@"); n = split($0, cell, /   */)
          for (k = 1; k <= n; k++) {
              size = cell[k] ~ /decoder\*/ ? cell[k] : cell[k] ~ /decoder/ ? "*1@" : "*0@"
              gsub(/.*\*|[,@].*/, "", size); sub(/.*@/, "", cell[k])
              at[(k - 1) * ranks + NR - 1] = size "@" cell[k] } }
        END { for (i = 0; i in at; i++) printf "%s%s", i ? " " : "", at[i] }')
    name="$layers blocks, $ranks x $virtual: $split"
    if [ "$found" = "$stages" ]; then echo "ok $name"
    else echo "not ok $name: $found, Megatron-LM $stages $(grep -m1 error said)"; fi
done <"$here/flags.expected"
