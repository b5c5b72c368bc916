#!/bin/sh
# chapter.sh RUNTIME SCRATCH: docs/pipeline-parallelism.md shows what pipec does. Every command of the
# page is run again and its output, files included, compared with the page; its tables of formulas
# are computed from the printed numbers.
#
#   block of the page           what is compared
#   ```
#   $ pipec inspect X.pipe      a command, run in a folder that looks like the repository's root
#   ...                         one or more lines that are not shown
#   bubble ...                  a line of its output, byte for byte
#   ```
here=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(cd "$2" && pwd)
page=$here/docs/pipeline-parallelism.md
PATH=$(cd "$1/../../bin" && pwd):$PATH

ok() { echo "ok $1"; }
not_ok() {
    echo "not ok $*"
    bad=yes
}
# verdict NAME COUNT WHAT: `ok` if nothing was found wrong since `bad` was emptied.
verdict() {
    if [ "$2" -eq 0 ]; then
        not_ok "$1" "found no $3"
    elif [ -z "$bad" ]; then
        ok "$1"
    fi
}

# ---- commands and their output ----

# Commands go to N.sh, what the page shows for them to N.page; line numbers in N.line.
root=$scratch/root
mkdir -p "$root/docs/pictures" "$scratch/blocks"
ln -s "$here/examples" "$root/examples"
awk -v prefix="$scratch/blocks/" '
    /^```/ { inside = !inside; shown = ""; wrapped = 0; next }
    !inside { next }
    /^\$ / || wrapped {
        if (!wrapped) {
            if (shown) close(shown)
            name = prefix sprintf("%03d", ++count)
            shown = name ".page"
            printf "" > shown
            print NR > (name ".line"); close(name ".line")
            sub(/^\$ /, "")
        }
        wrapped = /\\$/
        print > (name ".sh")
        if (!wrapped) close(name ".sh")
        next
    }
    shown { print > shown }' "$page"

# The lines of `shown` occur in this order in `printed`, next to each other where no `...` stands between.
cat >"$scratch/match.awk" <<'AWK'
FNR == NR { shown[++want] = $0; next }
{ printed[++have] = $0 }
function fits(first, last, at,    i) {
    for (i = first; i <= last; i++)
        if (printed[at + i - first] != shown[i])
            return 0
    return 1
}
END {
    at = 1  # the next line of `printed` that nothing stands for yet
    for (i = 1; i <= want; i = last + 1) {
        gap = shown[i] == "..."
        first = i + gap
        for (last = first; last < want && shown[last + 1] != "..."; last++)
            ;
        if (first > want) {  # `...` at the end
            if (at > have) { print "nothing is left out at the end"; exit 1 }
            exit 0
        }
        length_ = last - first + 1
        low = at + gap
        high = gap ? have - length_ + 1 : at
        if (last == want)  # up to the end of the output
            low = low > have - length_ + 1 ? low : have - length_ + 1
        for (at = low; at <= high && !fits(first, last, at); at++)
            ;
        if (at > high || at + length_ - 1 > have) {
            printf "not printed, or not there: %s\n", shown[first]
            exit 1
        }
        at += length_
    }
    if (at <= have) { printf "printed, but not shown: %s\n", printed[at]; exit 1 }
}
AWK

bad=''
count=0
for command in "$scratch"/blocks/*.sh; do
    [ -f "$command" ] || continue
    block=${command%.sh}
    count=$((count + 1))
    line=$(cat "$block.line")
    case $(cat "$command") in
    'pipec '* | 'cat '*) ;;
    *)
        not_ok commands "line $line: neither pipec nor cat"
        continue
        ;;
    esac
    (cd "$root" && sh "$command") >"$block.out" 2>&1 || not_ok commands "line $line: exit status $?: $(head -3 "$block.out")"
    why=$(awk -f "$scratch/match.awk" "$block.page" "$block.out") || not_ok commands "line $line: $why"
done
verdict commands "$count" commands

# ---- pictures ----

bad=''
count=0
for picture in "$root"/docs/pictures/*.svg "$here"/docs/pictures/*; do
    name=pictures/$(basename "$picture")
    count=$((count + 1))
    cmp -s "$root/docs/$name" "$here/docs/$name" || not_ok pictures "docs/$name is not what its command writes"
    grep -q "]($name)" "$page" || not_ok pictures "docs/$name is not on the page"
done
verdict pictures "$count" pictures

# ---- the comparison: formulas against what `compare` and `inspect` say ----

chain=$here/examples/course/chain.pipe
pipec compare "$chain" --virtual 1,2 | sed 's/^\*/ /' >"$scratch/compared"
bad=''
count=0
# schedule|name in the table|v|numerator/denominator of the formula, P=4 M=8
while IFS='|' read -r schedule name virtual over under; do
    count=$((count + 1))
    row=$(grep "^| $name | (P-1)/" "$page")
    formula=$(awk -v a="$over" -v b="$under" 'BEGIN { printf "%.2f %%", 100 * a / b }')
    exact=$(awk -v s="$schedule" -v v="$virtual" '$1 == s && $3 == v { print $7 " %" }' "$scratch/compared")
    messages=$(awk -v s="$schedule" -v v="$virtual" '$1 == s && $3 == v { print $(NF - 1) }' "$scratch/compared")
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
    if ($4 != formula || $6 != formula || $10 != step || $13 != chunks || $14 != 2 * m * (p * v - 1))
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
    in_row "$name" "$(sed -n 's/^makespan \([0-9.]* ms\),.*/\1/p' "$scratch/cut") \|"
    in_row "$name" "$(sed -n 's/^heaviest .* with \([0-9.]*\) times.*/\1/p' "$scratch/cut") \|"
    in_row "$name" "$(sed -n 's/^heaviest .*flop, \([0-9.]* ms\) by.*/\1/p' "$scratch/cut") \|"
    in_row "$name" "$(sed -n 's/^bubble of the makespan: \([0-9.]* %\);.*/\1/p' "$scratch/cut") \|"
done <<'END'
16 each|
`even`|even
`balanced`|balanced
END
verdict cuts "$count" rows
