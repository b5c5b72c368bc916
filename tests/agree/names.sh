#!/bin/sh
# names.sh RUNTIME SCRATCH: one figure has one name, and one name one figure, within what inspect prints: the heaviest
# rank is the busiest of the table of ranks, and `auto` says one makespan and one bubble.
. "$(dirname "$0")/agree"

plan() { # FILE LAYERS PIPELINE CLUSTER
    printf 'model m { input x[16]; %s; loss : mse }\npipeline { %s }\ncluster { %s }\n' "$2" "$3" "$4" >"$1.pipe"
}

# ---- the heaviest rank ----

# heaviest NAME FILE WORD...: the one that is busiest, by so much.
heaviest() {
    name=$1
    shift
    "$pipec" inspect "$@" >said 2>&1
    awk '
        function seconds(number, unit) { return number * (unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9) }
        /^rank  busy/ { ranks = 1; next }
        ranks && !/^ *[0-9]+  / { ranks = 0 }
        ranks { busy[$1] = seconds($2, $3); sum += busy[$1]; count++ }
        /^every rank has the same work$/ { same = 1 }
        /^heaviest rank: / { sub(/,/, "", $3); heaviest = $3; times = $5; cost = seconds($(NF - 1), $NF) }
        / by operations/ { print "the file gives times, and operations are counted" }
        END {
            if (!count || (heaviest == "" && !same)) print "no heaviest rank"
            mean = sum / count
            for (r in busy) {
                if (heaviest != "" && busy[r] > busy[heaviest] * 1.0002) print r " is busier than " heaviest
                if (same && (busy[r] > mean * 1.0002 || busy[r] < mean * 0.9998)) print "not the same work: rank " r
            }
            off = heaviest == "" ? 0 : busy[heaviest] / mean - times
            if (off > 0.006 || off < -0.006) print "rank " heaviest " has " busy[heaviest] / mean " of the mean, said " times
            off = heaviest == "" ? 0 : busy[heaviest] - mean - cost
            if (off > 2e-4 * busy[heaviest] || off < -2e-4 * busy[heaviest]) print "it costs " busy[heaviest] - mean " s"
        }' said >wrong
    verdict "the heaviest rank, $name"
}

times='forward [1ms 9ms]  backward [2ms 18ms]'
plan given 'a : linear(16) * 4' 'stages 2  microbatches 8  schedule 1f1b  split [3 1]' "$times"
heaviest "by times, against the split" given.pipe
grep -q '^heaviest rank: 1,' said && echo "ok rank 1, which is idle least" || echo "not ok $(grep heaviest said)"
plan other 'a : linear(16) * 4; b : linear(400); c : linear(16)' \
    'stages 2  virtual 2  microbatches 8  schedule interleaved  split [1 1 3 1]' \
    'forward [1ms 2ms 7ms 1ms]  backward [9ms 3ms 2ms 1ms]  link 1M'
heaviest "by times, two chunks" other.pipe
heaviest "by times, two chunks, cuda" other.pipe --target cuda
heaviest "by times, a vee" other.pipe -D schedule=zbv
heaviest "by times, two copies" given.pipe -D schedule=chimera
plan flops 'a : linear(16) * 4; b : linear(400); c : linear(16)' 'stages 3  microbatches 4  schedule 1f1b' 'flops 1M'
heaviest "by flops" flops.pipe
heaviest "by unequal flops" flops.pipe -D 'flops=[3M 1M 9M]'
heaviest "balanced, by unequal flops" flops.pipe -D 'flops=[3M 1M 9M]' -D split=balanced
plan equal 'a : linear(16) * 8' 'stages 4  microbatches 4  schedule gpipe' 'forward 1ms  backward 2ms'
heaviest "none" equal.pipe

# ---- auto ----

# A figure behind a name: `makespan 33 ms` and `searched: makespan ... -> 33 ms`; `bubble of the makespan: 12.00 %`.
searched() {
    name=$1
    shift
    "$pipec" inspect "$@" >said 2>&1
    awk '
        function say(name, figure) {
            if ((name in is) && is[name] != figure) print name ": " is[name] " and " figure
            is[name] = figure
        }
        /^makespan / { line = $0; sub(/^makespan /, "", line); sub(/,.*/, "", line); say("makespan", line) }
        /^searched: / {
            line = $0; sub(/^searched: /, "", line)
            what = line ~ /^makespan / ? "makespan" : "longest own span"
            sub(/;.*/, "", line)
            if (line ~ / -> /) sub(/.* -> /, "", line); else sub("^" what " ", "", line)
            sub(/ within .*/, "", line)
            say(what, line); found++
        }
        { line = $0
          while (match(line, /bubble (by the textbook|of the makespan|of each rank.s own span)[^:]*: *[0-9.]+ %/)) {
              text = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
              split(text, half, /: */); say(half[1], half[2]) } }
        END {
            if (found != 1) print found + 0 " lines of the search"
            if (is["makespan"] == "" || is["bubble of the makespan"] == "") print "no makespan, or no bubble"
        }' said >wrong
    # The bubble that is named is that of the table of ranks.
    awk '/^bubble of the makespan: / { said = $5 }
         /^rank  busy/ { ranks = 1; next }
         ranks && !/^ *[0-9]+  / { ranks = 0 }
         ranks { for (i = 1; $i != "%"; i++); sum += $(i - 1); count++ }
         END { off = sum / count - said; if (off > 0.02 || off < -0.02) print "bubble " said " %, by ranks " sum / count " %" }' \
        said >>wrong
    grep textbook said >>wrong  # it is an order of no textbook
    verdict "auto, $name"
}
plan auto 'a : linear(16) * 8' 'stages 4  microbatches 6  schedule auto' 'forward 1ms  backward 2ms  latency 1ms'
searched cpu auto.pipe -D 'schedule=auto(effort = 1)'
searched cuda auto.pipe --target cuda -D 'schedule=auto(effort = 1)'
searched "the span" auto.pipe -D 'schedule=auto(effort = 1, span = 1)'
searched "within memory" auto.pipe -D 'schedule=auto(effort = 1, memory = 46k)'
searched "a vee" auto.pipe -D 'schedule=auto(effort = 1)' -D virtual=2 -D placement=vee
