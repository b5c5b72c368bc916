#!/bin/sh
# chapter.sh RUNTIME SCRATCH: the tables of docs/pipeline-parallelism.md are computed from what pipec
# prints. Its commands are repeated by pages.sh.
. "$(dirname "$0")/page"
page=$here/docs/pipeline-parallelism.md

# ---- the comparison: formulas against what `compare` and `inspect` say ----

chain=$here/examples/course/chain.pipe
pipec compare "$chain" --virtual 1,2 --csv >"$scratch/compared"
bad=''
count=0
# schedule|name in the table|v|numerator/denominator of the formula, P=4 M=8
while IFS='|' read -r schedule name virtual over under; do
    count=$((count + 1))
    row=$(grep "^| $name | (P-1)/" "$page")
    formula=$(awk -v a="$over" -v b="$under" 'BEGIN { printf "%.2f %%", 100 * a / b }')
    exact=$(awk -F, -v s="$schedule" -v v="$virtual" '$1 == s && $3 == v { printf "%.2f %%", 100 * $6 }' "$scratch/compared")
    messages=$(awk -F, -v s="$schedule" -v v="$virtual" '$1 == s && $3 == v { print $11 }' "$scratch/compared")
    peak=$(pipec inspect "$chain" -D schedule="$schedule" -D virtual="$virtual" | awk -v v="$virtual" '
        /^rank  busy/ { ranks = 1; next }
        /^heaviest/ { ranks = 0 }
        ranks { printf "%s%g", gap, $8 / v; gap = " " }')
    case $row in
    *" = $formula | $exact | "*" | $peak | "*" = $messages |") ;;
    *) not_ok comparison "$name: formula $formula, exact $exact, peaks $peak, $messages messages, but: $row" ;;
    esac
done <<END
naive|naive|1|3|4
gpipe|GPipe|1|3|11
1f1b|1F1B|1|3|11
interleaved|interleaved|2|3|19
END
verdict comparison "$count" schedules

# ---- 7.2: every row is its formula ----

bad=''
rows=$(sed -n '/^### 7.2/,/^### 7.3/s/^[* ] interleaved //p' "$page")
count=$(echo "$rows" | grep -c .)
why=$(echo "$rows" | awk '{
    p = $1; v = $2; m = $3
    formula = sprintf("%.2f", 100 * (p - 1) / (m * v + p - 1))
    step = sprintf("%.5g", (m * v + p - 1) * 3 / (p * v))
    chunks = 2 * (p - 1) + (v - 1) * p + 1
    if (v == 1) chunks = p
    if (chunks > m * v) chunks = m * v
    if ($4 != formula || $6 != formula || $10 != step || $14 != chunks || $15 != 2 * m * (p * v - 1))
        print "P=" p, "v=" v, "M=" m ": want", formula, step, chunks, 2 * m * (p * v - 1)
}')
[ -z "$why" ] || not_ok bubbles "$why"
verdict bubbles "$count" rows

# ---- arithmetic in tables of layers64.pipe ----

large=$here/examples/course/layers64.pipe
# in_row TEXT NUMBER: a row of a table that holds TEXT has NUMBER in a later cell.
in_row() {
    count=$((count + 1))
    grep -F "| $1" "$page" | grep -qE "[| ]$2( |$)" || not_ok "$test" "$1: the page does not say $2"
}
test=operations
bad=''
count=0
pipec inspect "$large" --target cuda --ops >"$scratch/ops"
gflop() { awk -v op="$1" '$1 ~ "^(h[.]0[.])?(" op ")$" { sum += $3 } END { printf "%.3f", sum / 1000 }' "$scratch/ops"; }
formula() { awk "BEGIN { b = 1; s = 2048; h = 3072; a = 24; V = 131072; printf \"%.${2}f\", $1 }"; }
# shellcheck disable=SC2016
in_row 'the four `linear`' "$(formula '24*b*s*h*h / 1e9' 3) Gflop"
# shellcheck disable=SC2016
in_row 'the four `linear`' "$(gflop 'qkv|proj|up|down') Gflop, the sum"
in_row 'attention, without a mask' "$(formula '4*b*s*s*h / 1e9' 3) Gflop"
in_row 'attention, causal' "$(formula '2*b*s*s*h / 1e9' 3) Gflop"
in_row 'attention, causal' "$(gflop attention) Gflop:"
in_row 'embedding' "$(gflop wte) Gflop"
in_row 'head' "$(formula '2*b*s*h*V / 1e9' 3) Gflop"
in_row 'head' "$(gflop head) Gflop"
verdict operations "$count" rows

test=kept-bytes
bad=''
count=0
in_row 'everything, with dropout' "$(formula 's*b*h * (34 + 5*a*s/h)' 0)"
in_row 'no scores' "$(formula '34*s*b*h' 0)"
in_row 'the same without' "$(formula '32*s*b*h' 0)"
in_row 'what pipec keeps' "$(awk '/^h\.0 /, /together/ { kept = $NF } END { print kept }' "$scratch/ops")"
in_row 'the input alone' "$(formula '2*s*b*h' 0)"
verdict kept-bytes "$count" rows

test=cuts
bad=''
count=0
while IFS='|' read -r name split; do
    pipec inspect "$large" --target cuda ${split:+-D "split=$split"} >"$scratch/cut"
    in_row "$name" "$(sed -n 's/^makespan \([0-9.]* s\),.*/\1/p' "$scratch/cut") \|"
    in_row "$name" "$(sed -n 's/^heaviest .* with \([0-9.]*\) times.*/\1/p' "$scratch/cut") \|"
    in_row "$name" "$(sed -n 's/^heaviest .* that costs \([0-9.]* ms\)$/\1/p' "$scratch/cut") \|"
    in_row "$name" "$(sed -n 's/^bubble of the makespan: \([0-9.]* %\);.*/\1/p' "$scratch/cut") \|"
done <<'END'
16 each|
`even`|even
`balanced`|balanced
END
verdict cuts "$count" rows
