#!/bin/sh
# bend.sh RUNTIME SCRATCH: one edge of the kept graph is bent in a pipec of its own (bend.c), and every output says
# something else than before, all of them the same: whoever had found the edge for himself would not. Of nothing bent,
# with all times found anew through the kept edges, every output is the same to the byte.
# needs: build/tests/agree/bend
. "$(dirname "$0")/agree"
plain=$pipec
bent=${pipec%bin/pipec}tests/agree/bend
[ -x "$bent" ] || { echo "not ok no $bent"; exit 1; }

cat >m.pipe <<'END'
model m { input x[16]; a : linear(16) * 12; loss : mse }
pipeline { stages 2  microbatches 6  schedule gpipe }
cluster { forward 1ms  backward 1ms }
END

# Every output of a plan, each in a file of the folder.
outputs() { # FOLDER WORD...
    folder=$1
    shift
    mkdir -p "$folder"
    "$pipec" inspect "$@" >"$folder/inspect"
    "$pipec" explain "$@" r0@2.5ms --all >"$folder/explain"
    "$pipec" inspect "$@" -o "$folder/html.html"
    "$pipec" inspect "$@" -o "$folder/svg.svg"
    "$pipec" inspect "$@" -o "$folder/json.json"
    "$pipec" compare "$@" --schedule gpipe,naive --virtual 1 >"$folder/compare"
    "$pipec" compare "$@" --schedule gpipe,naive --virtual 1 --csv >"$folder/compare.csv"
    "$pipec" compare "$@" --schedule gpipe,naive --virtual 1 --json >"$folder/compare.json"
    "$pipec" diff "$@" --schedule gpipe,naive >"$folder/diff"
    "$pipec" diff m.pipe "$@" >"$folder/diff.files"
}

# bends HOW WORD...: with this edge bent all outputs are others, and agree.
bends() {
    how=$1
    shift
    pipec=$plain
    outputs plain "$@"
    pipec=$bent
    export BEND=none
    outputs none "$@"
    export BEND="$how"
    outputs bent "$@"
    for output in plain/*; do
        output=${output#plain/}
        cmp -s "plain/$output" "none/$output" && [ -s "plain/$output" ] && echo "ok $how: $output, nothing bent" ||
            echo "not ok $how: $output is another, though nothing is bent"
        cmp -s "plain/$output" "bent/$output" && echo "not ok $how: $output does not know the edge" ||
            echo "ok $how: $output"
    done
    # One makespan, of all of them.
    : >wrong
    figures plan "$@"
    step=$(awk "$cut_csv"' { cut($0) } f[1] == "gpipe" { printf "%.4g ms\n", f[8] }' bent/compare.csv)
    echo "compare $step" >>plan.said
    echo "explain $(sed -n 's/^the longest path through .* of the step.s \([^;]*\); .*/\1/p' bent/explain)" >>plan.said
    echo "trace $(awk -v last="$(last_end plan.json)" 'BEGIN { printf "%.4g ms\n", last / 1000 }')" >>plan.said
    sed 's/^[^ ]* //' plan.said | sort -u >figures
    [ "$(wc -l <figures)" = 1 ] || tr '\n' ' ' <plan.said >>wrong
    verdict "$how: one makespan, $(cat figures)"
    agree "$how" "$@"
    unset BEND
    pipec=$plain
}
bends wire m.pipe -D link=20k
bends post m.pipe --target cuda -D latency=5ms -D 'forward=[2ms 1ms]'
bends arrival m.pipe -D latency=1ms
bends arrival m.pipe --target cuda -D latency=1ms -D schedule=gpipe -D link=50k

# ---- a measured page: of a trace that has the times of the plan ----

set -- m.pipe -D link=10k -D microbatches=8
"$plain" check "$@" --dump=prove | awk -f "$here/trace.awk" >t.trace
: >wrong
"$plain" inspect "$@" --measured t.trace -o plain.html 2>>wrong
for how in none wire; do
    BEND=$how "$bent" inspect "$@" --measured t.trace -o $how.html 2>>wrong
    awk -f "$here/page.awk" $how.html | awk '$1 == 1 { print $3, $5, $6 }' >$how.causes
done
cmp plain.html none.html >>wrong 2>&1
[ "$(wc -l <none.causes)" = 32 ] || echo "no measured plan" >>wrong
cmp -s none.causes wire.causes && echo "the measured causes do not know the edge" >>wrong
verdict "wire: causes of a measured page"
