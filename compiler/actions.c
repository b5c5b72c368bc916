/* actions.c: kinds of actions: their names, "2F3" both ways, and which of them
 * compute, send or receive. Whoever has an action asks here what it is. */
#include "compile.h"

#include <string.h>

const char *const action_names[ACTION_KIND_COUNT] = {
#define AS_TEXT(name, text, traits) text,
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

int phase_of(const List *list, int index)
{
    return (index >= list->steady) + (index >= list->cooldown);
}

static size_t read_number(const char *text, size_t length, int *number)
{
    enum { MOST = 1000000000 };
    size_t i = 0;
    long value = 0;
    for (; i < length && text[i] >= '0' && text[i] <= '9'; i++)
        value = value < MOST ? 10 * value + (text[i] - '0') : MOST;
    *number = value < MOST ? (int)value : MOST;
    return i;
}

bool read_action(const char *text, size_t length, Action *action)
{
    *action = (Action){.peer = -1};
    size_t first = read_number(text, length, &action->chunk), word = first;
    while (word < length && !(text[word] >= '0' && text[word] <= '9'))
        word++;
    size_t last = read_number(text + word, length - word, &action->micro);
    if (!first || !last || word + last != length)
        return false;
    for (int kind = 0; kind < ACT_REDUCE; kind++) {
        action->kind = (ActionKind)kind;
        if (strlen(action_names[kind]) == word - first &&
            memcmp(action_names[kind], text + first, word - first) == 0)
            return true;
    }
    return false;
}

void push_action(Program *p, List *list, Action action)
{
    list->at = array_grow(p->arena, list->at, list->count, sizeof *list->at);
    list->at[list->count++] = action;
}

Origin origin_of(Program *p, int rank, Action a)
{
    return p->origin && a.written ? p->origin(p, rank, a.written - 1)
                                  : (Origin){{-1, 0, 0}, ""};
}
