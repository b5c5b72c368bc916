/* shown.c: what the runtime shows of a name is what the compiler shows of it: the
 * two have the rules each, as neither includes the other. */
#include "../../runtime/shown.c"
#include "escape.h"

#include <string.h>

static Arena *arena;
static int wrong;

static void same(const char *text)
{
    static char copy[64];
    strcpy(copy, text);
    pp_show(copy);
    wrong += strcmp(copy, shown_text(arena, text)) != 0;
}

static void bytes(void)
{
    char text[4] = "";
    for (int a = 1; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            text[0] = (char)a;
            text[1] = (char)b;
            text[2] = 'x';
            same(text);
        }
}

/* Each number as the letters of UTF-8 that it would have, in 2, 3 and 4 bytes. */
static void codes(void)
{
    static const unsigned char heads[] = {0xc0, 0xe0, 0xf0};
    char text[6];
    for (long code = 0; code < 0x1fffff; code += code < 0x11000 ? 1 : 61)
        for (int more = 1; more <= 3; more++) {
            long rest = code;
            memset(text, 0, sizeof text);
            for (int i = more; i > 0; i--, rest >>= 6)
                text[i] = (char)(0x80 | (rest & 0x3f));
            text[0] = (char)(heads[more - 1] | (rest & 0x3f >> more));
            same(text);
        }
}

int main(void)
{
    arena = arena_open();
    bytes();
    codes();
    printf("%s shown\n", wrong ? "not ok" : "ok");
    return wrong != 0;
}
