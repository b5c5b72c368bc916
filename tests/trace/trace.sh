#!/bin/sh
# trace.sh LIBRARY SCRATCH: what `run --trace` records of real runs, and what
# `inspect --measured` makes of it.
# alone: one run has 0.7 s for its first step
pipec=$1/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1
model=$here/trace.pipe

verdict() { [ "$2" -eq 0 ] && echo "ok $1" || echo "not ok $1: $(head -3 log | tr '\n' '|')"; }

# traced NAME OPTION...: NAME.trace of a run, checked against its plan.
traced() {
    name=$1
    shift
    # shellcheck disable=SC2086
    "$pipec" check "$model" --dump=memory $plan >plan &&
        "$pipec" run "$model" -o out $plan --trace "$name.trace" "$@" >run.log 2>log &&
        bubble=$(sed -n 's/^done: .*bubble \([0-9.-]*\) .*/\1/p' run.log) &&
        awk -v STEPS=5 -v BUBBLE="$bubble" -f "$here/check.awk" plan "$name.trace" >log 2>&1
    verdict "$name" $?
}
for case in "1f1b 4 1" "gpipe 3 1" "interleaved 2 2" "naive 4 1" "1f1b 1 1"; do
    # shellcheck disable=SC2086
    set -- $case
    plan="-D schedule=$1 -D stages=$2 -D virtual=$3"
    traced "$1-$2"
    traced "$1-$2-shaken" --delay 300
done

# A trace changes no result.
plan=""
"$pipec" run "$model" -o out --quiet --losses plain >log 2>&1
"$pipec" run "$model" -o out --quiet --losses traced --trace x.trace >>log 2>&1
cmp plain traced >>log 2>&1
verdict same-losses $?

# Only the last steps are kept where all are too many: 512 Ki events per rank.
cat >long.pipe <<'END'
model m {
    input points[1]
    a : linear(1)
    loss : mse
}
pipeline { stages 1 microbatches 64 rows 1 schedule 1f1b }
train { data numbers "points" optimizer sgd(lr = 0.1) steps 5000 }
END
echo 1 2 3 4 >points
"$pipec" run long.pipe -o long --quiet --trace long.trace >log 2>&1 &&
    awk '!/^#/ { n++; if (!first) first = $2; last = $2 }
         END { print first, last, n; exit !(first == 905 && last == 5000 && n == 4096 * 128) }' long.trace >>log
verdict last-steps $?

# Stopped by Ctrl-C: all steps that were done, each whole.
timeout --foreground -s INT 0.7 "$pipec" run "$model" -o out --steps 1000000 --trace stopped.trace >run.log 2>log
"$pipec" check "$model" --dump=memory >plan
done=$(sed -n 's/^stopped after \([0-9]*\) .*/\1/p' run.log)
[ "${done:-0}" -gt 0 ] && awk -f "$here/check.awk" plan stopped.trace >log 2>&1 &&
    [ "$(tail -1 stopped.trace | cut -d' ' -f2)" = "$done" ]
verdict stopped $?

# ---- Chrome's form ----

"$pipec" run "$model" -o out --quiet --trace t.json >log 2>&1
if command -v python3 >/dev/null; then
    python3 - t.json "$(grep -cv '^#' x.trace)" >>log 2>&1 <<'END'
import json, sys
trace = json.load(open(sys.argv[1]))
events = trace["traceEvents"]
slices = [e for e in events if e["ph"] == "X"]
assert len(slices) == int(sys.argv[2]), len(slices)
assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in slices)
assert sorted(e["args"]["name"] for e in events if e["name"] == "thread_name") == [f"rank {r}" for r in range(4)]
assert [e["name"] for e in events if e["ph"] == "i"] == [f"step {s}" for s in range(1, 6)]
starts = {e["id"]: e for e in events if e["ph"] == "s"}
ends = {e["id"]: e for e in events if e["ph"] == "f"}
receives = [e for e in slices if e["cat"].startswith("RECV")]
assert len(starts) == len(ends) == len(receives) > 0
for i, start in starts.items():
    end = ends[i]
    assert end["ts"] >= start["ts"] and end["tid"] != start["tid"] and end["name"] == start["name"]
    for flow, cat in ((start, "SEND"), (end, "RECV")):
        assert any(s["tid"] == flow["tid"] and s["cat"].startswith(cat) and
                   s["ts"] - 1e-6 <= flow["ts"] <= s["ts"] + s["dur"] + 1e-6 for s in slices), flow
END
    verdict chrome $?
fi
"$pipec" run "$model" -o out --quiet --trace t.txt >log 2>&1
[ $? -eq 2 ] && grep -q 'ends in .json or .trace' log
verdict wrong-suffix $?
"$pipec" run "$model" -o out --quiet --trace no/t.trace >log 2>&1
[ $? -eq 1 ] && grep -q 'cannot write no/t.trace' log
verdict cannot-write $?
"$pipec" run "$model" -o out --target cuda --trace t.trace >log 2>&1
[ $? -eq 2 ] && grep -q 'of the cpu' log
verdict no-cuda $?

# ---- read again ----

"$pipec" inspect "$model" --measured x.trace >text 2>log && cp text log && grep -q '^planned$' text &&
    grep -q '^measured: step [2-5], the median of 4$' text && [ "$(grep -c '^  rank 0  |' text)" -ge 2 ] &&
    grep -q 'bubble of the makespan: planned .*measured' text &&
    [ "$(sed -n '/^rank  action/,/^$/p' text | wc -l)" = 7 ]
verdict measured-text $?
# What was measured, as costs of a plan.
grep -v '^cluster' "$model" >again.pipe && grep '^cluster {' text >>again.pipe &&
    "$pipec" inspect again.pipe >again 2>log && grep -q "by the cluster's times, link and latency" again
verdict measured-costs $?
for suffix in html svg json txt; do
    "$pipec" inspect "$model" --measured x.trace -o "m.$suffix" >log 2>&1 && grep -q measured "m.$suffix"
    verdict "measured-$suffix" $?
done
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys, xml.dom.minidom
events = json.load(open("m.json"))["traceEvents"]
assert {e["pid"] for e in events if e["ph"] == "X"} >= {0, 2}, "the plan and what was measured"
assert len({e["id"] for e in events if e["ph"] == "s"}) == sum(e["ph"] == "s" for e in events)
xml.dom.minidom.parse("m.svg")' >log 2>&1
    verdict measured-valid $?
fi

# refuses NAME TEXT: bad.trace is refused with this text.
refuses() {
    "$pipec" inspect "$model" --measured bad.trace >log 2>&1
    [ $? -eq 1 ] && grep -q "$2" log
    verdict "$1" $?
}
sed 5d x.trace >bad.trace
refuses lacks-a-line 'bad.trace:[0-9]*: error: .* this plan has [0-9]* in each step'
awk 'NR == 6 { $4 = 0 } { print }' x.trace >bad.trace
refuses other-order 'bad.trace:6: error: .* begins before .* ends: not the order of this plan'
sed '5p;6d' x.trace >bad.trace
refuses twice 'bad.trace:6: error: .* a second time, after line 5'
sed '3s/[0-9]*F[0-9]*/0F99/' x.trace >bad.trace
refuses unknown-action 'bad.trace:3: error: rank 0 has no action'
sed '4s/^0/1/' x.trace >bad.trace
refuses other-rank 'bad.trace:4: error: rank 1 has no action'
sed '7s/$/ 1/' x.trace >bad.trace
refuses six-words 'bad.trace:7: error: not `rank step action'
sed '7s/[0-9]*$/-1/' x.trace >bad.trace
refuses negative 'bad.trace:7: error: not `rank step action'
sed '9s/[0-9]*$/0/' x.trace >bad.trace
refuses backwards 'bad.trace:9: error: the action ends before it begins'
head -c -5 x.trace >bad.trace
refuses cut-off 'bad.trace:[0-9]*: error: the line is not complete'
sed 1d x.trace >bad.trace && "$pipec" inspect "$model" --measured bad.trace >other 2>log &&
    "$pipec" inspect "$model" --measured x.trace >text 2>log && sed 's/bad[.]trace/x.trace/' other | cmp - text >log
verdict no-format $?
head -1 x.trace >log && grep -q '^# pipec trace 1: ' log
verdict format $?
sed '1s/trace 1/trace 2/' x.trace >bad.trace
refuses later-format 'bad.trace:1: error: a trace of format 2, and this pipec reads up to 1'
echo '# nothing' >bad.trace
refuses empty 'error: no action is recorded here'
cp t.json bad.trace
refuses chrome-form 'bad.trace:1: error: this is no .trace'
rm bad.trace
refuses no-file 'cannot read bad.trace'
"$pipec" inspect "$model" -D microbatches=5 --measured x.trace >log 2>&1
[ $? -eq 1 ] && grep -q 'in this plan' log
verdict other-plan $?
"$pipec" inspect "$model" --measured x.trace -o m.csv >log 2>&1
[ $? -eq 1 ] && grep -q 'holds no times' log
verdict no-csv $?
"$pipec" check "$model" --measured x.trace >log 2>&1
[ $? -eq 2 ]
verdict inspect-alone $?
