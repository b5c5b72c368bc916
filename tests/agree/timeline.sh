#!/bin/sh
# timeline.sh RUNTIME SCRATCH: the timeline of inspect shows every action of its window: with --all all of the plan,
# without it all but those of the columns that it says are not shown.
. "$(dirname "$0")/agree"

# Actions of a text timeline: `rank action`, as 0F0.
shown='
    /^  ?rank [0-9]+ *\|/ || /^. rank [0-9]+ *\|/ {
        line = $0; sub(/^[^|]*\|/, "", line); rank = $0; sub(/^. rank /, "", rank); rank += 0
        count = split(line, word, /[ ,]+/)
        for (i = 1; i <= count; i++) if (word[i] ~ /[FBIW]/) print rank, (word[i] ~ /^[0-9]/ ? "" : rank) word[i]
    }'

# Of the plan, with the column in which each begins: from the Chrome trace, which has microseconds.
planned='
    /"ph":"X"/ && /"pid":0/ {
        match($0, /"name":"[^"]*"/); name = substr($0, RSTART + 8, RLENGTH - 9)
        match($0, /"tid":[0-9]*/); rank = substr($0, RSTART + 6, RLENGTH - 6)
        match($0, /"ts":[0-9.]*/); print rank, name, substr($0, RSTART + 5, RLENGTH - 5) / column
    }'

hidden_plans=0
timeline() { # NAME WORD...
    name=$1
    shift
    : >wrong
    "$pipec" inspect "$@" >window.txt && "$pipec" inspect "$@" --all >all.txt && "$pipec" inspect "$@" -o plan.json ||
        echo refused >>wrong
    awk "$shown" all.txt | sort >all
    column=$(awk '/^ *one column: one chunk/ { print 1000; exit }
        /^ *one column: / { sub(/,$/, "", $4); u["s"] = 1e6; u["ms"] = 1e3; u["us"] = 1; u["ns"] = 1e-3
                            print $3 * u[$4]; exit }' window.txt)
    awk -v column="$column" "$planned" plan.json >plan
    cut -d' ' -f1,2 plan | sort | comm -3 - all | sed 's/^/with --all: /' >>wrong
    grep -q 'are not shown' all.txt && echo '--all hides columns' >>wrong
    # What the window leaves out is what begins in the columns that it names, but for the column's rounded time.
    hidden=$(sed -n 's/^ *(columns \([0-9]*\) to \([0-9]*\) are not shown.*/\1 \2/p' window.txt)
    awk "$shown" window.txt | sort >window
    [ -z "$hidden" ] || hidden_plans=$((hidden_plans + 1))
    awk -v hidden="${hidden:--1 -2}" 'BEGIN { split(hidden, h); from = h[1]; to = h[2] }
        NR == FNR { seen[$0]++; next }
        { key = $1 " " $2; slack = 0.5 + $3 * 1e-4
          if (seen[key] > 1) print key " is shown twice"
          if (!seen[key] && ($3 < from - slack || $3 > to + slack)) print key " in column " $3 " is missing, hidden: " hidden
          if (seen[key] && $3 > from + slack && $3 < to - slack) print key " in column " $3 " is not hidden: " hidden
        }' window plan >>wrong
    verdict "$name"
}

plan() { # FILE LAYERS PIPELINE CLUSTER
    printf 'model m { input x[16]; %s; loss : mse }\npipeline { %s }\n%s\n' "$2" "$3" "$4" >"$1.pipe"
}
plan window 'a : linear(16) * 4' 'stages 4  microbatches 64  schedule 1f1b' 'cluster { forward 1ms  backward 2ms }'
plan unit 'a : linear(16) * 8' 'stages 4  virtual 2  microbatches 64  schedule interleaved' ''
plan unequal 'a : linear(16) * 4' 'stages 4  microbatches 24  schedule 1f1b' \
    'cluster { forward [1us 9ms 300us 2ms]  backward [2us 18ms 1ms 5us]  link 1M }'
plan light 'a : linear(16) * 2; b : linear(512); c : linear(512); d : linear(16)' \
    'stages 2  virtual 2  microbatches 40  schedule interleaved' 'cluster { flops 1G  link 1M  latency 20us }'

for micros in 3 40 55 56 57 64 100 300; do
    timeline "M = $micros" window.pipe -D microbatches=$micros
done
timeline "two chunks, in units" unit.pipe
timeline "in units, many" unit.pipe -D microbatches=200
for schedule in 1f1b gpipe zbh2 naive eager; do
    timeline "unequal chunks, $schedule" unequal.pipe -D schedule=$schedule
done
timeline "unequal chunks, many" unequal.pipe -D microbatches=150
timeline "unequal chunks, cuda" unequal.pipe --target cuda
timeline "light chunks" light.pipe
timeline "light chunks, many" light.pipe -D microbatches=200 -D schedule=bfs
[ $hidden_plans -ge 4 ] && echo "ok $hidden_plans plans hide columns" || echo "not ok only $hidden_plans plans hide columns"
