/* shown.h: text that may hold anything, on a terminal. */
#ifndef PP_SHOWN_H
#define PP_SHOWN_H

/* In place: each byte that is not seen, a new line or a part of an escape
 * sequence, becomes a question mark; letters of UTF-8 stay. */
void pp_show(char *text);

#endif
