/* wires.c: what each wire carries in a step: of an ordered pair of ranks, or of a
 * pair that has one for both directions.
 *
 * Reads: messages, nodes, cost. A queue is what has been handed to the wire and
 * has not left it: the message that travels and those behind it. */
#include "show.h"

#include <stdlib.h>

typedef struct Load {
    const Message *first;  // of one wire; the others lie behind it
    int count, longest;
    double bytes, busy;
} Load;

/* Both times ascend along the wire. */
static int longest_queue(const Program *p, const Message *messages, int count)
{
    int longest = 0;
    for (int k = 0, left = 0; k < count; k++) {
        double sent = p->nodes[messages[k].send].start;
        while (left < k && messages[left].end <= sent)
            left++;
        longest = k + 1 - left > longest ? k + 1 - left : longest;
    }
    return longest;
}

static Load load_of(const Program *p, int first)
{
    Load load = {.first = &p->messages[first]};
    do {
        const Message *message = &p->messages[first + load.count++];
        load.bytes += message_bytes(p, message->boundary);
        load.busy += message->end - message->begin;
    } while (first + load.count < p->message_count &&
             p->messages[first + load.count].ordinal > 0);
    load.longest = longest_queue(p, load.first, load.count);
    return load;
}

static int by_busy(const void *a, const void *b)
{
    const Load *x = a, *y = b;
    if (x->busy != y->busy)
        return x->busy > y->busy ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

static void wire_line(Program *p, const Load *load, FILE *out)
{
    int from = place_of(p, load->first->send).rank,
        to = place_of(p, load->first->receive).rank;
    bool both = meeting_of(p) == MEET_PAIR,
         inside = p->set.node.value > 0 &&
                  machine_of(p, from) == machine_of(p, to);
    int one = both && to < from ? to : from;
    fprintf(
        out, "%4d %s %-4d %9d  %10s  %10s  %9s  %7d%s\n", one,
        both ? "<>" : "->", from + to - one, load->count,
        bytes_text(p->arena, load->bytes), seconds_text(p->arena, load->busy),
        share_text(p->arena, p->makespan > 0 ? load->busy / p->makespan : 0),
        load->longest, inside ? "  inside a machine" : "");
}

void wire_table(Program *p, FILE *out, bool all)
{
    enum { SHOWN = 8 };
    Load *loads = arena_take(p->arena,
                             sizeof *loads * (size_t)(p->message_count + 1));
    int count = 0;
    for (int i = 0; i < p->message_count; i += loads[count++].count)
        loads[count] = load_of(p, i);
    if (!count)
        return;
    if (!all)  // the busiest first
        qsort(loads, (size_t)count, sizeof *loads, by_busy);
    fputs("wire          messages       bytes        busy  of the step  "
          "longest queue\n",
          out);
    for (int i = 0; i < count && (all || i < SHOWN); i++)
        wire_line(p, &loads[i], out);
    if (!all && count > SHOWN)
        fprintf(out, "(%d more, less busy; --all shows them)\n", count - SHOWN);
}
