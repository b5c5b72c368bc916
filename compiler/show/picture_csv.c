/* picture_csv.c: the schedule as PyTorch's pipelining reads it.
 *
 *     0F0,0F1,0B0,0B1          compute_only: row i is rank i
 *     0F0,0SEND_F0,0F1,...     compute_comms
 *
 * A chunk is a stage there, lines end in CR LF. Compute only has no empty
 * cells: a reader takes its order, not its columns. A pair is one cell,
 * (0F3;3B1)OVERLAP_F_B, where messages are not written out. */
#include "picture.h"

/* Several tied parameters of one stage are one REDUCE_GRAD. */
static bool repeats(const List *list, int index)
{
    for (int i = 0; i < index; i++)
        if (list->at[i].kind == ACT_REDUCE &&
            list->at[i].chunk == list->at[index].chunk)
            return true;
    return false;
}

static bool is_written(const List *list, int index, bool comms)
{
    ActionKind kind = list->at[index].kind;
    if (is_compute(kind))
        return true;
    return comms && (is_send(kind) || is_receive(kind) ||
                     (kind == ACT_REDUCE && !repeats(list, index)));
}

void picture_csv(Program *p, FILE *out, bool comms)
{
    for (int r = 0; r < p->ranks; r++) {
        const List *list = &p->lists[r];
        const char *gap = "";
        bool second = false;  // of a pair
        for (int i = 0; i < list->count; i++) {
            Action a = list->at[i];
            if (!is_written(list, i, comms))
                continue;
            bool pair = a.pair && !comms;
            if (a.kind == ACT_REDUCE)
                fprintf(out, "%s%dREDUCE_GRAD", gap, a.chunk);
            else
                fprintf(out, "%s%s%d%s%d%s", gap, pair ? "(" : "", a.chunk,
                        action_names[a.kind], a.micro,
                        second ? ")OVERLAP_F_B" : "");
            gap = pair ? ";" : ",";
            second = pair;
        }
        fputs("\r\n", out);
    }
}
