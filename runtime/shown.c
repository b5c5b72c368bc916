/* shown.c: names of files reach the messages of ranks and of pprun. What a
 * terminal would obey in them, or what would break a line in two, does not. The
 * rules are those of the compiler's compiler/escape.c, which cannot be used here:
 * tests/escape holds the two equal. */
#include "shown.h"

static const struct {
    long first, last;
} hidden[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
              {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
              {0xd800, 0xdfff}, {0xfeff, 0xfeff}, {0xfffe, 0xffff}};

static int is_seen(long code)
{
    for (unsigned i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (code >= hidden[i].first && code <= hidden[i].last)
            return 0;
    return code <= 0x10ffff;
}

/* Of the character at `text`; 0: it is none, or not seen. A string's end is no
 * byte of a letter, so nothing is read behind it. */
static int bytes_of(const unsigned char *text)
{
    static const long least[] = {0, 0, 0x80, 0x800, 0x10000};
    int bytes = text[0] < 0x80   ? 1
                : text[0] < 0xc2 ? 0
                : text[0] < 0xe0 ? 2
                : text[0] < 0xf0 ? 3
                : text[0] < 0xf5 ? 4
                                 : 0;
    long code = bytes == 1 ? text[0] : text[0] & (0x7f >> bytes);
    for (int i = 1; i < bytes; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    return bytes && code >= least[bytes] && is_seen(code) ? bytes : 0;
}

void pp_show(char *text)
{
    for (int bytes; *text; text += bytes ? bytes : 1) {
        bytes = bytes_of((const unsigned char *)text);
        if (!bytes)
            *text = *text == '\t' ? ' ' : '?';
    }
}
