/* nodes.h: questions to the graph that `prove` has kept. Nobody finds an edge
 * for himself: whoever needs to know what an action waited for asks here.
 *
 * `nodes` are the plan's, or a copy with other times: measured ones, or those of
 * other costs. */
#ifndef NODES_H
#define NODES_H

#include "compile.h"

int node_at(const Program *p, int rank, int index);
Place place_of(const Program *p, int node);
Action action_of(const Program *p, int node);
int find_node(const Program *p, ActionKind kind, int chunk, int micro);         // -1: there is none
int find_backward(const Program *p, int chunk, int micro);  // its B, or its I; -1
const Message *message_of(const Program *p, int node);      // of a SEND RECV TAKE WAIT; else NULL
int node_before(const Program *p, int node);                // on its rank; -1: it is the first
int compute_before(const Program *p, int node);             // the compute before it on its rank; -1
int maker_of(const Program *p, int node);                   // the compute that makes what it reads; -1
/* The edge that ended last, so that the entry could not end earlier: for a SEND,
 * what its message could not begin before. -1: it begins the step. Of edges that
 * end together the rank's own. */
int cause_of(const Program *p, const Node *nodes, int node);

typedef enum { WAITS_START, WAITS_RANK, WAITS_DATA, WAITS_LINK, WAITS_POST, WAITS_BUFFER, WAITS_OTHERS } Waits;
/* Why a compute does not start earlier: nothing, its rank was busy, the tensor
 * was not made, its link carried other messages, its receive was posted late, a
 * sent buffer was not free, a collective. `from` becomes the compute that it
 * waited for in the end, -1: none; `message` the SEND on the way, -1. */
Waits why_waits(const Program *p, const Node *nodes, int node, int *from, int *message);
int cause_compute(const Program *p, const Node *nodes, int node);               // that compute alone
/* Times of the same graph with other costs, the action `free` (-1: none) taking
 * none; returns the makespan. An adapter keeps its order. */
double retime(const Program *p, const Cost *cost, int free, Node *nodes);
/* Fills latest[node]: when a rank may go on from an entry at the latest without
 * a longer step, and next[node]: the entry that would begin too late otherwise;
 * -1: the step would end too late. */
void latest_ends(Program *p, double *latest, int *next);
int next_compute(const Program *p, const int *next, int node);                  // along these; -1

#endif
