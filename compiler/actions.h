/* actions.h: what an action is: its kind, its name, "2F3" both ways, and where
 * a person has written it. Part of compile.h. */
#ifndef ACTIONS_H
#define ACTIONS_H

/* One row for each kind: its name, its word in a list, and what it is. */
enum { IS_COMPUTE = 1, IS_SEND = 2, IS_RECEIVE = 4, IS_WAIT = 8, IS_TAKE = 16, IS_COLLECTIVE = 32,
       IS_BACK = 64, IS_MESSAGE = IS_SEND | IS_RECEIVE | IS_WAIT | IS_TAKE };       // BACK: of a gradient
#define ACTION_KINDS(X) \
    X(F, "F", IS_COMPUTE) X(B, "B", IS_COMPUTE | IS_BACK) X(I, "I", IS_COMPUTE | IS_BACK) X(W, "W", IS_COMPUTE) \
    X(SEND_F, "SEND_F", IS_SEND) X(RECV_F, "RECV_F", IS_RECEIVE) \
    X(SEND_B, "SEND_B", IS_SEND | IS_BACK) X(RECV_B, "RECV_B", IS_RECEIVE | IS_BACK) \
    X(WAIT_F, "WAIT_F", IS_WAIT) X(WAIT_B, "WAIT_B", IS_WAIT | IS_BACK) \
    X(TAKE_F, "TAKE_F", IS_TAKE) X(TAKE_B, "TAKE_B", IS_TAKE | IS_BACK) \
    X(REDUCE, "REDUCE", IS_COLLECTIVE) X(STEP, "STEP", IS_COLLECTIVE)
typedef enum {
#define AS_ENUM(name, text, traits) ACT_##name,
    ACTION_KINDS(AS_ENUM)
#undef AS_ENUM
    ACTION_KIND_COUNT
} ActionKind;
enum { COMPUTE_KINDS = ACT_W + 1 };                         // F B I W: those with a duration
static inline int action_traits(ActionKind kind)
{
    static const int traits[] = {
#define AS_TRAITS(name, text, is) is,
        ACTION_KINDS(AS_TRAITS)
#undef AS_TRAITS
    };
    return traits[kind];
}
static inline bool is_compute(ActionKind kind) { return action_traits(kind) & IS_COMPUTE; }
static inline bool is_send(ActionKind kind) { return action_traits(kind) & IS_SEND; }
static inline bool is_receive(ActionKind kind) { return action_traits(kind) & IS_RECEIVE; }
static inline bool is_wait(ActionKind kind) { return action_traits(kind) & IS_WAIT; }
static inline bool is_take(ActionKind kind) { return action_traits(kind) & IS_TAKE; }
static inline bool is_message(ActionKind kind) { return action_traits(kind) & IS_MESSAGE; }
static inline bool is_back(ActionKind kind) { return action_traits(kind) & IS_BACK; }
static inline bool is_collective(ActionKind kind) { return action_traits(kind) & IS_COLLECTIVE; }

typedef struct Action {         // printed as in PyTorch's CSV: 2F0 3B1 2SEND_F0 3RECV_F0
    ActionKind kind;
    int chunk, micro;           // REDUCE: micro is the tie; STEP: both -1
    int peer;                   // SEND, RECV, WAIT, TAKE: the other rank; else -1
    int pair;                   // of an order: runs as one with the next, between the messages of both
    int written;                // where a person has written it, for `origin`, + 1; 0: it is pipec's own
} Action;

typedef struct List {           // one rank's actions in program order
    Action *at;
    int count;
    int steady, cooldown;       // where these phases begin
} List;

extern const char *const action_names[ACTION_KIND_COUNT];
void push_action(Program *p, List *list, Action action);
int phase_of(const List *list, int index);                  // 0 warmup, 1 steady, 2 cooldown
const char *action_text(Program *p, Action action);         // "2SEND_F0", in the arena
/* "2SEND_F0" -> kind, chunk, micro; the whole of `length` bytes. Numbers above a
 * billion are a billion. False: it is none. */
bool read_action(const char *text, size_t length, Action *action);

typedef struct Origin {         // of an entry of `order`, or of `lists`
    Span at;                    // in the .pipe file; source -1: it is pipec's own
    const char *text;           // " (x.csv, line 2, cell 4)", " (mine, line 14, m = 3)" or ""
} Origin;
Origin origin_of(Program *p, int rank, Action a);           // of a SEND that pipec has made: that of its compute

#endif
