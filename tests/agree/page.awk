# page.awk: an HTML page of pipec as lines, one for each action:
#
#     PLAN RANK ACTION IDLE WAITS FROM START END
#
# PLAN: from 0; IDLE: ticks since the one before on its rank ended; WAITS: why it does not start earlier, a digit of
# Waits in nodes.h; FROM: the action that it waited for, as picture.js finds it, `-`: the step began.
function list(line,    text) {
    text = line
    sub(/^"[a-z]*":\[/, "", text)
    sub(/\],?$/, "", text)
    count = split(text, at, ",")
}
function finish_plan(    i, c, from) {
    for (i = 0; i < nodes; i++) {
        c = digit[i]
        from = c == 1 ? (i > first[rank[i]] ? i - 1 : -1) : (i in cause) ? cause[i] : c == 2 ? maker[i] : -1
        print plan, rank[i], name[i], idle[i], c, from < 0 ? "-" : name[from], start[i], end[i]
    }
    split("", cause)
}
/^<script type="application\/json" class="plan">/ { plan = plans++; nodes = 0; ranks = 0; inside = 1 }
!inside { next }
/^"shown":/ {
    match($0, /"chunks":[0-9]*/); chunks = substr($0, RSTART + 9, RLENGTH - 9)
    match($0, /"micros":[0-9]*/); micros = substr($0, RSTART + 9, RLENGTH - 9)
}
/"a":\[/ {
    sub(/^{/, "")
    list($0)
    first[ranks] = nodes
    for (i = 1; i <= count; i++) {
        kind = int(at[i] / (micros * chunks))
        name[nodes] = int(at[i] / micros) % chunks substr("FBIW", kind + 1, 1) at[i] % micros
        rank[nodes++] = ranks
    }
}
/^"g":\[/ { list($0); for (i = 1; i <= count; i++) idle[first[ranks] + i - 1] = at[i] }
/^"d":\[/ {
    list($0)
    for (i = 1; i <= count; i++) {
        n = first[ranks] + i - 1
        start[n] = (i > 1 ? end[n - 1] : 0) + idle[n]
        end[n] = start[n] + at[i]
    }
}
/^"f":\[/ { list($0); for (i = 1; i <= count; i++) maker[first[ranks] + i - 1] = at[i] }
/^"c":"/ { for (n = first[ranks]; n < nodes; n++) digit[n] = substr($0, 6 + n - first[ranks], 1) }
/^"w":\[/ { list($0); for (i = 1; i < count; i += 2) cause[first[ranks] + at[i]] = at[i + 1] }
/^"steady":/ { ranks++ }
/<\/script>/ { finish_plan(); inside = 0 }
