/* schedule_list.c: the schedules that a person names with commas between, as
 * --schedule of compare, diff and inspect takes them, and the file's own in
 * words. */
#include "order/exchange.h"
#include "read/check.h"
#include "escape.h"
#include "whatif.h"

#include <string.h>

/* Commas inside parentheses belong to a schedule's options. */
static const char *list_end(const char *at)
{
    int depth = 0;
    for (; *at && (*at != ',' || depth > 0); at++)
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
    return at;
}

static int wrong_schedule(Program *p, const char *list, const char *name)
{
    const char *near = nearest_schedule(p, name);
    fprintf(stderr,
            "pipec: `--schedule` cannot be `%s`: no schedule is called `%s`\n",
            shown_text(p->arena, list), shown_text(p->arena, name));
    if (near)
        fprintf(stderr, "  help: did you mean `%s`\n", near);
    else
        fputs("  help: `all`, or names with commas between; `pipec --help "
              "schedules` lists them\n",
              stderr);
    return 0;
}

static int all_schedules(Program *p, const char **schedules, int most)
{
    int count = 0, known = schedule_count + p->written_count;
    for (int i = 0; i < known && count < most; i++)
        if (!known_schedule(p, i)->searches)
            schedules[count++] = known_schedule(p, i)->name;
    return count;
}

const char *schedule_words(Program *p, int changed, double value)
{
    const Schedule *s = p->set.schedule;
    const char *list = "";
    if (p->set.schedule_path)
        return text_format(p->arena, "from \"%s\"", schedule_file(p));
    for (int i = 0; i < MOST_OPTIONS && s->option[i]; i++)
        if (i == changed || p->set.option[i].at.source >= 0)
            list = text_format(
                p->arena, "%s%s%s = %s", list, *list ? ", " : "", s->option[i],
                number_text(p, i == changed ? value : p->set.option[i].value));
    return *list ? text_format(p->arena, "%s(%s)", s->name, list) : s->name;
}

int schedule_list(Program *p, const char *list, const char **schedules,
                  int most)
{
    int count = 0;
    if (!list || strcmp(list, "all") == 0)
        return all_schedules(p, schedules, most);
    for (const char *at = list;; at++) {
        at += strspn(at, " ");
        const char *end = list_end(at),
                   *word = text_copy(p->arena, at, (size_t)(end - at)),
                   *name = text_copy(p->arena, word, strcspn(word, " ("));
        if (!find_schedule(p, name))
            return wrong_schedule(p, list, name);
        if (count == most) {
            fprintf(stderr,
                    "pipec: `--schedule` names more than %d schedules\n"
                    "  help: name fewer\n",
                    most);
            return 0;
        }
        schedules[count++] = word;
        at = end;
        if (!*at)
            return count;
    }
}
