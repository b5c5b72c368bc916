#!/bin/sh
# written.sh LIBRARY SCRATCH: a layout that `inspect -o X.layout` writes is read back as the same cut, and so are the
# other flags that the file names; files beside their goldens, NAME.layout here; BLESS=1 rewrites them.
library=$(cd "$1" && pwd)
pipec=$library/../../bin/pipec
scratch=$2
cd "$(dirname "$0")" || exit 1

# cut P OPTION...: layers, parameters and tensors of each chunk; not the rank, which Megatron-LM has of its own.
cut() {
    ranks=$1
    shift
    "$pipec" check --dump=partition written.pipe -D stages="$ranks" "$@" 2>/dev/null | sed 's/ on rank [0-9]*//'
}

# The flags behind `without a layout:`, as options of pipec, one a line.
options_of() {
    sed -n 's/^# the same cut without a layout: //p' "$1" | sed \
        -e 's/--num-virtual-stages-per-pipeline-rank \([0-9]*\) */virtual=\1\n/' \
        -e 's/--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split/account=embedding, loss/' \
        -e 's/--account-for-\([a-z]*\)-in-pipeline-split/account=\1/' \
        -e 's/--decoder-/split=&/' -e 's/--decoder-\([a-z]*\)-pipeline-num-layers/\1/g' -e 's/$/\n/' | grep .
}

same_cut() { # NAME
    if [ -s "$scratch/own" ] && cmp -s "$scratch/own" "$scratch/read"; then echo "ok $1"
    else echo "not ok $1: $(diff "$scratch/own" "$scratch/read" | head -3 | tr '\n' ' ')"; fi
}

# again P OPTION...: what is written of this plan makes its cut. Of two copies of the model one is written.
again() {
    P=$1
    shift
    name="P=$P $(echo "$*" | sed 's/-D //g')"
    "$pipec" inspect written.pipe -D stages="$P" "$@" -o "$scratch/x.layout" >"$scratch/said" 2>&1 ||
        { echo "not ok $name: $(head -1 "$scratch/said")"; return; }
    layout=$(sed -n 's/^--pipeline-model-parallel-layout //p' "$scratch/x.layout")
    cut "$P" -D "split=$layout" >"$scratch/read"
    cut "$P" "$@" | head -"$(wc -l <"$scratch/read")" >"$scratch/own"
    same_cut "$name: $layout"
    options_of "$scratch/x.layout" >"$scratch/options"
    [ -s "$scratch/options" ] || return 0
    grep -q '=[efl]' "$scratch/options" || echo account=none >>"$scratch/options"
    virtual=$(sed -n 's/^virtual=//p' "$scratch/options")
    cut "$P" -D "virtual=${virtual:-1}" -D "$(grep '^[as]' "$scratch/options")" >"$scratch/read"
    same_cut "$name: $(paste -s -d ' ' "$scratch/options")"
}

for P in 1 2 3 4 6; do
    for v in 1 2; do
        for split in even 'even back' balanced; do
            [ "$P$v$split" = '62even back' ] && continue  # wpe in a chunk of its own: there is no layout
            again $P -D virtual=$v -D "split=$split"
        done
    done
done
for v in 1 2 3; do
    for account in none embedding loss embedding,loss; do
        again 2 -D virtual=$v -D "account=$account"
        again 4 -D virtual=$v -D "account=$account"
    done
done
again 4 -D 'split=first 4 last 2'
again 4 -D 'split=first 3'
again 4 -D 'split=last 6'
again 4 -D virtual=2 -D 'split=first 2 last 6'
again 2 -D virtual=2 -D 'split=first 4 last 8'
again 4 -D 'split=[5 0 5 6]'
again 4 -D virtual=2 -D 'split=[3 0 0 0 5 3 0 5]'
again 4 -D 'split=[8 6 1 1]'
again 5 -D 'split=[2 12 0 1 1]'
again 2 -D schedule=zbv -D 'split=[3 5 5 3]'
again 4 -D schedule=dualpipe -D 'split=[3 5 5 3]'
again 4 -D 'split="Et*3|(t*2|)*4,,t|m|L"'
again 1 -D 'split="Et*12L"'
again 3 -D 'split=[["embedding"] + ["decoder"] * 5, 4 * ["decoder"]] + [["Decoder", " decoder "] + ["decoder", "loss"]]'
again 4 -D 'split=[["embedding"], ["decoder"] * 6] + [[]] * 5 + [["decoder"] * 6 + ["loss"]]'

# golden NAME P OPTION...
golden() {
    name=$1
    P=$2
    shift 2
    "$pipec" inspect written.pipe -D stages="$P" "$@" -o "$scratch/$name.layout" 2>&1 || return
    [ -n "$BLESS" ] && command cp "$scratch/$name.layout" "$name.layout"
    if cmp -s "$name.layout" "$scratch/$name.layout"; then echo "ok $name"
    else echo "not ok $name: $(diff "$name.layout" "$scratch/$name.layout" | head -4 | tr '\n' ' ')"; fi
}

golden plain 4 -D account=none
golden groups 4 -D virtual=2 -D 'schedule=interleaved(group = 8)' -D 'split="Et*2|(t|)*5,tt|tttL"'
golden vee 2 -D schedule=zbv -D 'split=[3 5 0 8]'
golden twin 4 -D schedule=dualpipe
golden own 2 -D schedule=naive -D 'placement=[0 0 1 1]' -D 'split=first 4'
golden split 4 -D schedule=zbh1 -D 'split=first 4 last 2'
golden prediction 4 -D microbatches=3 -D 'split="Et*3|(t*2|)*4,,t|m|L"'
golden ends 4 -D 'split=[8 6 1 1]'

# refused NAME TEXT OPTION...
refused() {
    name=$1
    text=$2
    shift 2
    "$pipec" inspect written.pipe "$@" -o "$scratch/none.layout" >"$scratch/said" 2>&1
    if [ $? -eq 1 ] && grep -q "$text" "$scratch/said" && [ ! -e "$scratch/none.layout" ]; then echo "ok $name"
    else echo "not ok $name: $(head -2 "$scratch/said" | tr '\n' ' ')"; fi
}
refused front 'wpe is in chunk 1, but the `E` of a layout' -D 'split=[1 7 4 4]'
refused uneven 'ranks have 1 to 2 chunks' -D stages=2 -D schedule=naive -D 'placement=[0 1 0]'
