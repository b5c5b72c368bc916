/* search_wires.h: when messages are there: "Times of a step" of docs/language.md,
 * for clocks that know only Problems and Orders.
 *
 * Every ordered pair of ranks is a wire that carries one message at a time, in the
 * order in which the sender has computed them. A rank receives, before the entry
 * that needs a message, all that are before it on its wire; where receives are
 * posted, it does so when it comes to the entry before that one:
 *
 *     entries of a rank      i-2        i-1        i
 *     posted for i              ^ here: at the end of i-2
 *
 * All that was posted earlier is needed by an entry before i, and nothing posted
 * later can be in front of it. So a message, and with it those before it that are
 * still open, can be timed when an entry needs it, from three numbers: its SEND,
 * the end of the message before it, and the end of entry i-2.
 *
 * Adapters that ranks of a machine share are not known here; `prove` times them in
 * every order that is kept. */
#ifndef SEARCH_WIRES_H
#define SEARCH_WIRES_H

#include "search.h"

typedef struct Parcel {
    double sent, wire, delay;
    double there;  // at the receiver, once timed
} Parcel;

typedef struct Wire {
    int first;     // its parcels begin here
    int sent;      // parcels so far
    int timed;     // of these
    double end;    // of the last one timed
    double there;  // blocking: the latest arrival of all timed
} Wire;

typedef struct Wires {
    const Problem *q;
    bool matter;    // else a message is there at its end and `message` later
    int *out[2];    // [chunk] wire of what its F, its I sends; -1: none
    int *place[2];  // [chunk * microbatches + micro] on its wire
    Wire *wires;
    int count;
    Parcel *parcels;
} Wires;

/* Do wires or posted receives make a difference to this problem. */
bool wires_matter(const Problem *q);
Wires wires_open(const Problem *q);
void wires_clear(Wires *w);
void wires_close(Wires *w);

/* The boundary that the F or I of a chunk sends over; q->chunks: none. */
static inline int boundary_of(int kind, int chunk)
{
    return kind == SEARCH_F ? chunk + 1 : chunk;
}

/* `kind` of `chunk` has ended: what it sends is handed to its wire. */
static inline void wires_send(Wires *w, int kind, int chunk, int micro, double end)
{
    if (!w->matter || kind == SEARCH_W || w->out[kind][chunk] < 0)
        return;
    const Problem *q = w->q;
    Wire *wire = &w->wires[w->out[kind][chunk]];
    int boundary = boundary_of(kind, chunk);
    w->place[kind][chunk * q->microbatches + micro] = wire->sent;
    w->parcels[wire->first + wire->sent++] = (Parcel){end, q->wire ? q->wire[boundary] : 0,
                                                      q->message[boundary], 0};
}

/* Times the parcels of a wire up to a place; when that one is there. */
static inline double wire_meet(const Wires *w, Wire *wire, int place, double post)
{
    for (; wire->timed <= place; wire->timed++) {
        Parcel *p = &w->parcels[wire->first + wire->timed];
        double begin = p->sent > wire->end ? p->sent : wire->end;
        if (w->q->posted && post > begin)
            begin = post;
        wire->end = begin + p->wire;
        p->there = wire->end + p->delay;
        if (!w->q->posted && wire->there > p->there)
            p->there = wire->there;
        wire->there = p->there;
    }
    return w->parcels[wire->first + place].there;
}

/* When what `kind` of `chunk`, ended at `end`, hands over is there, if the entry
 * that needs it comes next on its rank; `post` is the end of the entry before that
 * rank's last one. */
static inline double wires_arrival(const Wires *w, int kind, int chunk, int micro, double end,
                                   double post)
{
    if (!w->matter)
        return end + w->q->message[boundary_of(kind, chunk)];
    if (w->out[kind][chunk] < 0)
        return end;
    Wire wire = w->wires[w->out[kind][chunk]];
    return wire_meet(w, &wire, w->place[kind][chunk * w->q->microbatches + micro], post);
}

/* The same, and the entry does come next. */
static inline double wires_take(Wires *w, int kind, int chunk, int micro, double end, double post)
{
    if (!w->matter)
        return end + w->q->message[boundary_of(kind, chunk)];
    if (w->out[kind][chunk] < 0)
        return end;
    return wire_meet(w, &w->wires[w->out[kind][chunk]],
                     w->place[kind][chunk * w->q->microbatches + micro], post);
}

#endif
