#!/bin/sh
# schedules.sh RUNTIME SCRATCH: the tables of docs/schedules.md are computed from what pipec prints, and
# every schedule is on it. Its commands are repeated by pages.sh.
. "$(dirname "$0")/page"
page=$here/docs/schedules.md
chain=$here/examples/course/chain.pipe

# after TEXT: the rows of the first table behind the line that begins with it, without its head.
after() {
    awk -v text="$1" 'index($0, text) == 1 { on = 1 }
        on && /^\|/ { if (++n > 2) print; next }
        n { exit }' "$page"
}

# ---- every schedule ----

bad=''
count=0
for name in $(pipec --help schedules | sed -n 's/^  \([a-z0-9]*\)  *\(loop\|vee\|wave\|twin\) .*/\1/p'); do
    count=$((count + 1))
    grep -qx "### $name" "$page" || not_ok sections "no section on $name"
    [ "$(after '## All of them' | grep -c "^| .$name. |")" -gt 0 ] || not_ok sections "no row for $name"
    # shellcheck disable=SC2086
    grep -q "](pictures/$name.svg)" "$page" "$here/docs/pipeline-parallelism.md" || not_ok sections "no picture of $name"
done
verdict sections "$count" schedules

# ---- all of them: a row is one of `compare` ----

bad=''
count=0
names=$(pipec --help schedules | sed -n 's/^  \([a-z0-9]*\)  *\(loop\|vee\|wave\|twin\) .*/\1/p' | paste -sd, -)
pipec compare "$chain" --virtual 1,2 --schedule "$names" --csv >"$scratch/compared"
placements=$(pipec --help schedules | awk 'NF > 2 { printf "%s=%s ", $1, $2 }')
# Work is 3 M = 24; a peak of 1f1b is P chunks of a P-th, so P v of these.
after '## All of them' >"$scratch/rows"
while IFS='|' read -r _ name _ virtual rest; do
    count=$((count + 1))
    name=$(echo "$name" | tr -d '` ')
    virtual=$(echo "$virtual" | tr -d ' ')
    placement=$(echo "$placements" | tr ' ' '\n' | sed -n "s/^$name=//p")
    want=$(awk -F, -v s="$name" -v v="$virtual" -v where="$placement" '$1 == s && $3 == v && $8 != "" {
        step = $8 * $2
        printf "| `%s` | %s | %d | %g | %.5g | %.5g | %.2f %% | %.2f %% | %d | %g %% |", s, where, v, $11 / $4, step,
            step - 3 * $4, 100 * $6, 100 * $7, $10, 100 * $10 / ($2 * v) }' "$scratch/compared")
    [ -n "$want" ] || not_ok summary "$name: not compared"
    case "$(grep "^| .$name. | [a-z]* | $virtual |" "$scratch/rows")" in
    '') not_ok summary "$name: not compared" ;;
    "$want"*) ;;
    *) not_ok summary "want $want, but: $name |$rest" ;;
    esac
done <"$scratch/rows"
verdict summary "$count" rows

# ---- slow links: 24 and the idle time are the step ----

bad=''
count=0
after 'With messages of time c' >"$scratch/rows"
for message in latency=0.5ms link=800M; do # behind the wire, or on it: as long as none is taken
    pipec compare "$here/examples/course/link.pipe" -D $message --virtual 1,2 --csv >"$scratch/slow"
    while IFS='|' read -r _ name _ idle _; do
        count=$((count + 1))
        name=$(echo "$name" | tr -d '` ')
        virtual=1
        [ "$name" = interleaved ] && virtual=2
        awk -F, -v s="$name" -v v="$virtual" -v idle="$idle" '$1 == s && $3 == v && $8 != "" {
            split(idle, part, "+")
            off = $8 - 24 - part[1] - part[2]
            found = off < 0.001 && off > -0.001 } END { exit !found }' "$scratch/slow" ||
            not_ok links "$name, $message: not 24 + $idle"
    done <"$scratch/rows"
done
verdict links "$count" rows

# ---- bytes of a split backward ----

bad=''
count=0
# bytes SCHEDULE FILE OPTION..: of the worst rank.
bytes() {
    name=$1
    shift
    pipec compare "$@" --schedule "$name" --virtual 1 --csv | awk -F, 'NR == 2 { print $9 }'
}
while read -r file options; do
    count=$((count + 1))
    # shellcheck disable=SC2086
    whole=$(bytes 1f1b "$here/$file" $options) split=$(bytes zbh1 "$here/$file" $options)
    row="| $whole | $split | $(awk "BEGIN { printf \"%.2f\", $split / $whole }") |"
    grep -F "$file\`" "$page" | grep -qF "$row" || not_ok bytes "$file: want $row"
done <<END
examples/course/chain.pipe
examples/course/layers64.pipe --target cuda -D split=balanced
END
verdict bytes "$count" files

# ---- published and ours ----

# facts OPTION..: makespan, longest own span and peaks by rank.
facts() {
    pipec inspect "$chain" "$@" | awk '
        /^makespan/ { makespan = $2; sub(",", "", makespan) }
        /^rank  busy/ { ranks = 1; next }
        !/^ / { ranks = 0 }
        ranks { own = $2 / (1 - $6 / 100); if (own > span) span = own; peaks = peaks " " $8 }
        END { printf "%s%s;%s\n", makespan, spans ? sprintf(", span %.0f", span) : "", peaks }' spans="$spans" -
}
test=published
bad=''
count=0
after '**Reference schedules.**' >"$scratch/rows"
while IFS='|' read -r _ what published ours settings _; do
    count=$((count + 1))
    spans=''
    case $published in *span*) spans=yes ;; esac
    set --
    for word in $(echo "$settings" | tr -d '`'); do set -- "$@" -D "$word"; done
    found=$(facts "$@")
    [ " $found " = "$ours" ] || not_ok $test "$what: $found, but the page says $ours"
    # Equal to what is published, where it gives peaks by rank; else the makespan alone.
    case $published in
    *most* | *-*) [ "${found%;*}" = "$(echo "${published%;*}" | tr -d ' ')" ] || not_ok $test "$what: $found, published $published" ;;
    *) [ " $found " = "$published" ] || not_ok $test "$what: $found, published $published" ;;
    esac
done <"$scratch/rows"
verdict $test "$count" rows

test=building-blocks
bad=''
count=0
pipec compare "$chain" --schedule vhalf,vmin --virtual 2 --stages 4,6,8,10,12,16 --microbatches 48 --csv >"$scratch/vee"
after '**V-Half and V-Min at unit costs.**' >"$scratch/rows"
while IFS='|' read -r _ stages row; do
    count=$((count + 1))
    want=$(awk -F, -v p="$stages" '$2 + 0 == p + 0 && $8 != "" {
        idle[$1] = sprintf("%.0f", $8 * 2 * p - 6 * 48); peak[$1] = $10 }
        END { split("vhalf vmin", name, " ")
            for (i = 1; i <= 2; i++)
                printf " %s | %s | %s | %s |", idle[name[i]], idle[name[i]], peak[name[i]], peak[name[i]]
            printf " %d |", 2 * p }' "$scratch/vee")
    [ "$row" = "$want" ] || not_ok $test "P = $stages: want $want, but: $row"
done <"$scratch/rows"
verdict $test "$count" rows
