/* text.c: quantities as text: seconds, bytes, rates, shares. Every output of
 * pipec prints them with these, so that no two write one thing in two ways. */
#include "compile.h"

#include <math.h>

typedef struct Unit {
    double least;  // the smallest value that is printed in it
    double scale;  // what one of it is
    const char *name;
} Unit;

/* Four digits, in the largest unit of which there is at least one. Rounding
 * comes first: 0.99999 s is "1 s", not "1000 ms". */
static const char *in_units(Arena *arena, double value, const Unit *units,
                            const char *behind)
{
    double size = fabs(value) * (1 + 5e-5);
    while (size < units->least && units[1].name)
        units++;
    double shown = value / units->scale;
    return text_format(arena, fabs(shown) < 9999.5 ? "%.4g %s%s" : "%.0f %s%s",
                       shown == 0 ? 0 : shown, units->name, behind);
}

const char *seconds_text(Arena *arena, double seconds)
{
    static const Unit units[] = {{1, 1, "s"},
                                 {1e-3, 1e-3, "ms"},
                                 {1e-6, 1e-6, "us"},
                                 {0, 1e-9, "ns"},
                                 {0, 0, NULL}};
    return seconds == 0 ? "0 s" : in_units(arena, seconds, units, "");
}

static const Unit byte_units[] = {
    {1e15, 1e15, "PB"}, {1e12, 1e12, "TB"}, {1e9, 1e9, "GB"}, {1e6, 1e6, "MB"},
    {1e3, 1e3, "kB"},   {0, 1, "B"},        {0, 0, NULL}};

const char *bytes_text(Arena *arena, double bytes)
{
    return in_units(arena, bytes, byte_units, "");
}

const char *rate_text(Arena *arena, double bytes)
{
    return in_units(arena, bytes, byte_units, "/s");
}

const char *share_text(Arena *arena, double share)
{
    double percent = round(share * 1e4) / 1e2;
    return text_format(arena, "%.2f %%", percent == 0 ? 0 : percent);
}
