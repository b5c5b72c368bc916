/* data.c: the training data: what sample (step, micro, row) is, for every rank
 * and every schedule.
 *
 * Sample g = (step * microbatches + micro) * rows + row, counted from step 0,
 * begins at
 *     splitmix64(splitmix64(seed) ^ g) % (tokens - seq)    tokens; targets lie one later
 *     splitmix64(splitmix64(seed) ^ g) % records           numbers
 * so nobody keeps a position, and a rank reads a sample only if it needs it.
 * Files of tokens are mapped; files of numbers are text, read once at the
 * start. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail.h"
#include "job.h"
#include "random.h"

enum {
    CHECKED_AT_START = 1 << 24
};  // tokens: the cheap part of a check that is also made on use

typedef struct File {
    const char *path;
    int fd;                // open as long as the data is read
    const uint8_t *bytes;  // NULL if empty
    size_t size;
    size_t first, count;  // tokens before it, tokens in it
} File;

static struct {
    File *files;  // sorted by name; read as one
    int file_count;
    size_t count;   // tokens, or records
    float *values;  // numbers: [records][seq * (input_width + target_width)]
    size_t value_count, value_room;
} data;

/* ---- files ---- */

static void map_file(File *file)
{
    /* A pipe would wait for its writer here. */
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat state;
    if (fd < 0 || fstat(fd, &state) != 0)
        pp_fail("cannot open the data %s: %s", file->path, strerror(errno));
    if (!S_ISREG(state.st_mode))
        pp_fail("the data %s is not a regular file", file->path);
    file->size = (size_t)state.st_size;
    if (file->size > 0) {
        void *bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
            pp_fail("cannot read the data %s: %s", file->path, strerror(errno));
        file->bytes = bytes;
    }
    file->fd = fd;
}

/* Beyond the end of a file that became shorter its last page reads as zeros, and
 * every page behind it is a signal. */
static void check_length(const File *file)
{
    struct stat state;
    if (fstat(file->fd, &state) != 0 || (size_t)state.st_size < file->size)
        pp_fail("the data %s became shorter while it was read: %zu bytes, "
                "now %lld",
                file->path, file->size, (long long)state.st_size);
}

/* The signal comes from the load that meets the missing page, so it may say what
 * it knows. Any other is left to kill as it would. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    const uint8_t *at = info->si_addr;
    (void)context;
    for (int i = 0; i < data.file_count; i++) {
        const File *file = &data.files[i];
        if (file->bytes && at >= file->bytes && at < file->bytes + file->size) {
            check_length(file);
            pp_fail("cannot read the data %s: its disk failed", file->path);
        }
    }
    signal(number, SIG_DFL);
}

static void watch_files(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error,
                               .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

/* All files stay open. */
static void allow_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
        limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void find_files(const char *pattern)
{
    glob_t found = {0};
    char here[512];
    int status = pattern && *pattern ? glob(pattern, GLOB_TILDE, NULL, &found)
                                     : GLOB_NOMATCH;
    if (status == GLOB_NOMATCH)
        pp_fail(
            "no data: nothing is named '%s' in %s; give the place with --data",
            pattern ? pattern : "",
            getcwd(here, sizeof here) ? here : "the current folder");
    if (status != 0)
        pp_fail("cannot look for the data %s: %s", pattern, strerror(errno));
    data.file_count = (int)found.gl_pathc;
    data.files = calloc(found.gl_pathc, sizeof *data.files);
    if (!data.files)
        pp_fail("out of memory");
    watch_files();
    allow_files();
    for (int i = 0; i < data.file_count; i++) {
        data.files[i].path =
            found.gl_pathv[i];  // `found` is kept for its names
        map_file(&data.files[i]);
    }
}

/* ---- tokens ---- */

static size_t token_bytes(void)
{
    switch (pp_job.plan.data.format) {
    case PP_UINT16: return 2;
    case PP_UINT32: return 4;
    default: return 1;
    }
}

static uint32_t read_token(const File *file, size_t i)
{
    switch (token_bytes()) {
    case 2: {
        const uint8_t *b = file->bytes + 2 * i;
        return (uint32_t)b[0] | (uint32_t)b[1] << 8;
    }
    case 4: {
        const uint8_t *b = file->bytes + 4 * i;
        return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
               (uint32_t)b[3] << 24;
    }
    default: return file->bytes[i];
    }
}

static uint32_t checked_token(const File *file, size_t i)
{
    uint32_t token = read_token(file, i);
    uint32_t vocabulary = (uint32_t)pp_job.plan.data.vocabulary;
    if (token >= vocabulary)
        pp_fail("token %u at position %zu of %s, but the vocabulary is %u (0 "
                "to %u)",
                token, i, file->path, vocabulary, vocabulary - 1);
    return token;
}

static void check_first_tokens(void)
{
    size_t left = CHECKED_AT_START;
    for (int f = 0; f < data.file_count; f++)
        for (size_t i = 0; i < data.files[f].count && left > 0; i++, left--)
            checked_token(&data.files[f], i);
}

static void open_tokens(void)
{
    size_t unit = token_bytes(), needed = (size_t)pp_job.plan.data.seq + 1;
    for (int i = 0; i < data.file_count; i++) {
        File *file = &data.files[i];
        if (file->size % unit != 0)
            pp_fail(
                "%s has %zu bytes, which is no whole number of %zu-byte tokens",
                file->path, file->size, unit);
        file->first = data.count;
        file->count = file->size / unit;
        data.count += file->count;
    }
    if (data.count < needed)
        pp_fail("%s has %zu tokens, but a sample of %d and its target need at "
                "least %zu",
                pp_job.plan.data.path, data.count, pp_job.plan.data.seq,
                needed);
    check_first_tokens();
}

/* ---- numbers ---- */

static void append_value(float value)
{
    if (data.value_count == data.value_room) {
        data.value_room = data.value_room ? 2 * data.value_room : 4096;
        data.values = realloc(data.values,
                              data.value_room * sizeof *data.values);
        if (!data.values)
            pp_fail("out of memory");
    }
    data.values[data.value_count++] = value;
}

static int is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A word as it can be shown: what is no letter as \\ooo. */
static void show_word(char *text, size_t room, const uint8_t *word,
                      size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length && used + 5 < room; i++)
        used += (size_t)snprintf(
            text + used, room - used,
            word[i] > 32 && word[i] < 127 ? "%c" : "\\%03o", word[i]);
}

/* In decimal. The file ends without a zero, so the word is copied. */
static float parse_value(const File *file, size_t at, size_t length, long line)
{
    char word[64] = "", shown[80] = "", *end = word;
    float value = NAN;
    if (length < sizeof word) {
        memcpy(word, file->bytes + at, length);
        if (strspn(word, "0123456789+-.eE") == length)
            value = strtof(word, &end);
    }
    if (!isfinite(value) || end != word + length) {
        show_word(shown, sizeof shown, file->bytes + at, length);
        pp_fail("%s:%ld: '%s' is not a number", file->path, line, shown);
    }
    return value;
}

static void parse_numbers(const File *file)
{
    const uint8_t *text = file->bytes;
    long line = 1;
    for (size_t i = 0; i < file->size;) {
        if (text[i] == '#') {
            while (i < file->size && text[i] != '\n')
                i++;
        } else if (is_space(text[i])) {
            line += text[i++] == '\n';
        } else {
            size_t at = i;
            while (i < file->size && !is_space(text[i]) && text[i] != '#')
                i++;
            append_value(parse_value(file, at, i - at, line));
        }
    }
}

static size_t record_values(void)
{
    const PpData *plan = &pp_job.plan.data;
    return (size_t)plan->seq * (size_t)(plan->input_width + plan->target_width);
}

static void open_numbers(void)
{
    const PpData *plan = &pp_job.plan.data;
    for (int i = 0; i < data.file_count; i++)
        parse_numbers(&data.files[i]);
    size_t record = record_values();
    if (data.value_count == 0 || data.value_count % record != 0)
        pp_fail("%s has %zu numbers, but each record is %zu: %d positions of "
                "%d inputs, then "
                "of %d targets",
                plan->path, data.value_count, record, plan->seq,
                plan->input_width, plan->target_width);
    data.count = data.value_count / record;
}

void pp_open_data(void)
{
    if (pp_job.plan.data.format == PP_NO_DATA)
        return;
    find_files(pp_job.plan.data.path);
    if (pp_job.plan.data.format == PP_NUMBERS)
        open_numbers();
    else
        open_tokens();
}

/* ---- samples ---- */

static uint64_t sample_hash(int micro, int row)
{
    uint64_t step = (uint64_t)pp_job.step - 1;
    uint64_t batch = step * (uint64_t)pp_job.plan.microbatches +
                     (uint64_t)micro;
    uint64_t sample = batch * (uint64_t)pp_job.plan.data.rows + (uint64_t)row;
    return pp_splitmix64(pp_splitmix64(pp_seed) ^ sample);
}

static void copy_tokens(int32_t *to, size_t start, size_t count)
{
    const File *file = data.files, *read = NULL;
    for (size_t i = start; i < start + count; i++) {
        while (i >= file->first + file->count)
            file++;
        if (read && read != file)
            check_length(read);
        read = file;
        *to++ = (int32_t)checked_token(file, i - file->first);
    }
    if (read)
        check_length(read);
}

static void load_tokens(int32_t *to, int micro, size_t later)
{
    size_t seq = (size_t)pp_job.plan.data.seq;
    for (int row = 0; row < pp_job.plan.data.rows; row++)
        copy_tokens(to + (size_t)row * seq,
                    sample_hash(micro, row) % (data.count - seq) + later, seq);
}

void pp_read_tokens(int32_t *tokens, int micro)
{
    load_tokens(tokens, micro, 0);
}

void pp_read_token_targets(int32_t *targets, int micro)
{
    load_tokens(targets, micro, 1);
}

static void load_numbers(float *to, int micro, size_t skipped, size_t count)
{
    for (int row = 0; row < pp_job.plan.data.rows; row++) {
        size_t record = sample_hash(micro, row) % data.count;
        memcpy(to + (size_t)row * count,
               data.values + record * record_values() + skipped,
               count * sizeof *to);
    }
}

void pp_read_numbers(float *values, int micro)
{
    const PpData *plan = &pp_job.plan.data;
    load_numbers(values, micro, 0,
                 (size_t)plan->seq * (size_t)plan->input_width);
}

void pp_read_number_targets(float *values, int micro)
{
    const PpData *plan = &pp_job.plan.data;
    size_t inputs = (size_t)plan->seq * (size_t)plan->input_width;
    load_numbers(values, micro, inputs,
                 (size_t)plan->seq * (size_t)plan->target_width);
}
