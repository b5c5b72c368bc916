#!/bin/sh
# makespans.sh RUNTIME SCRATCH: a plan has one makespan, whoever says it: inspect, explain, the pictures, diff, the
# Chrome trace, and the row of compare in each of its forms; and every time up to it is a place for explain.
. "$(dirname "$0")/agree"

cat >m.pipe <<'END'
model m { input x[16]; a : linear(16) * 12; loss : mse }
pipeline { stages 2  virtual 1  microbatches 4 }
cluster { forward 1ms  backward 2ms }
END

one_plan() { # SCHEDULE P V M STEP_MS WORD...
    schedule=$1 stages=$2 virtual=$3 micros=$4 step=$5
    shift 5
    set -- m.pipe -D "schedule=$schedule" -D "stages=$stages" -D "virtual=$virtual" -D "microbatches=$micros" "$@"
    figures plan "$@"
    last=$(last_end plan.json)
    for eighth in 0 3 7 8; do
        at=$(awk -v last="$last" -v k=$eighth 'BEGIN { printf "%.12g", last * k / 8 }')
        rank=$((eighth % stages))
        "$pipec" explain "$@" "r$rank@${at}us" >explained 2>&1 || echo "$*: r$rank@${at}us: $(head -1 explained)" >>wrong
        sed -n 's/^the longest path through .* of the step.s \([^;]*\); .*/explain \1/p' explained |
            grep . >>plan.said || echo "$*: explain says no step" >>wrong
    done
    awk -v step="$step" -v last="$last" -v what="$*" '
        { figure = $2 " " $3; said[$1]++ }
        figure != first && first != "" { print what ": " $0 ", but " first }
        first == "" { first = figure; unit = $3 == "s" ? 1000 : 1; number = $2 }
        END {
            if (said["inspect"] != 1 || said["svg"] < 1 || said["html"] != 1 || said["json"] != 1 ||
                said["diff"] != 2 && said["diff"] != 0 || said["explain"] != 4) print what ": an output says nothing"
            if (sprintf("%.4g", step / unit) != number "") print what ": compare has " step " ms, inspect " first
            off = last / 1000 - step; if (off < 0) off = -off
            if (off > 6e-9 * step) print what ": the trace ends at " last " us, compare has " step " ms"
        }' plan.said >>wrong
}

lists="--stages 2,3 --virtual 1,2 --microbatches 4,5"
: >wrong
plans=0
for target in cpu cuda; do
    turn=0
    for network in "-D latency=8ms" "-D link=20k" "-D link=32k -D latency=1.5ms"; do
        # shellcheck disable=SC2086
        "$pipec" compare m.pipe $lists --target $target $network --csv >rows.csv &&
            "$pipec" compare m.pipe $lists --target $target $network --json >rows.json &&
            "$pipec" compare m.pipe $lists --target $target $network >rows.txt || echo "compare fails" >>wrong
        # One step in three forms.
        sed -n 's/.*"step": \([^,]*\),.*/\1/p' rows.json >steps.json
        awk -F, 'NR > 1 && $8 != "" { print $8 }' rows.csv >steps.csv
        awk '/^. +[a-z0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ / { for (i = 1; i <= NF; i++) if ($i == "ms" || $i == "s") {
            print $(i - 1) * ($i == "s" ? 1000 : 1); break } }' rows.txt >steps.txt
        awk '{ printf "%.4g\n", $1 }' steps.csv >steps.short
        awk '{ printf "%.4g\n", $1 }' steps.txt >steps.shown
        cmp steps.json steps.csv >>wrong 2>&1
        cmp steps.shown steps.short >>wrong 2>&1
        # Each third plan in each network.
        awk -F, -v turn=$turn 'NR > 1 && $8 != "" && n++ % 3 == turn { print $1, $2, $3, $4, $8 }' rows.csv >rows
        turn=$((turn + 1))
        while read -r schedule stages virtual micros step; do
            # shellcheck disable=SC2086
            one_plan "$schedule" "$stages" "$virtual" "$micros" "$step" --target $target $network
            plans=$((plans + 1))
        done <rows
    done
done
[ $plans -ge 100 ] || echo "only $plans plans" >>wrong
verdict "one makespan in every output, $plans plans"

# Of a plan whose clocks differed: by 6 ms in explain.
: >wrong
set -- m.pipe --target cuda -D schedule=bfs -D virtual=2 -D latency=8ms
for time in 0 10 81 82; do
    "$pipec" explain "$@" "r0@$time" >/dev/null 2>>wrong
done
"$pipec" explain "$@" r0@82.001 >/dev/null 2>&1 && echo "r0@82.001 is behind the step" >>wrong
"$pipec" inspect "$@" | grep -q '^makespan 82 ms,' || echo "inspect: not 82 ms" >>wrong
verdict "every time of the step is a place"
