/* memory_place.c: the second half of memory: offsets, and the waits that
 * follow.
 *
 * Reads: blocks with their lives. Writes: offsets and slots of blocks,
 * arena_floats, peak_floats; adds WAITs to lists. Guarantees: blocks that share
 * a byte do not live at the same time; before a sent buffer is written again,
 * and before the step ends, its message is waited for. */
#include "memory.h"
#include "nodes.h"

#include <stdlib.h>

typedef struct Slots {  // the places of one kind of block of one chunk
    size_t *offsets;
    int count;
} Slots;

typedef struct Placer {
    Program *p;
    int rank;
    int *ids, count;  // the rank's blocks of micro-batches, in order of birth
    Slots *slots;     // [kind][chunk]
} Placer;

/* ---- packing ---- */

static int larger_then_earlier(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    if (x->floats != y->floats)
        return x->floats > y->floats ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/* All items so far of one size at one offset. They come in order of birth and
 * never live at the same time, so their deaths ascend, too. */
typedef struct Shelf {
    size_t offset, floats;
    const Item **items;
    int count;
} Shelf;

typedef struct Packing {
    Arena *arena;
    Shelf *shelves;  // by offset
    int count;
    size_t tallest;  // floats of the largest item
} Packing;

/* An item of the shelf that lives at the same time, or NULL. */
static const Item *in_the_way(const Shelf *shelf, const Item *item)
{
    int low = 0, high = shelf->count;
    while (low < high) {  // the first that has not died before this one is born
        int middle = (low + high) / 2;
        if (shelf->items[middle]->last >= item->first)
            high = middle;
        else
            low = middle + 1;
    }
    if (low < shelf->count && shelf->items[low]->first <= item->last)
        return shelf->items[low];
    return NULL;
}

static int first_shelf_at(const Packing *packing, size_t offset)
{
    int low = 0, high = packing->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (packing->shelves[middle].offset >= offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void put_on_shelf(Packing *packing, const Item *item)
{
    int at = first_shelf_at(packing, item->offset);
    Shelf *shelf = packing->shelves;
    while (at < packing->count && shelf[at].offset == item->offset &&
           shelf[at].floats != item->floats)
        at++;
    if (at == packing->count || shelf[at].offset != item->offset) {
        packing->shelves = shelf = array_grow(packing->arena, shelf,
                                              packing->count, sizeof *shelf);
        for (int k = packing->count++; k > at; k--)
            shelf[k] = shelf[k - 1];
        shelf[at] = (Shelf){item->offset, item->floats, NULL, 0};
    }
    shelf[at].items = array_grow(packing->arena, shelf[at].items,
                                 shelf[at].count, sizeof *shelf[at].items);
    shelf[at].items[shelf[at].count++] = item;
}

/* The lowest place at `from` or above that is free over the item's life.
 * `soonest` becomes the first death among what keeps it from lower places. */
static size_t lowest_place(const Packing *packing, const Item *item,
                           size_t from, int *soonest)
{
    size_t offset = from;
    size_t reach = from > packing->tallest ? from - packing->tallest : 0;
    for (int i = first_shelf_at(packing, reach); i < packing->count; i++) {
        const Shelf *shelf = &packing->shelves[i];
        if (shelf->offset >= offset + item->floats)
            break;
        if (shelf->offset + shelf->floats <= offset)
            continue;
        const Item *other = in_the_way(shelf, item);
        if (!other)
            continue;
        offset = shelf->offset + shelf->floats;
        *soonest = other->last < *soonest ? other->last : *soonest;
    }
    return offset;
}

/* Greedy by size: each item goes to the lowest place that is free over its
 * whole life. Items of one size that come in order of birth use no more places
 * than are alive at once. Returns the height.
 *
 * While all that kept the item before, of the same size, from lower places
 * lives on with this one, this one cannot lie lower: the search starts above
 * that one. So gpipe's many blocks, all alive at once, cost no search. */
size_t pack(Arena *arena, Item *items, int count)
{
    Packing packing = {.arena = arena};
    size_t height = 0;
    int soonest = 0;
    qsort(items, (size_t)count, sizeof *items, larger_then_earlier);
    packing.tallest = count ? items[0].floats : 0;
    for (int i = 0; i < count; i++) {
        Item *item = &items[i];
        const Item *before = i ? &items[i - 1] : item;
        size_t from = 0;
        if (i && before->floats == item->floats && before->last <= item->last &&
            before->last >= item->first && soonest >= item->first) {
            from = before->offset + before->floats;
            soonest = before->last < soonest ? before->last : soonest;
        } else {
            soonest = item->last;
        }
        item->offset = lowest_place(&packing, item, from, &soonest);
        put_on_shelf(&packing, item);
        if (item->offset + item->floats > height)
            height = item->offset + item->floats;
    }
    return height;
}

/* ---- offsets ---- */

static size_t stack_lasting(Program *p, int rank)
{
    size_t height = 0;
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++) {
        Block *b = &p->blocks[i];
        if (b->rank != rank)
            continue;
        b->offset = height;
        height += b->floats;
    }
    return height;
}

static size_t most_alive(Arena *arena, const Item *items, int count,
                         int entries)
{
    ptrdiff_t *change = arena_take(arena,
                                   sizeof *change * (size_t)(entries + 2));
    ptrdiff_t alive = 0, peak = 0;
    for (int i = 0; i < count; i++) {
        change[items[i].first] += (ptrdiff_t)items[i].floats;
        change[items[i].last + 1] -= (ptrdiff_t)items[i].floats;
    }
    for (int i = 0; i <= entries; i++) {
        alive += change[i];
        peak = alive > peak ? alive : peak;
    }
    return (size_t)peak;
}

/* Blocks of one kind and chunk that lie at the same place have one slot. */
static void number_slot(Placer *placer, Block *b)
{
    Slots *s = &placer->slots[(b->kind - BLOCK_KEEP) * placer->p->chunk_count +
                              b->chunk];
    for (b->slot = 0; b->slot < s->count; b->slot++)
        if (s->offsets[b->slot] == b->offset)
            return;
    s->offsets = array_grow(placer->p->arena, s->offsets, s->count,
                            sizeof *s->offsets);
    s->offsets[s->count++] = b->offset;
}

static void place_rank(Placer *placer)
{
    Program *p = placer->p;
    size_t base = stack_lasting(p, placer->rank);
    Item *items = arena_take(p->arena,
                             sizeof *items * (size_t)(placer->count + 1));
    for (int i = 0; i < placer->count; i++) {
        const Block *b = &p->blocks[placer->ids[i]];
        items[i] = (Item){b->floats, 0, b->first, b->last, placer->ids[i]};
    }
    p->peak_floats[placer->rank] = base +
                                   most_alive(p->arena, items, placer->count,
                                              p->lists[placer->rank].count);
    p->arena_floats[placer->rank] = base + pack(p->arena, items, placer->count);
    for (int i = 0; i < placer->count; i++)
        p->blocks[items[i].id].offset = base + items[i].offset;
    for (int i = 0; i < placer->count; i++)
        number_slot(placer, &p->blocks[placer->ids[i]]);
}

/* ---- waits ---- */

/* The first entry after its life at which another block begins in the same
 * bytes; -1: none. */
static int reused_at(const Placer *placer, const Block *sent)
{
    int low = 0, high = placer->count;
    while (low < high) {  // the first block born after the sent one has died
        int middle = (low + high) / 2;
        if (placer->p->blocks[placer->ids[middle]].first > sent->last)
            high = middle;
        else
            low = middle + 1;
    }
    for (; low < placer->count; low++) {
        const Block *b = &placer->p->blocks[placer->ids[low]];
        if (b->offset < sent->offset + sent->floats &&
            sent->offset < b->offset + b->floats)
            return b->first;
    }
    return -1;
}

static int by_entry(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

/* Of one wire, from the rank's last message back, the entry before which each
 * must be waited for: a wait covers all earlier messages, so one that is due no
 * earlier than a later one's is left out. */
static void wire_waits(Program *p, int rank, int send, const int *due,
                       int *waits, int *count)
{
    int earliest = p->lists[rank].count;  // of later messages
    for (; send >= 0; send = p->nodes[send].wire) {
        if (place_of(p, send).rank != rank)
            continue;  // the peer's, where both send on one wire
        int i = send - p->first_node[rank];
        int entry = due[i] < 0 ? p->lists[rank].count - 1 : due[i];  // the STEP
        if (entry >= earliest)
            continue;
        waits[2 * *count] = entry;
        waits[2 * (*count)++ + 1] = i;
        earliest = entry;
    }
}

/* The lives of the rank's blocks move with the entries. */
static void move_lives(Program *p, int rank, const int *moved)
{
    for (int i = 0; i < p->block_count; i++) {
        if (p->blocks[i].rank != rank)
            continue;
        p->blocks[i].first = moved[p->blocks[i].first];
        p->blocks[i].last = moved[p->blocks[i].last];
    }
}

static void insert_waits(Program *p, int rank, const int *waits, int count)
{
    List *old = &p->lists[rank], list = {NULL, 0, 0, 0};
    int *moved = arena_take(p->arena, sizeof *moved * (size_t)(old->count + 1));
    for (int i = 0, next = 0; i < old->count; i++) {
        if (i == old->steady)
            list.steady = list.count;
        if (i == old->cooldown)
            list.cooldown = list.count;
        for (; next < count && waits[2 * next] == i; next++) {
            Action a = old->at[waits[2 * next + 1]];
            a.kind = is_back(a.kind) ? ACT_WAIT_B : ACT_WAIT_F;
            push_action(p, &list, a);
        }
        moved[i] = list.count;
        push_action(p, &list, old->at[i]);
    }
    move_lives(p, rank, moved);
    *old = list;
}

static void add_waits(const Placer *placer)
{
    Program *p = placer->p;
    const List *list = &p->lists[placer->rank];
    size_t entries = (size_t)list->count + 1;
    int *due = arena_take(p->arena, sizeof *due * entries);
    int *waits = arena_take(p->arena, sizeof *waits * 2 * entries), count = 0;
    bool *ended = arena_take(p->arena, sizeof *ended * (size_t)p->ranks);
    for (int i = 0; i < list->count; i++) {
        Action a = list->at[i];
        BlockKind kind = is_back(a.kind) ? BLOCK_DX : BLOCK_Y;
        if (is_send(a.kind))
            due[i] = reused_at(
                placer, &p->blocks[find_block_of(p, kind, a.chunk, a.micro)]);
    }
    for (int i = list->count; i-- > 0;) {
        int peer = list->at[i].peer;
        if (!is_send(list->at[i].kind) || ended[peer])
            continue;
        ended[peer] = true;
        wire_waits(p, placer->rank, node_at(p, placer->rank, i), due, waits,
                   &count);
    }
    qsort(waits, (size_t)count, 2 * sizeof *waits, by_entry);
    insert_waits(p, placer->rank, waits, count);
}

/* ---- all ranks ---- */

/* Ids of the blocks of micro-batches, sorted by rank, then by birth. The birth
 * of a block is an entry of its rank's list, so a counting sort does it. */
static int *by_rank_and_birth(Program *p, int *first_of_rank)
{
    int *start = arena_take(p->arena, sizeof *start * (size_t)(p->ranks + 1));
    for (int r = 0; r < p->ranks; r++)
        start[r + 1] = start[r] + p->lists[r].count;
    int *count = arena_take(p->arena,
                            sizeof *count * (size_t)(start[p->ranks] + 1));
    int *ids = arena_take(p->arena, sizeof *ids * (size_t)(p->block_count + 1));
    for (int i = 0; i < p->block_count; i++)
        if (p->blocks[i].kind >= BLOCK_KEEP)
            count[start[p->blocks[i].rank] + p->blocks[i].first + 1]++;
    for (int i = 0; i < start[p->ranks]; i++)
        count[i + 1] += count[i];
    for (int r = 0; r <= p->ranks; r++)
        first_of_rank[r] = count[start[r]];
    for (int i = 0; i < p->block_count; i++)
        if (p->blocks[i].kind >= BLOCK_KEEP)
            ids[count[start[p->blocks[i].rank] + p->blocks[i].first]++] = i;
    return ids;
}

void place_blocks(Program *p)
{
    int *first = arena_take(p->arena, sizeof *first * (size_t)(p->ranks + 1));
    int *ids = by_rank_and_birth(p, first);
    Placer placer = {.p = p};
    placer.slots = arena_take(
        p->arena, sizeof *placer.slots * (size_t)p->chunk_count * MICRO_KINDS);
    for (placer.rank = 0; placer.rank < p->ranks; placer.rank++) {
        placer.ids = ids + first[placer.rank];
        placer.count = first[placer.rank + 1] - first[placer.rank];
        place_rank(&placer);
        add_waits(&placer);
    }
}
