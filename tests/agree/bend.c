/* bend.c: pipec, with one edge of the graph bent that `prove` keeps: for bend.sh.
 *
 * It is linked with --wrap=prove, so that every pass that proves comes here. When
 * memory has placed its waits, and the graph is the one that all outputs read,
 * the environment's BEND says what becomes of it:
 *
 *     none      nothing; but all times are found anew, through the kept edges
 *     wire      one message no longer waits for the one before it on its wire
 *     post      one message no longer waits until its receive is posted
 *     arrival   all messages of one boundary take longer
 *
 * The edge is the first whose loss changes the makespan: outputs that find an
 * edge for themselves go on saying what they said. */
#include "plan/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool __real_prove(Program *p);
bool __wrap_prove(Program *p);

/* Does the step take another time with this edge; if not, it is as before. */
static bool turn(Program *p, int *edge, int to, Node *nodes)
{
    int kept = *edge;
    *edge = to;
    if (fabs(retime(p, &p->cost, -1, nodes) - p->makespan) > 1e-9 * p->makespan)
        return true;
    *edge = kept;
    return false;
}

/* A post that leads to the SEND itself is over when the SEND is. */
static void turn_one(Program *p, bool post, Node *nodes)
{
    for (int i = 0; i < p->message_count; i++) {
        int send = p->messages[i].send;
        Node *own = &p->nodes[send];
        int *edge = post ? &own->post : &own->wire;
        if (*edge >= 0 && turn(p, edge, post ? send : -1, nodes))
            return;
    }
}

/* The same however often it is done: plans of other settings keep the costs. */
static void lengthen(Program *p)
{
    size_t size = sizeof *p->cost.delay * (size_t)p->chunk_count;
    double *delay = arena_take(p->arena, size);
    memcpy(delay, p->cost.delay, size);
    delay[p->chunk_count / 2] = p->cost.unit ? 3 : 3.3e-3;
    p->cost.delay = delay;
}

static void bend(Program *p, const char *how)
{
    size_t size = sizeof *p->nodes * (size_t)p->first_node[p->ranks];
    Node *nodes = arena_take(p->arena, size + 1);
    if (strcmp(how, "arrival") == 0)
        lengthen(p);
    else if (strcmp(how, "none") != 0)
        turn_one(p, strcmp(how, "post") == 0, nodes);
    p->makespan = retime(p, &p->cost, -1, nodes);
    memcpy(p->nodes, nodes, size);
    for (int i = 0; i < p->message_count && strcmp(how, "none") != 0; i++) {
        Message *message = &p->messages[i];
        message->end = nodes[message->send].end -
                       p->cost.delay[message->boundary];
        message->begin = message->end - p->cost.wire[message->boundary];
    }
}

bool __wrap_prove(Program *p)
{
    const char *how = getenv("BEND");
    if (!__real_prove(p))
        return false;
    if (how && p->arena_floats)
        bend(p, how);
    return true;
}
