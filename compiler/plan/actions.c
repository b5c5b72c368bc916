/* actions.c: kinds of actions: their names, "2F3" both ways, and which of them
 * compute, send or receive. Whoever has an action asks here what it is. */
#include "compile.h"

#include <string.h>

const char *const action_names[ACTION_KIND_COUNT] = {
#define AS_TEXT(name, text) text,
    ACTION_KINDS(AS_TEXT)
#undef AS_TEXT
};

const char *action_text(Program *p, Action action)
{
    if (action.kind == ACT_STEP)
        return "STEP";
    if (action.kind == ACT_REDUCE)
        return text_format(p->arena, "REDUCE %s",
                           p->parameters[p->ties[action.micro].root].name);
    return text_format(p->arena, "%d%s%d", action.chunk,
                       action_names[action.kind], action.micro);
}

void push_action(Program *p, List *list, Action action)
{
    list->at = array_grow(p->arena, list->at, list->count, sizeof *list->at);
    list->at[list->count++] = action;
}

Origin origin_of(Program *p, int rank, int entry)
{
    return p->origin ? p->origin(p, rank, entry)
                     : (Origin){{-1, 0, 0}, ""};
}

Origin origin_in_lists(Program *p, int rank, int index)
{
    const List *list = &p->lists[rank];
    ActionKind kind = list->at[index].kind;
    bool sends = kind == ACT_SEND_F || kind == ACT_SEND_B;
    int entry = -1;
    for (int i = 0; i <= index; i++)
        entry += list->at[i].kind <= ACT_W;
    if ((kind > ACT_W && !sends) || entry < 0)
        return (Origin){{-1, 0, 0}, ""};
    return origin_of(p, rank, entry);
}

