/* runtime.c: any bytes at all as training data in text, or as the header of a
 * saved shard, are read or refused: built from the runtime's own files, as
 * replay.c is from the compiler's. READER=numbers,
 * tokens or save chooses one; else each reads the same bytes. */
#include <setjmp.h>
#include <stdlib.h>

#include <glob.h>
#include <stdio.h>

/* The runtime keeps the names for as long as it runs; here they are given back. */
static glob_t names;

static int kept_glob(const char *pattern, int flags,
                     int (*failed)(const char *path, int error), glob_t *found)
{
    int status = glob(pattern, flags, failed, &names);
    *found = names;
    return status;
}
#define glob kept_glob

/* A refusal ends the process there, and with it the file that is open. */
static FILE *opened;

static FILE *kept_fopen(const char *path, const char *mode)
{
    return opened = fopen(path, mode);
}

static int kept_fclose(FILE *file)
{
    opened = file == opened ? NULL : opened;
    return fclose(file);
}

#include "data.c"
#define fopen kept_fopen
#define fclose kept_fclose
#include "save.c"
#undef fopen
#undef fclose

enum { LONGEST = 1 << 16 };

Job pp_job;
static jmp_buf refused;
static char name[40];

_Noreturn void pp_fail(const char *format, ...)
{
    (void)format;
    longjmp(refused, 1);
}

/* Any will do: it chooses the samples. */
uint64_t pp_splitmix64(uint64_t x)
{
    return x * 0x9e3779b97f4a7c15 >> 7;
}

/* What save.c asks of the rest of the runtime when it writes; here it reads. */
const float *pp_read_back(const float *values, size_t count)
{
    (void)count;
    return values;
}

void pp_meet_all(const char *what)
{
    (void)what;
}

/* A file that lies nowhere. */
static void write_file(const char *bytes, size_t length)
{
    static int file = -1;
    if (file < 0)
        file = memfd_create("fuzz", 0);
    if (file < 0 || ftruncate(file, 0) != 0 ||
        pwrite(file, bytes, length, 0) != (ssize_t)length)
        exit(1);
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
}

/* A refused file leaves what it was read into to the end of the process. */
static void forget_data(void)
{
    for (int i = 0; i < data.file_count; i++) {
        if (data.files[i].bytes)
            munmap((void *)data.files[i].bytes, data.files[i].size);
        if (data.files[i].fd > 0)
            close(data.files[i].fd);
    }
    free(data.files);
    globfree(&names);
    memset(&names, 0, sizeof names);
    free(data.values);
    memset(&data, 0, sizeof data);
}

/* Records of two positions, three inputs and one target each. */
static void read_numbers(const char *bytes, size_t length)
{
    float values[6];
    write_file(bytes, length);
    pp_job.plan.data = (PpData){.format = PP_NUMBERS,
                                .path = name,
                                .seq = 2,
                                .rows = 1,
                                .input_width = 3,
                                .target_width = 1};
    pp_job.plan.microbatches = 1;
    pp_job.step = 1;
    if (setjmp(refused) == 0) {
        pp_open_data();
        pp_read_numbers(values, 0);
        pp_read_number_targets(values, 0);
    }
    forget_data();
}

/* Bytes, then 16 and 32 bits wide. */
static void read_tokens(const char *bytes, size_t length)
{
    static const PpFormat formats[] = {PP_BYTES, PP_UINT16, PP_UINT32};
    int32_t tokens[4];
    write_file(bytes, length);
    for (int i = 0; i < 3; i++) {
        pp_job.plan.data = (PpData){.format = formats[i],
                                    .path = name,
                                    .seq = 4,
                                    .rows = 1,
                                    .vocabulary = 200};
        pp_job.plan.microbatches = 1;
        pp_job.step = 1;
        if (setjmp(refused) == 0) {
            pp_open_data();
            pp_read_tokens(tokens, 0);
            pp_read_token_targets(tokens, 0);
        }
        forget_data();
    }
}

static void read_save(const char *bytes, size_t length)
{
    char *volatile header = NULL;
    char *map = NULL;
    size_t size;
    write_file(bytes, length);
    FILE *out = open_memstream(&map, &size);
    if (setjmp(refused) == 0) {
        header = read_header(name);
        index_shard(out, name, header, 1);
    }
    fclose(out);
    if (opened)
        fclose(opened);
    opened = NULL;
    free(map);
    free(header);
}

static void read_all(const char *bytes, size_t length)
{
    const char *reader = getenv("READER");
    if (!reader || strcmp(reader, "numbers") == 0)
        read_numbers(bytes, length);
    if (!reader || strcmp(reader, "tokens") == 0)
        read_tokens(bytes, length);
    if (!reader || strcmp(reader, "save") == 0)
        read_save(bytes, length);
}

#ifndef REPLAY
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size <= LONGEST)
        read_all((const char *)bytes, size);
    return 0;
}
#else
int main(int argc, char **argv)
{
    static char text[LONGEST];
    int read = 0;
    for (int i = 1; i < argc; i++) {
        FILE *in = fopen(argv[i], "rb");
        if (!in)
            continue;
        fprintf(stderr, "%s\n", argv[i]);  // the last one before a crash
        read_all(text, fread(text, 1, LONGEST, in));
        fclose(in);
        read++;
    }
    printf("%d passed, %d failed\n", read, argc - 1 - read);
    return 0;
}
#endif
