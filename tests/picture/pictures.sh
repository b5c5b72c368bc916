#!/bin/sh
# pictures.sh RUNTIME SCRATCH: `pipec inspect X.pipe -o X.suffix`. The files in expected/ are compared byte for byte
# (`PICTURE_BLESS=yes sh tests/picture/pictures.sh build/lib/pipec /tmp/scratch` rewrites them); what is true of every
# picture is checked on larger plans; the page is opened in Chromium where there is one.
pipec=$(cd "$1" && pwd)/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2" && cd "$2" || exit 1
ok() { echo "ok $1"; }
not_ok() { echo "not ok $*"; }
check() { # NAME COMMAND...: the command succeeds
    name=$1
    shift
    if "$@" >complaint 2>&1; then ok "$name"; else not_ok "$name" "$(head -c 300 complaint | tr '\n' '|')"; fi
}
draw() { "$pipec" inspect "$@"; }
has() { command -v "$1" >/dev/null 2>&1; }

# ---- goldens ----

golden() { # NAME.SUFFIX OPTION...
    name=$1
    file=${name%%[.-]*}.pipe
    shift
    draw "$here/$file" -o "$name" "$@" >said 2>&1 || { not_ok "$name" "$(head -c 300 said)"; return; }
    [ -n "$PICTURE_BLESS" ] && cp "$name" "$here/expected/$name"
    check "$name" cmp "$name" "$here/expected/$name"
}
golden unit.svg
golden unit.json
golden unit.csv
golden unit.txt
golden unit-comms.csv --comms
golden cluster.svg
golden cluster-arrows.svg --arrows
golden cluster.json
golden cluster-comms.csv --comms

draw "$here/unit.pipe" >plain
check text-is-inspect cmp unit.txt plain
printf '0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\r\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\r\n' >published
check csv-is-the-published-vector cmp unit.csv published

# ---- every picture ----

cat >large.pipe <<'END'
model chain {
    input tokens[2] of 4
    e : embedding(4)
    h : linear(4) * 31
    loss : cross_entropy
}
pipeline { stages 8  virtual 4  microbatches 16  schedule interleaved }
END
for suffix in svg html json csv txt; do
    draw large.pipe -o once.$suffix && draw large.pipe -o twice.$suffix
    check deterministic-$suffix cmp once.$suffix twice.$suffix
done
for suffix in svg html json; do
    check cost-model-$suffix grep -q 'cost model: in forwards of one chunk, F 1, B 2, a message 0' once.$suffix
done
check no-network sh -c '! grep -E "(src|href)=|import |fetch\(|url\(|XMLHttp" once.html'
has xmllint && check svg-is-xml xmllint --noout once.svg unit.svg cluster.svg cluster-arrows.svg

# ---- files that cannot be written ----

draw "$here/unit.pipe" -o picture.png >said 2>&1
check unknown-suffix grep -q 'use .svg, .html, .json' said
draw "$here/unit.pipe" -o none/there.svg >said 2>&1
check no-folder grep -q 'cannot write none/there.svg: No such file or directory' said
echo old >kept.svg
if [ "$(ulimit -f)" = unlimited ]; then
    sh -c 'ulimit -f 1; trap "" XFSZ; "$0" inspect large.pipe -o kept.svg' "$pipec" >said 2>&1
    check failure-is-said grep -q 'cannot write kept.svg: File too large' said
    check old-file-stays grep -q old kept.svg
    check nothing-is-left sh -c '! ls kept.svg.*'
fi

# ---- the trace, against what it must hold ----

cat >trace.py <<'END'
import bisect, collections, json, sys
trace = json.load(open(sys.argv[1]))
ranks, chunks, micros, message, peaks = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), sys.argv[6:]
events = [e for e in trace['traceEvents'] if e['ph'] != 'M']
times = [e['ts'] for e in events]
assert times == sorted(times), 'events are not in order of time'
rows = collections.defaultdict(list)
for e in events:
    if e['ph'] == 'X':
        rows[e['tid']].append(e)
assert len(rows) == ranks and sum(map(len, rows.values())) == 2 * chunks * micros
for row in rows.values():
    for a, b in zip(row, row[1:]):
        assert a['ts'] + a['dur'] <= b['ts'] + 2e-6, (a, b)
first = {e['name']: e for row in rows.values() for e in row}
begun = first['0F0']['ts'] + first['0F0']['dur'] + message
assert abs(first['1F0']['ts'] - begun) < 2e-6, 'rank 1 starts when 0F0 has come, no later'
starts = {e['id']: e for e in events if e['ph'] == 's'}
ends = {e['id']: e for e in events if e['ph'] == 'f'}
assert starts.keys() == ends.keys() and len(starts) == 2 * (chunks - 1) * micros
for id, s in starts.items():
    assert s['tid'] != ends[id]['tid'] and s['ts'] <= ends[id]['ts']
    row = rows[s['tid']]
    inside = row[bisect.bisect_right([e['ts'] for e in row], s['ts']) - 1]
    assert inside['ts'] <= s['ts'] < inside['ts'] + inside['dur'], 'a flow leaves from a slice'
most = collections.Counter()
for e in events:
    if e['ph'] == 'C':
        most[e['tid']] = max(most[e['tid']], e['args']['alive'])
assert [str(most[r]) for r in range(ranks)] == peaks, 'the curve reaches what inspect says is alive'
END
peaks() { draw "$1" | awk '/^rank/ { on = 1; next } !/^ *[0-9]/ { on = 0 } on { print $NF }'; }
if has python3; then
    # shellcheck disable=SC2046
    check trace-unit python3 trace.py unit.json 2 2 4 0 $(peaks "$here/unit.pipe")
    # shellcheck disable=SC2046
    check trace-large python3 trace.py once.json 8 32 16 0 $(peaks large.pipe)
    # 2 rows of 32 positions of 64 floats at 100 MB/s, and 20 us
    # shellcheck disable=SC2046
    check trace-cluster python3 trace.py cluster.json 3 6 6 183.84 $(peaks "$here/cluster.pipe")
fi

# ---- the page ----

cat >page.py <<'END'
import json, re, sys
text = open(sys.argv[1]).read()
plan = json.loads(re.search(r'<script type="application/json" class="plan">(.*?)</script>', text, re.S).group(1))
number = 0
for row in plan['rows']:
    assert len(row['a']) == len(row['g']) == len(row['d']) == len(row['f']) == len(row['c'])
    assert min(row['g']) >= 0 and '0' not in row['c'][1:]
    number += len(row['a'])
assert number == int(sys.argv[2])
assert max(sum(row['g']) + sum(row['d']) for row in plan['rows']) == plan['makespan']
END
has python3 && check page-data python3 page.py once.html 1024
browser=''
for word in chromium chromium-browser google-chrome; do
    [ -z "$browser" ] && has $word && browser=$word
done
open_page() { # ADDRESS OPTION...: in a profile of its own
    address=$1
    shift
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --window-size=1200,700 \
        --virtual-time-budget=4000 --enable-logging=stderr "$@" "file://$PWD/$address" 2>log
}
if [ -n "$browser" ] && open_page unit.svg --dump-dom >/dev/null; then
    draw "$here/unit.pipe" -o unit.html
    open_page 'unit.html#action=1B2&time=9' --dump-dom >page
    check page-says grep -q 'backward of micro-batch 2 through chunk 1 (h.1) on rank 1, steady' page
    check page-times grep -q 'from 8 to 10, 2 long; waits for 1F2 on its own rank' page
    check page-relates grep -q 'depends on 9 actions (2 by data); is waited for by 4 (1 by data); independent of 2' page
    check page-has-no-errors sh -c '! grep -i "console.*error\|uncaught" log'
    open_page once.html --screenshot=page.png >/dev/null
    # shellcheck disable=SC2016
    check page-is-drawn sh -c '[ "$(wc -c <page.png)" -gt 20000 ]'
fi
