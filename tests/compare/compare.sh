#!/bin/sh
# compare.sh RUNTIME SCRATCH: `pipec compare` beside its goldens, NAME.compare here; BLESS=1 rewrites them.
# Then the formulas of the course chapter against its CSV, and what it refuses.
command=compare
. "$(dirname "$0")/../golden"

timed=../inspect/cluster.pipe
plain=../inspect/course_interleaved.pipe
list='1f1b,gpipe,interleaved,naive'     # not `all`: another schedule must not change these goldens
golden table $timed --schedule $list --microbatches 4,8,16,32 --virtual 1,2,4
golden units $plain --schedule $list --microbatches 4,8
golden stages $plain --schedule '1f1b,interleaved(warmup = 1)' --stages 2,4,16 --virtual 1,2
golden csv $timed --schedule "interleaved(group = 4, warmup = 1),1f1b" --virtual 1,2 --csv
golden json $timed --schedule $list --microbatches 4,8 --virtual 1,2 --json
golden slow $timed --schedule 1f1b,interleaved -D link=100k -D latency=1us --microbatches 8,16

# A split by sizes holds for the chunks it was written for; others are cut anew.
"$pipec" compare ../partition/explicit.pipe --schedule 1f1b --virtual 1 --stages 1,2,3 --csv > "$scratch/out" 2>&1
[ "$(grep -c ',,$' "$scratch/out")" = 3 ] && echo "ok split" || echo "not ok split: $(cat "$scratch/out")"

# Every schedule there is; where formula and longest path agree, they agree to the last digit.
"$pipec" compare $plain --microbatches 4,8,16,32 --virtual 1,2 --stages 2,4 --csv > "$scratch/all"
awk -F, '$1 ~ /^(naive|gpipe|1f1b|interleaved)$/ && $8 != "" {
    n++; off = $5 - $6; if (off < 0) off = -off; if (off > 1e-8) { print "not ok formula " $0; bad = 1 } }
    END { if (!bad && n >= 40) print "ok formula"; else if (!bad) print "not ok formula " n " rows" }' "$scratch/all"
# Every rank's work is 3 M / P forwards of the model, whatever the chunks and the copies.
awk -F, 'NR > 1 && $8 != "" {
    n++; off = $8 * (1 - $6) * $2 - 3 * $4; if (off < 0) off = -off
    if (off > 1e-4) { print "not ok step " $0; bad = 1 } }
    END { if (!bad && n >= 100) print "ok step"; else if (!bad) print "not ok step " n " rows" }' "$scratch/all"
# No row that is marked is beaten by another, every other one is.
awk -F, 'NR > 1 && $8 != "" { n++; pace[n] = $8 / $4; bytes[n] = $9; best[n] = $13 }
    END { for (i = 1; i <= n; i++) { beaten = 0
        for (k = 1; k <= n; k++) if (pace[k] <= pace[i] * (1 + 1e-9) && bytes[k] <= bytes[i] &&
            (pace[k] < pace[i] * (1 - 1e-9) || bytes[k] < bytes[i])) beaten = 1
        if (beaten == best[i]) bad = 1 }
      print (bad || !n ? "not ok" : "ok") " front" }' "$scratch/all"

# The plot: well formed, one marker per plan and one per line of the legend, nothing outside.
"$pipec" compare $timed --schedule $list --microbatches 4,8,16,32 --virtual 1,2,4 -o "$scratch/plot.svg" > "$scratch/out" 2>&1
markers=$(grep -c '<path ' "$scratch/plot.svg")
[ "$markers" = 25 ] && echo "ok markers" || echo "not ok markers $markers"
grep -q 'prefers-color-scheme: dark' "$scratch/plot.svg" && grep -q '</svg>' "$scratch/plot.svg" &&
    ! grep -q 'nan\|inf' "$scratch/plot.svg" && echo "ok plot" || echo "not ok plot"
if command -v xmllint > /dev/null; then
    xmllint --noout "$scratch/plot.svg" && echo "ok xml" || echo "not ok xml"
fi

refuses numbers 2 'cannot be `4,x`' $plain --microbatches 4,x
refuses zero 2 'cannot be `0`' $plain --virtual 0
refuses trailing 2 'cannot be `4,`' $plain --microbatches 4,
refuses empty 2 'cannot be' $plain --stages ''
refuses schedule 2 'cannot be `1f1b,gpip`' $plain --schedule 1f1b,gpip
refuses many 2 'are too many' $plain --stages 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20 \
    --microbatches 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20 --virtual 1,2,3,4
refuses none 1 '1 of 1 combinations are refused' $plain --stages 64 --schedule 1f1b --virtual 1
refuses plot 1 'cannot write' $plain -o "$scratch/no/such/plot.svg"
refuses two_formats 2 'not both' $plain --csv --json
