/* save.c: the parameters of a run as safetensors: one file per rank, and an
 * index by rank 0.
 *
 *     DIR/gpt-rank0-of-2.safetensors     header length (8 bytes) | header (JSON) | float32 data
 *     DIR/gpt-rank1-of-2.safetensors
 *     DIR/model.safetensors.index.json   which file holds which parameter
 *
 * A file gets its name only when those of all ranks are complete and on the disk
 * (write, fsync, meet, rename); the index comes after all of them. So a rank that
 * fails, or a parameter that is no number, leaves an earlier save as it was. Rank 0 knows only its own
 * parameters, so it reads the names from the headers. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail.h"
#include "job.h"

enum { PATH = 4096, SAVE_FORMAT = 1 };

typedef struct Saved {
    const char *name;
    const float *values;
    size_t rows, columns;  // columns 0: one dimension
} Saved;

typedef struct Output {  // a file on its way
    char path[PATH], draft[PATH + 8];
    FILE *stream;
} Output;

static struct {
    Saved *list;  // [parameters of the model]
    int count;
    const char *draft;  // that has no name yet, or NULL
} saved;

/* ---- files that appear whole or not at all ---- */

void pp_drop_draft(void)
{
    if (saved.draft)
        unlink(saved.draft);
    saved.draft = NULL;
}

static _Noreturn void give_up(Output *out)
{
    int error = errno;
    pp_fail("cannot write %s: %s", out->path, strerror(error));
}

static void open_output(Output *out)
{
    snprintf(out->draft, sizeof out->draft, "%s.new", out->path);
    out->stream = fopen(out->draft, "we");
    if (!out->stream)
        give_up(out);
    saved.draft = out->draft;
}

static void write_bytes(Output *out, const void *bytes, size_t count)
{
    if (fwrite(bytes, 1, count, out->stream) != count)
        give_up(out);
}

static void sync_folder(Output *out)
{
    int fd = open(pp_job.save, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        give_up(out);
    close(fd);
}

static void close_output(Output *out)
{
    if (fflush(out->stream) != 0 || fsync(fileno(out->stream)) != 0 ||
        fclose(out->stream) != 0)
        give_up(out);
}

static void name_output(Output *out)
{
    if (rename(out->draft, out->path) != 0)
        give_up(out);
    saved.draft = NULL;
    sync_folder(out);
}

/* ---- one shard ---- */

static void shard_name(char *text, size_t size, int rank)
{
    snprintf(text, size, "%s-rank%d-of-%d.safetensors", pp_job.plan.name, rank,
             pp_job.plan.ranks);
}

static void in_folder(char *path, const char *name)
{
    if (snprintf(path, PATH, "%s/%s", pp_job.save, name) >= PATH)
        pp_fail("the path %s is too long", pp_job.save);
}

static size_t value_count(const Saved *entry)
{
    return entry->rows * (entry->columns ? entry->columns : 1);
}

static const char *model_hash(void)
{
    return pp_job.plan.model ? pp_job.plan.model : "";
}

/* The JSON text of all parameters, padded with spaces so that the data begins
 * at a multiple of 8 */
static char *make_header(size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    size_t at = 0;
    if (!out)
        pp_fail("out of memory");
    fprintf(out,
            "{\"__metadata__\":{\"format\":\"pt\",\"pipec_format\":\"%d\","
            "\"step\":\"%d\",\"model\":\"%s\"}",
            SAVE_FORMAT, pp_job.step, model_hash());
    for (int i = 0; i < saved.count; i++) {
        const Saved *entry = &saved.list[i];
        size_t end = at + value_count(entry) * sizeof(float);
        fprintf(out, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu", entry->name,
                entry->rows);
        if (entry->columns)
            fprintf(out, ",%zu", entry->columns);
        fprintf(out, "],\"data_offsets\":[%zu,%zu]}", at, end);
        at = end;
    }
    fputc('}', out);
    while (ftell(out) % 8 != 0)
        fputc(' ', out);
    if (fclose(out) != 0)
        pp_fail("out of memory");
    return text;
}

static const float *checked_values(const Saved *entry)
{
    const float *values = pp_read_back(entry->values, value_count(entry));
    for (size_t i = 0; i < value_count(entry); i++)
        if (!isfinite(values[i]))
            pp_fail("%s is no number after step %d: nothing is saved",
                    entry->name, pp_job.step);
    return values;
}

static void write_shard(Output *out)
{
    char name[PATH / 2];
    size_t length;
    uint8_t prefix[8];
    char *header = make_header(&length);
    shard_name(name, sizeof name, pp_job.plan.rank);
    in_folder(out->path, name);
    open_output(out);
    for (int i = 0; i < 8; i++)
        prefix[i] = (uint8_t)((uint64_t)length >> 8 * i);
    write_bytes(out, prefix, sizeof prefix);
    write_bytes(out, header, length);
    for (int i = 0; i < saved.count; i++)
        write_bytes(out, checked_values(&saved.list[i]),
                    value_count(&saved.list[i]) * sizeof(float));
    close_output(out);
    free(header);
}

/* ---- the index ---- */

/* The header of one shard, ended by a zero. */
static char *read_header(const char *path)
{
    uint8_t prefix[8];
    uint64_t length = 0;
    FILE *in = fopen(path, "re");
    if (!in || fread(prefix, 1, 8, in) != 8)
        pp_fail("cannot read %s again: %s", path, strerror(errno));
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)prefix[i] << 8 * i;
    struct stat state;
    if (fstat(fileno(in), &state) != 0 || length > (uint64_t)state.st_size - 8)
        pp_fail("%s is no longer what was saved: its header is cut off", path);
    char *text = calloc(length + 1, 1);
    if (!text || fread(text, 1, length, in) != length)
        pp_fail("cannot read %s again: %s", path, strerror(errno));
    fclose(in);
    return text;
}

/* Appends the parameters of one shard to the map. We wrote the header, so each
 * begins `},"NAME":{"dtype"` (the first after the metadata) and nothing in it
 * is escaped. Returns their bytes. */
static size_t index_shard(FILE *map, const char *file, char *header, int first)
{
    size_t total = 0;
    for (char *at = strstr(header, "},\""); at; at = strstr(at, "},\"")) {
        char *name = at + 3, *end = strchr(name, '"');
        size_t begin = 0, stop = 0;
        at = end ? strstr(end, "\"data_offsets\":[") : NULL;
        if (!at || sscanf(at, "\"data_offsets\":[%zu,%zu", &begin, &stop) != 2)
            pp_fail("%s is no longer what was saved: its header is damaged",
                    file);
        fprintf(map, "%s\n    \"%.*s\": \"%s\"", first ? "" : ",",
                (int)(end - name), name, file);
        first = 0;
        total += stop - begin;
    }
    return total;
}

static void write_index(void)
{
    static Output out;
    char name[PATH / 2], path[PATH], *map = NULL, *head = NULL;
    size_t length = 0, total = 0, head_length = 0;
    FILE *text = open_memstream(&map, &length),
         *top = open_memstream(&head, &head_length);
    if (!text || !top)
        pp_fail("out of memory");
    for (int rank = 0; rank < pp_job.plan.ranks; rank++) {
        shard_name(name, sizeof name, rank);
        in_folder(path, name);
        char *header = read_header(path);
        total += index_shard(text, name, header, total == 0);
        free(header);
    }
    fprintf(top,
            "{\n  \"metadata\": {\"total_size\": %zu, \"model\": \"%s\"},\n"
            "  \"weight_map\": {",
            total, model_hash());
    fclose(text);
    fclose(top);
    in_folder(out.path, "model.safetensors.index.json");
    open_output(&out);
    write_bytes(&out, head, head_length);
    write_bytes(&out, map, length);
    write_bytes(&out, "\n  }\n}\n", 7);
    close_output(&out);
    name_output(&out);
    free(map);
    free(head);
}

/* ---- called by others ---- */

static void make_folders(const char *path)
{
    char text[PATH];
    snprintf(text, sizeof text, "%s", path);
    for (char *slash = strchr(text + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(text, 0777);  // if it fails, the last one does as well
        *slash = '/';
    }
    if (mkdir(text, 0777) != 0 && errno != EEXIST)
        pp_fail("cannot make the folder %s for --save: %s", path,
                strerror(errno));
}

/* Until this process ends. Two jobs that save in one folder would mix their
 * shards. */
static void lock_folder(void)
{
    static char path[PATH];
    in_folder(path, ".lock");
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        return;
    if (lock >= 0 && errno == EWOULDBLOCK)
        pp_fail("cannot save in %s: another job saves there", pp_job.save);
    pp_fail("cannot save in %s: %s: %s", pp_job.save, path, strerror(errno));
}

/* A folder that cannot be written is better found now than after the last
 * step. */
void pp_open_save(void)
{
    struct stat state;
    if (!pp_job.save)
        return;
    make_folders(pp_job.save);
    if (stat(pp_job.save, &state) != 0 || !S_ISDIR(state.st_mode))
        pp_fail("cannot save in %s: it is not a folder", pp_job.save);
    if (access(pp_job.save, W_OK | X_OK) != 0)
        pp_fail("cannot save in %s: %s", pp_job.save, strerror(errno));
    if (pp_job.plan.rank == 0)
        lock_folder();
    saved.list = calloc((size_t)pp_job.plan.parameters + 1, sizeof *saved.list);
    if (!saved.list)
        pp_fail("out of memory");
}

void pp_save(const char *name, const float *w, size_t rows, size_t columns)
{
    if (!pp_job.save)
        return;
    if (saved.count == pp_job.plan.parameters)
        pp_fail("more parameters are saved than the model has (%d)",
                pp_job.plan.parameters);
    saved.list[saved.count++] = (Saved){name, w, rows, columns};
}

/* The step of the file is the last one that all ranks have done. */
void pp_write_save(void)
{
    static Output shard;
    write_shard(&shard);
    pp_meet_all("save");
    name_output(&shard);
    pp_meet_all("save");
    if (pp_job.plan.rank == 0)
        write_index();
}
