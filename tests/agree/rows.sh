#!/bin/sh
# rows.sh RUNTIME SCRATCH: a row of compare is the plan that `inspect -D schedule=LABEL` shows, LABEL as the row has it,
# with the same stages, virtual and microbatches: all figures of it, or the same refusal. And where there is no bubble
# by the textbook, nothing prints one.
. "$(dirname "$0")/agree"

# a_file NAME PIPELINE: what stands in its pipeline block.
a_file() {
    cat >"$1.pipe" <<END
schedule mine { for m in 0 .. M { F(m) }  for m in 0 .. M { B(m) } }
schedule tall { for c in 0 .. v { for m in 0 .. M { F(m, c) } }
    for c in 0 .. v { for m in 0 .. M { B(m, v - 1 - c) } } }
model m { input x[16]; a : linear(16) * 16; loss : mse }
pipeline { $2 }
cluster { forward 1ms  backward 2ms  link 64k  latency 100us }
END
}
a_file plain 'stages 2  microbatches 4'
a_file deep 'stages 2  virtual 2  microbatches 4'
a_file vee 'stages 2  virtual 2  microbatches 4  placement vee'
a_file named 'stages 2  microbatches 4  schedule 1f1b'
a_file group 'stages 2  virtual 2  microbatches 6  schedule interleaved(group = 4, warmup = 1)'
a_file mine 'stages 2  microbatches 4  schedule mine'
a_file sizes 'stages 2  microbatches 4  schedule gpipe  split [9 7]'
mkdir -p below
a_file below/csv 'stages 2  virtual 2  microbatches 4  schedule from "order.csv"'
"$pipec" inspect deep.pipe -D schedule=bfs -o below/order.csv

# What inspect says of a plan, in the words of compare's columns.
of_inspect='
    /^makespan / { sub(/,$/, "", $3); step = $2 " " $3 }
    /^bubble by the textbook/ { textbook = $(NF - 1) }
    /^bubble of the makespan/ { bubble = $5; own = $(NF - 1) }
    /^rank  busy/ { ranks = 1; next }
    ranks && !/^ *[0-9]+  / { ranks = 0 }
    ranks { n = split($0, f, / +/); bytes = f[n - 1] + 0 > bytes + 0 ? f[n - 1] : bytes
            chunks = f[n - 2] + 0 > chunks + 0 ? f[n - 2] : chunks }
    /^messages of one step/ { messages = $5 + $9 }
    END { print step "|" textbook "|" bubble "|" own "|" bytes "|" chunks "|" messages }'
# check FILE WORD...: every row of compare with these lists, of FILE as it is.
rows=0
check() {
    file=$1
    shift
    # shellcheck disable=SC2086
    "$pipec" compare "$file" $target ${setting:+-D "$setting"} "$@" --csv >rows.csv 2>said || { cat said; echo "not ok compare $*"; return; }
    : >wrong
    awk "$cut_csv"' NR > 1 { cut($0); print f[1]; print f[2], f[3], f[4]
        if (f[14] != "") { print "refused " f[15]; next }
        printf "%.4g ms|%s|%.2f|%.2f|%s|%s|%s\n", f[8], f[5] == "" ? "" : sprintf("%.2f", 100 * f[5]), 100 * f[6], 100 * f[7],
            f[9], f[10], f[11] }' rows.csv >rows
    while read -r label && read -r stages virtual micros && read -r wanted; do
        rows=$((rows + 1))
        recut=''
        [ "$file" = sizes.pipe ] && [ $((stages * virtual)) -ne 2 ] && recut='-D split=balanced'
        # shellcheck disable=SC2086
        "$pipec" inspect "$file" ${setting:+-D "$setting"} -D "schedule=$label" -D "stages=$stages" -D "virtual=$virtual" -D "microbatches=$micros" \
            $recut $target >said 2>&1
        case $wanted in
        refused*) grep -q -F -e "error: ${wanted#refused }" said && continue ;;
        *) is=$(awk "$of_inspect" said) ;;
        esac
        [ "$is" = "$wanted" ] || echo "$label P=$stages v=$virtual M=$micros: compare $wanted, inspect $is" >>wrong
    done <rows
    verdict "$file $target $setting $*"
}
target='' setting=''
every='--stages 2,4 --virtual 1,2,4 --microbatches 3,8'
# shellcheck disable=SC2086
check plain.pipe $every
check deep.pipe --virtual 2
check vee.pipe --virtual 2
check named.pipe --schedule 1f1b,interleaved,tall --virtual 2,1
check group.pipe
check group.pipe --schedule 'interleaved,interleaved(group = 3),1f1b' --microbatches 4,6,9 --virtual 1,2
check mine.pipe
check sizes.pipe --stages 2,4 --virtual 1,2 --schedule gpipe,mine,interleaved
check below/csv.pipe
check deep.pipe --schedule 'zbh1(group = 2),dualpipe(atomic = 1),tall,zbv' --virtual 1,2
target='--target cuda'
check group.pipe --microbatches 5,8 --virtual 2
setting='schedule=zbh1(group = 2)'
check group.pipe --schedule zbh1,interleaved --virtual 1,2
check below/csv.pipe --schedule zbh1,zbh2 --virtual 1,2
target='' setting='schedule=from "below/order.csv"'
check plain.pipe --virtual 2
[ $rows -ge 250 ] && echo "ok $rows rows" || echo "not ok only $rows rows"

# ---- no bubble by the textbook ----

# no_textbook FILE LABEL V M: neither inspect nor a form of compare has one.
no_textbook() {
    : >wrong
    "$pipec" inspect "$1" -D "schedule=$2" -D "virtual=$3" -D "microbatches=$4" >said 2>&1 || cat said >>wrong
    grep 'textbook' said >>wrong
    grep -q '^makespan' said || echo 'inspect has no makespan' >>wrong
    set -- "$1" -D "schedule=$2" --schedule "$2" --virtual "$3" --microbatches "$4"
    "$pipec" compare "$@" | grep -q '^[* ] .*  *-  *[0-9.]* %  *[0-9.]* % ' || echo 'compare: no `-`' >>wrong
    "$pipec" compare "$@" --csv | awk "$cut_csv"' NR > 1 { cut($0); if (f[5] != "" || f[6] == "") print "csv: " $0 }' >>wrong
    "$pipec" compare "$@" --json | grep -q '"bubble_textbook": null, "bubble_makespan": 0' || echo 'json: not null' >>wrong
    verdict "no textbook: $*"
}
no_textbook mine.pipe mine 1 4
no_textbook plain.pipe tall 2 4
# Imported: its row is one of all.
: >wrong
"$pipec" inspect below/csv.pipe | grep textbook >>wrong
"$pipec" compare below/csv.pipe --virtual 2 | grep -q '^[* ] from "below/order.csv"  *2  2  *4  *-  ' || echo table >>wrong
"$pipec" compare below/csv.pipe --virtual 2 --csv | grep -q '^"from ""below/order.csv""",2,2,4,,0' || echo csv >>wrong
"$pipec" compare below/csv.pipe --virtual 2 --json | grep -A 1 'order.csv' | grep -q '"bubble_textbook": null' || echo json >>wrong
verdict "no textbook: an imported order"
# A list that was cut: whoever says so says no formula.
: >wrong
cut=0
"$pipec" compare plain.pipe --stages 4 --virtual 1,2 --microbatches 1,2,3,4,5,6,7,8 --csv >rows.csv
awk "$cut_csv"' NR > 1 { cut($0); if (f[14] == "") print f[1], f[3], f[4], f[5] == "" ? "-" : "formula" }' rows.csv >rows
while read -r label virtual micros formula; do
    "$pipec" inspect plain.pipe -D "schedule=$label" -D stages=4 -D "virtual=$virtual" -D "microbatches=$micros" >said
    if grep -q 'is defined for .* and more: ' said; then
        cut=$((cut + 1))
        { [ "$formula" = - ] && ! grep -q textbook said; } || echo "$label v=$virtual M=$micros prints a formula" >>wrong
    fi
done <rows
[ $cut -ge 10 ] || echo "only $cut lists were cut" >>wrong
verdict "no textbook: $cut lists below the least micro-batches"
