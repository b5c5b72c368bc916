#!/bin/sh
# pictures.sh RUNTIME SCRATCH: `pipec inspect X.pipe -o X.suffix`. The files in expected/ are compared byte for byte
# (BLESS=1 rewrites them); what is true of every picture is checked on larger plans; pictures are opened and printed in
# Chromium where there is one.
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
    [ -n "$BLESS" ] && cp "$name" "$here/expected/$name"
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

# ---- colours, on screens and on paper ----

cat >colours.py <<'END'
import json, re, sys
def light(colour): # relative luminance, as WCAG 2 defines it
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
def contrast(a, b):
    a, b = sorted((light(a), light(b)))
    return (b + 0.05) / (a + 0.05)
def least(what, a, b, wanted):
    assert contrast(a, b) >= wanted, '%s: %s on %s has a contrast of %.3f, not %g' % (what, a, b, contrast(a, b), wanted)
svg, html, shades = open(sys.argv[1]).read(), open(sys.argv[2]).read(), int(sys.argv[3])
style, dark = svg.split('@media screen and (prefers-color-scheme:dark)')
rule = lambda name, text: re.search(r'\.%s\{fill:(#\w+)\}' % name, text).group(1)
kinds = re.findall(r'\.on([FBIW])\{', style)
ramps = {k: [rule(k + str(s), style) for s in range(shades)] for k in kinds}
assert len(kinds) > 1 and all(re.search(r'class="%s0"' % k, svg) for k in kinds)
for k, ramp in ramps.items():
    for shade in ramp:
        least('number on ' + k, rule('on' + k, style), shade, 4.5)
    least('first and last chunk of ' + k, ramp[0], ramp[-1], 1.3) if shades > 1 else None
    for a, b in zip(ramp, ramp[1:]):
        apart = sum(abs(int(a[i:i + 2], 16) - int(b[i:i + 2], 16)) for i in (1, 3, 5))
        assert light(a) < light(b) and apart >= 8, 'chunks of %s look alike: %s, %s' % (k, a, b)
for a in kinds:
    for b in kinds:
        for one in ramps[a] if a < b else []:
            for other in ramps[b]:
                least('%s and %s in grey' % (a, b), one, other, 1.3)
dark_ground = re.search(r'\.idle\{fill:(#\w+)\}', dark).group(1)
for k in kinds:
    for shade in ramps[k]:
        least('on an idle lane', shade, '#f2f4f6', 1.15)
        least('on an idle lane, dark', shade, dark_ground, 1.4)
for a, b in (('warmup', 'steady'), ('steady', 'cooldown'), ('warmup', 'cooldown'), ('lasting', 'alive')):
    least('%s and %s in grey' % (a, b), rule(a, style), rule(b, style), 1.3)
    css = dict(re.findall(r'--(\w+): (#\w+)', html.split('@media')[0]))
    assert css[a] == rule(a, style) and css[b] == rule(b, style), 'the page has other colours'
plan = json.loads(re.search(r'class="plan">(.*?)</script>', html, re.S).group(1))
for i, k in enumerate('FBIW'):
    assert k not in kinds or plan['colours'][i] == ramps[k] and plan['numbers'][i] == rule('on' + k, style)
END
shaded() { # CHUNKS-PER-RANK OPTION...: the colours of such a plan
    count=$1
    shift
    draw "$course" -o shades.svg "$@" && draw "$course" -o shades.html "$@" && python3 colours.py shades.svg shades.html "$count"
}
course=$here/../../examples/course/chain.pipe
if has python3; then
    check colours shaded 1 -D schedule=1f1b
    check colours-of-all-kinds shaded 2 -D schedule=dualpipe
    check colours-of-4-chunks shaded 4 -D schedule=interleaved -D virtual=4
fi
check legend-keeps-its-colours grep -q 'legend i.*{ print-color-adjust: exact' once.html

# ---- words that are longer than the picture is wide ----

long=m_$(printf '%098d' 0 | tr 0 W)
sed "s/model chain/model $long/; s/stages 8/stages 2/; s/virtual 4/virtual 8/; s/ches 16/ches 2/" large.pipe >long.pipe
draw long.pipe -o long.svg
cat >words.py <<'END'
import re, sys
svg = open(sys.argv[1]).read()
width = int(re.search(r' width="(\d+)"', svg).group(1))
whole = re.search('<title>(.*)</title>', svg).group(1)
titles = re.findall(r'<text class="title" x="[\d.]+" y="([\d.]+)">([^<]*)', svg)
assert len(titles) > 1 and ''.join(text for _, text in titles).replace(' ', '') == whole.replace(' ', ''), 'not whole'
head = re.findall(r'<text class="(title|key)" x="([\d.]+)" y="([\d.]+)">([^<]*)', svg)
for style, x, y, text in head:
    assert float(x) + (text.count('W') * 5.7 + len(text) * 8.2 if style == 'title' else len(text) * 5.4) < width, text
boxes = [float(x) for x in re.findall(r'd="M(\d+\.?\d*) \d+\.?\d*h14v', svg)]
assert boxes and max(boxes) + 14 < width, 'the legend leaves the picture'
lines = sorted({float(y) for _, _, y, _ in head})
assert all(b - a >= 15 for a, b in zip(lines, lines[1:])), 'lines overlap'
END
has python3 && check long-title-is-wrapped python3 words.py long.svg

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
    if e['ph'] == 'X' and e['pid'] == 0:
        rows[e['tid']].append(e)
wires = collections.defaultdict(list)  # the second process: one message at a time on each
for e in events:
    if e['ph'] == 'X' and e['pid'] == 1:
        wires[e['tid']].append(e)
assert (sum(map(len, wires.values())) == 2 * (chunks - 1) * micros) == (message > 0)
for wire in wires.values():
    for a, b in zip(wire, wire[1:]):
        assert a['ts'] + a['dur'] <= b['ts'] + 2e-6, (a, b)
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
        --virtual-time-budget=8000 --enable-logging=stderr "$@" "file://$PWD/$address" 2>log
}
# A script at the end of the page does what a person would, and writes down what the page then says.
cat >address.html <<'END'
<script>
const note = document.createElement("pre"), said = text => { note.textContent += text + "\n"; };
const press = (where, key) => where.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const steps = [
    () => said("opened " + location.hash),
    () => { $("plan").value = "zbv"; $("plan").onchange(); }, () => said("plan " + location.hash),
    () => choose(find("3I2")), () => said("action " + location.hash),
    () => zoom(2, 600), () => said("zoomed " + location.hash.replace(/(from|to)=[0-9.]+/g, "$1=")),
    () => press(document, "0"), () => press(document, "ArrowRight"), () => said("key " + location.hash),
    () => press($("fit"), "ArrowRight"), () => press($("scrub"), "ArrowRight"), () => press($("plan"), "ArrowRight"),
    () => said("key on a button " + location.hash),
    () => { location.hash = "#plan=gpipe&action=0F3"; }, () => said("linked " + plan.schedule + " " + name(chosen)),
    () => choose(-1), () => said("none " + location.hash),
];
note.id = "note";
document.body.append(note);
steps.forEach((step, i) => setTimeout(step, 250 * i + 250));
</script>
END
cat >address.expected <<'END'
opened #plan=1f1b
plan #plan=zbv
action #plan=zbv&amp;action=3I2
zoomed #plan=zbv&amp;from=&amp;to=&amp;action=3I2
key #plan=zbv&amp;action=3W2
key on a button #plan=zbv&amp;action=4F6
linked gpipe 0F3
none #plan=gpipe
END
cat >wide.pipe <<'END'
model chain {
    input tokens[2] of 4
    e : embedding(4)
    h : linear(4) * 64
    loss : cross_entropy
}
pipeline { stages 64  microbatches 256  schedule 1f1b }
END
print_page() { open_page "$1" --no-pdf-header-footer --print-to-pdf=printed.pdf >/dev/null; }
# The last number of the axis and the last rank are on the one page.
printed_whole() { # RANKS
    pdftotext -bbox printed.pdf printed.html && awk -v ranks="$1" '
        function number(name) { match($0, name "=\"[0-9.]+"); return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2) + 0 }
        /<page / { pages++; width = number("width"); height = number("height") }
        /<word / { words++; if (number("xMax") > width || number("yMax") > height) outside++ }
        index($0, ">" ranks - 1 "<") { last++ }
        END { print pages " pages, " words " words, " outside + 0 " outside"; exit !(pages == 1 && words > 20 && !outside && last) }' printed.html
}
if [ -n "$browser" ] && open_page unit.svg --dump-dom >/dev/null; then
    draw "$here/unit.pipe" -o unit.html
    open_page 'unit.html#action=1B2&time=9' --dump-dom >page
    check page-says grep -q 'backward of micro-batch 2 through chunk 1 (h.1) on rank 1, steady' page
    check page-times grep -q 'from 8 to 10, 2 long; waits for 1F2 on its own rank' page
    check page-relates grep -q 'depends on 9 actions (2 by data); is waited for by 4 (1 by data); independent of 2' page
    check page-has-no-errors sh -c '! grep -i "console.*error\|uncaught" log'
    draw wide.pipe -o wide.svg && draw wide.pipe -o wide.html
    open_page wide.html --dump-dom >page
    check fit-shows-everything grep -q 'timeline, ranks 0 to 63 of 64, from 0 to 957 of 957;' page
    draw "$course" --schedule 1f1b,zbv,gpipe -o plans.html && cat address.html >>plans.html
    open_page plans.html --dump-dom | sed -n '/<pre id="note">/,/<\/pre>/{s/.*<pre id="note">//;/<\/pre>/!p}' >address
    check page-writes-its-address diff address.expected address
    check address-has-no-errors sh -c '! grep -i "console.*error\|uncaught" log'
    open_page once.html --screenshot=page.png >/dev/null
    # shellcheck disable=SC2016
    check page-is-drawn sh -c '[ "$(wc -c <page.png)" -gt 20000 ]'
    if has pdftotext; then
        print_page wide.svg
        check wide-picture-is-printed-whole printed_whole 64
    else
        ok 'printing (skipped: no pdftotext here)'
    fi
else
    ok 'page (skipped: no Chromium here)'
fi
