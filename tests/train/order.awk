# order.awk -v map="0 1 1 0 2" -v M=6 [-v split_backward=1]: an order for any placement, as a file of `schedule from`: each rank
# runs what it can begin first; of two that it can begin at the same time the backward, then the earlier micro-batch.
# A chunk takes its micro-batches in ascending order. split_backward: the backward is an I and a W.
function begin(kind, c, m,   ready) {
    if (m == M || m != count[kind, c]) return -1
    if (kind == "F") ready = c ? end["F", c - 1, m] : 0
    else if (kind == "W") ready = end["I", c, m]
    else ready = c < chunks - 1 ? end[kind, c + 1, m] : end["F", c, m]
    if (ready == "" || (kind != "F" && kind != "W" && end["F", c, m] == "")) return -1
    return ready > clock[rank[c]] ? ready : clock[rank[c]] + 0
}
BEGIN {
    chunks = split(map, list, " ")
    for (c = 0; c < chunks; c++) {
        rank[c] = list[c + 1]
        if (rank[c] >= ranks) ranks = rank[c] + 1
    }
    kinds = split(split_backward ? "I F W" : "B F", kind, " ")
    for (;;) {
        best = -1
        for (k = 1; k <= kinds; k++)
            for (c = chunks - 1; c >= 0; c--) {
                at = begin(kind[k], c, count[kind[k], c] + 0)
                if (at >= 0 && (best < 0 || at < best)) { best = at; what = kind[k]; chunk = c }
            }
        if (best < 0) break
        micro = count[what, chunk]++
        end[what, chunk, micro] = clock[rank[chunk]] = best + (what == "B" ? 2 : 1)
        row[rank[chunk]] = row[rank[chunk]] (row[rank[chunk]] ? "," : "") chunk what micro
    }
    for (r = 0; r < ranks; r++) print row[r]
}
