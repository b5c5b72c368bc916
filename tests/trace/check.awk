# check.awk: a plan (`check --dump=memory`), then a .trace of it. Prints what is
# wrong: an action that is missing, twice or out of order; one that ends before
# it begins, or begins before the one before it ends; a receive that ends before
# its send begins; a compute that begins before its input was made. With
# BUBBLE, the mean over the steps behind the first has to be that, in percent.
FNR == NR && /^rank [0-9]*: / && !/: arena/ {
    rank = $2 + 0
    for (i = 3; i <= NF; i++)
        if ($i ~ /^[0-9]+[A-Z_]+[0-9]+$/) plan[rank, planned[rank]++] = $i
    if (rank >= ranks) ranks = rank + 1
    next
}
FNR == NR || /^#/ { next }
{
    if (NF != 5) wrong("five words are expected")
    if (!(($2, $1) in seen)) seen[$2, $1] = 0
    if ($3 != plan[$1, seen[$2, $1]]) wrong("the plan has " plan[$1, seen[$2, $1]])
    seen[$2, $1]++
    if ($5 < $4) wrong("ends before it begins")
    if ($4 < last[$1]) wrong("begins before the one before it ends")
    last[$1] = $5
    begin[$2, $3] = $4
    end[$2, $3] = $5
    if (!($2 in steps)) { steps[$2] = 1; first[$2] = -1 }
    if ($3 ~ /^[0-9]*[FB][0-9]*$/) {
        busy[$2] += $5 - $4
        if (first[$2] < 0 || $4 < first[$2]) first[$2] = $4
        if ($5 > latest[$2]) latest[$2] = $5
    }
}
function wrong(why) { if (bad++ < 5) print $0 ": " why }
function other(step, action, kind, chunk,    m) {       # what this one needs
    m = action
    sub(/^.*[A-Z]/, "", m)
    return step SUBSEP chunk kind m
}
END {
    for (s in steps) {
        count++
        for (r = 0; r < ranks; r++)
            if (seen[s, r] != planned[r]) wrong("step " s ", rank " r ": " seen[s, r] " actions, not " planned[r])
        if (s > 1) { whole++; bubble += 1 - busy[s] / (ranks * (latest[s] - first[s])) }
    }
    for (key in begin) {
        split(key, part, SUBSEP)
        chunk = part[2] + 0
        need = ""
        if (part[2] ~ /RECV_F/) need = other(part[1], part[2], "SEND_F", chunk - 1)
        if (part[2] ~ /RECV_B/) need = other(part[1], part[2], "SEND_B", chunk + 1)
        if (need && end[key] < begin[need]) wrong(part[2] " ends before " need " begins")
        if (part[2] ~ /^[0-9]*F/) need = other(part[1], part[2], "F", chunk - 1)
        if (part[2] ~ /^[0-9]*B/) need = other(part[1], part[2], "B", chunk + 1)
        if (need && need in end && part[2] !~ /_/ && begin[key] < end[need]) wrong(part[2] " begins before its input is made")
    }
    if (STEPS && count != STEPS) wrong(count " steps, not " STEPS)
    off = whole ? 100 * bubble / whole - BUBBLE : 0
    if (BUBBLE != "" && (off > 0.11 || off < -0.11)) wrong("bubble " 100 * bubble / whole ", pprun says " BUBBLE)
    exit bad > 0
}
