#!/bin/sh
# nonfinite.sh LIBRARY SCRATCH: a loss, a norm or a parameter that is no number ends the job at its step, with its
# name, and leaves an earlier save; `on nonfinite skip` leaves such steps out, with the bits of one rank for any number
# of ranks.
pipec=$1/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1
. "$here/same"

cat >m.pipe <<'END'
model m {
    input points[2]
    a : linear(6)
    b : relu
    c : linear(5)
    d : linear(1)
    loss : mse
}
pipeline { stages 4 microbatches 4 rows 2 schedule 1f1b }
train { data numbers "points" optimizer adamw(lr = 0.01) steps 40 seed 3 }
END
# Of 60 records one has a target whose loss is infinite.
awk 'BEGIN { for (i = 0; i < 60; i++) print i / 60, 1 - i / 60, i == 20 ? "1e30" : i / 30 }' >points

verdict() { [ "$2" -eq 0 ] && echo "ok $1" || echo "not ok $1: $(tail -3 log | tr '\n' '|')"; }
train() { timeout 60 "$pipec" run m.pipe -o out --quiet "$@" >log 2>&1; }

# stops NAME TEXT OPTION...: with status 1, that line, and the save as it was
train --steps 1 --save good && cp -R good kept
verdict good $?
stops() {
    name=$1 text=$2
    shift 2
    train --save good --losses "$name.losses" "$@"
    [ $? = 1 ] && grep -q "pprun: error: $text" log && diff -r good kept >>log && [ "$(find good -name '*.new' | wc -l)" = 0 ]
    verdict "$name" $?
}
train -D 'on=nonfinite skip' --losses skipped
micro=2
first=$(sed -n 's/.*the first of them step \([0-9]*\):.*/\1/p' log)
[ "${first:-0}" -gt 1 ] && grep -q "^pprun: note: [0-9]* of 40 steps were left out, the first of them step $first: " log
verdict skipped $?
for shape in 4-1f1b 2-gpipe 1-naive; do
    stops "loss-$shape" "rank [0-9] failed.*: the loss of micro-batch $micro of step $first is infinite: the first layer whose output is no number is loss; .on nonfinite skip" \
        -D stages=${shape%-*} -D schedule=${shape#*-}
    [ "$(wc -l <"loss-$shape.losses")" = $((first - 1)) ] && cmp -s "loss-$shape.losses" "loss-4-1f1b.losses"
    verdict "loss-$shape-steps" $?
done

# One layer's weights are changed in the programs: patched FOLDER LAYER VALUE OPTION...
library=$1
patched() {
    folder=$1 layer=$2 value=$3
    shift 3
    "$pipec" build m.pipe -o "$folder" "$@" >log 2>&1 || return 1
    sed -i "s/pp_normal(m + ${layer}_weight, \([0-9]*\), .*/pp_fill(m + ${layer}_weight, \1, $value);/" "$folder"/rank*.c
    for source in $(grep -lF ", $value);" "$folder"/rank*.c); do
        ${CC:-cc} -std=c11 -O1 -I"$library" "$source" -o "${source%.c}" "$library/libpp.a" -ldnnl -lgomp -lm || return 1
    done
}

# said NAME RANKS TEXT OPTION...: those programs end with that line, and status 1
said() {
    name=$1 ranks=$2 text=$3
    shift 3
    timeout 60 "$library/pprun" --quiet "$@" "$ranks" "$name/rank" >log 2>&1
    [ $? = 1 ] && grep -q "rank [0-9] failed.*: $text; .on nonfinite skip" log
    verdict "$name" $?
    rm -rf "$name"
}

# A layer that puts out what is no number is named, whichever rank has it.
for shape in 4-zbh1 2-1f1b 4-dualpipe; do
    for layer in a c; do
        patched "layer-$shape-$layer" $layer '1e38f * 1e38f' -D stages="${shape%-*}" -D schedule="${shape#*-}"
        said "layer-$shape-$layer" "${shape%-*}" \
            "the loss of micro-batch 0 of step 1 is [a-z]*: the first layer whose output is no number is $layer"
    done
done

# The loss is a number, but the norm of the gradients is not, though each of them is; the first weight has the most.
sed 's/1e30/1/; 41s/^[^ ]*/6e19/' points >large
norm='the norm of the gradients of step [0-9]* is infinite, by that of'
for clip in 1 '1 deferred'; do
    stops "norm-clip-$clip" "rank [0-9] failed.*: $norm a.weight; .on" -D data=large -D 'optimizer=sgd(lr = 0)' -D "clip=$clip"
    sed "s/.*: the norm/the norm/" log | head -1 >"norm-$clip"
done
cmp -s norm-1 'norm-1 deferred'
verdict norm-deferred $?
# One gradient is infinite, by one micro-batch.
sed 's/1e30/1/; 41s/^[^ ]*/1e25/' points >larger
sed 's/1e30/1/; 41s/[^ ]*$/1e30/' points >lost
train -D data=lost
micro=$(sed -n 's/.*the loss of micro-batch \([0-3]\) of step 2 is infinite: .*/\1/p' log)
for shape in 4-zbh1 1-naive; do
    patched "gradient-$shape" d 1e-10f -D stages="${shape%-*}" -D schedule="${shape#*-}" -D clip=1 -D 'optimizer=sgd(lr = 0)'
    said "gradient-$shape" "${shape%-*}" "$norm d.weight in micro-batch ${micro:-?}" --data larger
done

# The last update of all: its loss was a number, and nobody looks at what it left.
awk '{ print "1e16", "1e16", "1e18" }' points >huge
stops parameter 'rank [0-9] failed.*: [abcd][.a-z]* is no number after step 1: nothing is saved' -D data=huge --steps 1 \
    -D 'optimizer=sgd(lr = 1e6, momentum = 0, decay = 0)'

# ---- skip ----

skip() {
    name=$1
    shift
    train -D 'on=nonfinite skip' --losses "$name.losses" --save "$name.weights" "$@" || verdict "$name" 1
}
for clip in 0 0.5; do
    skip "one-$clip" -D stages=1 -D schedule=naive -D "clip=$clip"
    awk '{ bad += $2 !~ /^[0-9.e+-]*$/ || $3 !~ /^[0-9.e+-]*$/ } END { exit !(bad >= 2 && bad < 30) }' "one-$clip.losses"
    verdict "one-$clip-leaves-out" $?
    for shape in 2-1f1b 4-1f1b 4-gpipe 4-zbh1; do
        skip "$shape-$clip" -D stages=${shape%-*} -D schedule=${shape#*-} -D "clip=$clip" --delay 100
        same "one-$clip" "$shape-$clip"
    done
done
skip sgd-one -D stages=1 -D schedule=naive -D 'optimizer=sgd(lr = 0.01, momentum = 0.9)'
skip sgd -D 'optimizer=sgd(lr = 0.01, momentum = 0.9)' && same sgd-one sgd

# A step that is left out changes nothing: one step, and it is bad.
awk '{ print $1, $2, "1e30" }' points >bad
skip nothing -D data=bad --steps 1
skip untrained -D data=bad --steps 0
if ./compare nothing.weights untrained.weights >log 2>&1; then echo "ok nothing"; else verdict nothing 1; fi
