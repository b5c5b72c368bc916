/* fail.h: the one way to end a rank that cannot go on. The message goes to the
 * launcher, in one line that also names the rank and the action. */
#ifndef FAIL_H
#define FAIL_H

_Noreturn void pp_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
