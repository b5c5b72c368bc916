/* bits.c: `compare A B` says whether two folders of safetensors hold the same
 * parameters, bit for bit, however they are spread over files, and whether in
 * each the tied weights (head.weight and wte.weight here) are equal. Exit
 * status 1, and the first difference, when not.
 *
 * It reads just what pp_save writes: "NAME":{"dtype":"F32","shape":[..],
 * "data_offsets":[from,to]}. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

typedef struct Tensor {
    char name[256];
    char *data;
    size_t bytes;
} Tensor;

typedef struct Folder {
    Tensor tensors[MOST];
    int count;
} Folder;

static Folder folders[2];

static void stop(const char *what, const char *where)
{
    printf("%s: %s\n", where, what);
    exit(1);
}

static char *read_all(const char *path, size_t *length)
{
    FILE *in = fopen(path, "rb");
    if (!in)
        stop("cannot be read", path);
    fseek(in, 0, SEEK_END);
    *length = (size_t)ftell(in);
    rewind(in);
    char *text = malloc(*length + 1);
    if (fread(text, 1, *length, in) != *length)
        stop("is cut short", path);
    text[*length] = 0;
    fclose(in);
    return text;
}

static void add_tensors(Folder *folder, const char *path)
{
    size_t length, from, to;
    unsigned long long header;
    char *file = read_all(path, &length);
    memcpy(&header, file, 8);
    char *data = file + 8 + header, *at = file + 8, kept = *data;
    *data = 0;
    while ((at = strstr(at, "\"dtype\""))) {
        char *name_end = at - 1;
        while (*name_end != '"')
            name_end--;
        char *name = name_end - 1;
        while (*name != '"')
            name--;
        at = strstr(at, "data_offsets");
        if (!at || sscanf(at, "data_offsets\":[%zu,%zu", &from, &to) != 2)
            stop("has no data_offsets", path);
        Tensor *t = &folder->tensors[folder->count++];
        snprintf(t->name, sizeof t->name, "%.*s", (int)(name_end - name - 1),
                 name + 1);
        t->data = data + from;
        t->bytes = to - from;
    }
    *data = kept;
}

static const Tensor *find(const Folder *folder, const char *name)
{
    for (int i = 0; i < folder->count; i++)
        if (strcmp(folder->tensors[i].name, name) == 0)
            return &folder->tensors[i];
    return NULL;
}

static void read_folder(Folder *folder, const char *path)
{
    char file[4096];
    DIR *dir = opendir(path);
    if (!dir)
        stop("no such folder", path);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (length < 12 || strcmp(entry->d_name + length - 12, ".safetensors"))
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        add_tensors(folder, file);
    }
    closedir(dir);
    const Tensor *a = find(folder, "wte.weight");
    const Tensor *b = find(folder, "head.weight");
    if (a && b && (a->bytes != b->bytes || memcmp(a->data, b->data, a->bytes)))
        stop("wte.weight and head.weight differ", path);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    for (int i = 0; i < 2; i++)
        read_folder(&folders[i], argv[i + 1]);
    if (folders[0].count == 0 || folders[0].count != folders[1].count)
        stop("another number of parameters", argv[2]);
    for (int i = 0; i < folders[0].count; i++) {
        const Tensor *a = &folders[0].tensors[i];
        const Tensor *b = find(&folders[1], a->name);
        if (!b || a->bytes != b->bytes)
            stop("missing, or of another size", a->name);
        if (memcmp(a->data, b->data, a->bytes) != 0)
            stop("differs", a->name);
    }
    return 0;
}
