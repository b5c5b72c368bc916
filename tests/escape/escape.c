/* escape.c SCRATCH: nothing that a user names gets out of its place.
 *
 * pipec is run with file names, paths and words that hold every byte but 0, and
 * those that end a string, a comment, an element or a line. What it writes must
 * be what it would have been with plain names: the program compiles and holds
 * the path byte for byte, JSON and XML are whole, and no control byte but the
 * end of a line reaches the terminal. escape.sh runs it. */
#include "escape.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *every;  // byte but 0
static Arena *arena;

static void verdict(const char *what, int number, bool good)
{
    printf("%s %s-%d\n", good ? "ok" : "not ok", what, number);
}

/* ---- running a command ---- */

typedef struct Output {
    char *text;
    size_t length;
    int status;
} Output;

static Output read_whole(const char *path, int status)
{
    FILE *in = fopen(path, "rb");
    Output out = {arena_take(arena, 1 << 22), 0, status};
    if (in) {
        out.length = fread(out.text, 1, (1 << 22) - 1, in);
        fclose(in);
    }
    return out;
}

/* Its output and its errors go to files of these names. */
static Output run_words(const char *const *words, const char *out,
                        const char *err)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
        dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
        execvp(words[0], (char *const *)words);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return read_whole(out, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

#define RUN(...)                                                               \
    run_words((const char *const[]){__VA_ARGS__, NULL}, "said", "complained")

/* ---- is it whole ---- */

static bool is_plain(Output o)
{
    for (size_t i = 0; i < o.length; i++)
        if (((unsigned char)o.text[i] < 32 && !strchr("\n\r\t", o.text[i])) ||
            o.text[i] == 127)
            return false;
    return true;
}

static bool is_utf8(Output o)
{
    for (size_t i = 0, bytes; i < o.length; i += bytes) {
        bytes = (size_t)seen_bytes(o.text + i, (int)(o.length - i));
        if (bytes == 0 && !strchr("\n\r\t", o.text[i]))
            return false;
        bytes = bytes ? bytes : 1;
    }
    return true;
}

static const char *json_value(const char *at);

static const char *skip(const char *at)
{
    return at + strspn(at, " \n");
}

static const char *json_text(const char *at)
{
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 32)
            return NULL;
        if (*at != '\\')
            continue;
        at++;
        if (*at == 'u' && strspn(at + 1, "0123456789abcdef") >= 4)
            at += 4;
        else if (!*at || !strchr("\"\\/bfnrt", *at))
            return NULL;
    }
    return at + 1;
}

static const char *json_list(const char *at, char end, bool named)
{
    at = skip(at + 1);
    if (*at == end)
        return at + 1;
    for (;;) {
        if (named && (!(at = json_text(skip(at))) || *(at = skip(at)) != ':'))
            return NULL;
        at = json_value(skip(at + named));
        if (!at)
            return NULL;
        at = skip(at);
        if (*at == end)
            return at + 1;
        if (*at++ != ',')
            return NULL;
    }
}

/* Returns the place behind it; NULL: it is none. */
static const char *json_value(const char *at)
{
    static const char *const words[] = {"true", "false", "null"};
    if (*at == '"')
        return json_text(at);
    if (*at == '{')
        return json_list(at, '}', true);
    if (*at == '[')
        return json_list(at, ']', false);
    for (int i = 0; i < 3; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return at + strlen(words[i]);
    char *end;
    strtod(at, &end);
    return end > at ? end : NULL;
}

static bool is_json(const char *text)
{
    const char *end = json_value(skip(text));
    return end && !*skip(end);
}

/* &#NN; or a name, behind the ampersand. */
static const char *entity(const char *at)
{
    size_t length = *at == '#' ? 1 + strspn(at + 1, "0123456789")
                               : strspn(at, "abcdefghijklmnopqrstuvwxyz");
    return length > 1 && at[length] == ';' ? at + length + 1 : NULL;
}

/* A tag behind its `<`: its name, attributes in quotes. */
static const char *tag(const char *at)
{
    at += strcspn(at, " />\n\"<&");
    while (*at && *at != '>') {
        at += strspn(at, " \n/");
        if (*at == '>')
            break;
        at += strcspn(at, "=\"<>&");
        if (*at++ != '=' || *at++ != '"')
            return NULL;
        for (; *at != '"'; at++)
            if (!*at || *at == '<')
                return NULL;
        at++;
    }
    return *at ? at + 1 : NULL;
}

/* Elements close in the order in which they opened. */
static bool is_xml(const char *text)
{
    const char *open[64];
    int depth = 0;
    for (const char *at = text; *at;) {
        if (*at == '&' && !(at = entity(at + 1)))
            return false;
        if (*at != '<') {
            at += *at && *at != '&';
            continue;
        }
        bool closing = at[1] == '/';
        const char *name = at + 1 + closing, *end = tag(name);
        size_t length = strcspn(name, " />\n");
        if (!end || (closing && depth == 0) || depth == 64)
            return false;
        if (closing && (strncmp(open[--depth], name, length) != 0))
            return false;
        if (!closing && end[-2] != '/')
            open[depth++] = name;
        at = end;
    }
    return depth == 0;
}

/* ---- the functions, with every byte ---- */

static void functions(void)
{
    char *xml = text_format(arena, "<a b=\"%s\">%s</a>", xml_text(arena, every),
                            xml_text(arena, every));
    const char *json = json_string(arena, every),
               *shown = shown_text(arena, every),
               *cell = csv_cell(arena, every);
    verdict("xml", 0, is_xml(xml));
    verdict("json", 0, is_json(json) && !strchr(json, '<'));
    verdict("shown", 0,
            is_utf8((Output){(char *)shown, strlen(shown), 0}) &&
                strlen(shown) == 255);
    verdict("csv", 0,
            cell[0] == '"' && strstr(cell, "\"\"") && !strpbrk(cell, "\r\n"));
    verdict("validators", 0,
            !is_xml("<a>&b</a>") && !is_xml("<a><b></a></b>") &&
                !is_json("{\"a\":\"\n\"}") && !is_json("[1,]") &&
                is_json("{\"a\":[1,\"\\u000a\",null]}") &&
                is_xml("<a b=\"c\"/>"));
}

/* ---- the command ---- */

static const char model[] =
    "layer b { x + gelu(linear(x, 4)) }\n"
    "model m { input x[2] of 8\n e : embedding(4)\n h : b * 2\n"
    " t : linear(8) tied e\n loss : cross_entropy }\n"
    "pipeline { stages 2 microbatches 2 }\ntrain { data bytes \"d\" steps 2 "
    "}\n";

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "wb");
    if (!out || fputs(text, out) < 0 || fclose(out) != 0) {
        printf("not ok cannot write %s\n", shown_text(arena, path));
        exit(1);
    }
}

/* The program's path, read back by a program. */
static const char reader[] =
    "#define main rank_main\n#include \"rank.c\"\n#undef main\n"
    "#include <stdio.h>\n#include <string.h>\n"
    "int main(void) { const char *path = job.data.path;\n"
    "return fwrite(path, 1, strlen(path), stdout) != strlen(path); }\n";

static void compiles(int number, const char *compiler, const char *library,
                     const char *path)
{
    const char *include = text_format(arena, "-I%s", library);
    write_file("reader.c", reader);
    Output made = RUN(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror",
                      include, "-O1", "-ffunction-sections",
                      "-Wl,--gc-sections", "reader.c", "-o", "reader");
    Output back = RUN("./reader");
    verdict(text_format(arena, "program-%s", compiler), number,
            made.status == 0 && back.status == 0 &&
                strcmp(back.text, path) == 0);
}

static bool is_there(const char *compiler)
{
    return RUN(compiler, "--version").status == 0;
}

static void programs(int number, const char *pipec, const char *library,
                     const char *file, const char *path)
{
    Output o = run_words(
        (const char *const[]){pipec, "check", "--dump=emit", file, "-D",
                              text_format(arena, "data=%s", path), "-D",
                              "stages=1", NULL},
        "rank.c", "complained");
    verdict("emit", number,
            o.status == 0 && is_plain(o) && strstr(o.text, "rank 0 of 1"));
    static const char *const compilers[] = {"gcc", "clang"};
    for (int i = 0; i < 2; i++)
        if (is_there(compilers[i]))
            compiles(number, compilers[i], library, path);
}

/* The plan inside a page ends where its element does. */
static bool has_json(const char *page)
{
    const char *at = strstr(page, "class=\"plan\">");
    at = at ? json_value(skip(strchr(at, '>') + 1)) : NULL;
    return at && strncmp(at, "</script>", 9) == 0;
}

static void pictures(int number, const char *pipec, const char *file)
{
    static const char *const endings[] = {"svg", "html", "json", "csv", "txt"};
    for (int i = 0; i < 5; i++) {
        const char *path = text_format(arena, "picture.%s", endings[i]);
        int status = RUN(pipec, "inspect", file, "-o", path).status;
        Output o = read_whole(path, status);
        bool good = status == 0 && is_utf8(o) && is_plain(o);
        good = good && (i != 0 || is_xml(o.text));
        good = good && (i != 1 || has_json(o.text));
        verdict(endings[i], number, good && (i != 2 || is_json(o.text)));
    }
}

static const char *nth_line(const char *text, int line)
{
    for (; line && text; line--)
        if ((text = strchr(text, '\n')))
            text++;
    return text ? text : "";
}

/* A word of the user's in tables, and in what is said of it. */
static void tables(int number, const char *pipec, const char *file,
                   const char *word)
{
    char *list = text_format(arena, "1f1b(%s)", word);
    Output o = RUN(pipec, "compare", file, "--json", "--schedule", list);
    bool refused = o.status == 2;  // commas make several of it
    verdict("compare-json", number, refused || (is_json(o.text) && is_utf8(o)));
    o = RUN(pipec, "compare", file, "--csv", "--schedule", list);
    int rows = 0;
    while (*nth_line(o.text, rows))
        rows++;
    verdict("compare-csv", number, refused || (is_utf8(o) && rows == 4));
    o = RUN(pipec, "compare", file, "--schedule", list);
    verdict("compare", number, is_utf8(o));
    verdict("complaint", number, is_utf8(read_whole("complained", 0)));
}

/* What is said of a file with a mistake has as many lines as with a plain
 * name. */
static void messages(int number, const char *pipec, const char *file,
                     const char *word)
{
    write_file("plain.pipe", "model m {\n");
    RUN(pipec, "check", "plain.pipe");
    Output plain = read_whole("complained", 0);
    write_file(file, "model m {\n");
    RUN(pipec, "check", file);
    Output o = read_whole("complained", 0);
    int lines = 0;
    for (const char *at = o.text; *(at = nth_line(at, 1));)
        lines++;
    for (const char *at = plain.text; *(at = nth_line(at, 1));)
        lines--;
    verdict("message", number, lines == 0 && is_utf8(o));
    RUN(pipec, "check", "plain.pipe", "-D",
        text_format(arena, "stages=%s", word));
    verdict("define", number, is_utf8(read_whole("complained", 0)));
    RUN(pipec, "inspect", word);
    verdict("missing", number, is_utf8(read_whole("complained", 0)));
    RUN(pipec, word, "x");
    verdict("command", number, is_utf8(read_whole("complained", 0)));
    RUN(pipec, "check", "plain.pipe", text_format(arena, "--%s", word));
    verdict("option", number, is_utf8(read_whole("complained", 0)));
}

/* The language has no sign for a quote inside a text. */
static char *without_quotes(const char *text)
{
    char *path = text_copy(arena, text, strlen(text));
    for (char *c = path; *c; c++)
        if (*c == '"')
            *c = '\'';
    return path;
}

/* A name of a file: no slash, and at most 255 bytes with its ending. */
static char *file_of(const char *text)
{
    char *name = text_format(arena, "%.200s.pipe", text);
    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '|';
    return name;
}

static void all_of(int number, const char *pipec, const char *library,
                   const char *text)
{
    const char *file = file_of(text);
    write_file(file, model);
    programs(number, pipec, library, file, without_quotes(text));
    pictures(number, pipec, file);
    tables(number, pipec, file, text);
    messages(number, pipec, file, text);
    remove(file);
}

int main(int argc, char **argv)
{
    if (argc != 3 || chdir(argv[2]) != 0)
        return 1;
    arena = arena_open();
    every = arena_take(arena, 256);
    for (int i = 0; i < 255; i++)
        every[i] = (char)(i + 1);
    const char *hostile[] = {
        every,
        every + 128,
        "a\n#error out of its place\n",
        "*/ #error out of its place /*",
        "a*\\\n#error",
        "\?\?/\n#error\n\?\?! \?\?= \?\?' \?\?>",
        "\\",
        "\"; #error\n",
        "</script><script>alert(1)</script><!--",
        "]]></text>&amp;'\"<b>",
        "\x1b[31m\x1b]0;title\a\b\b",
        "\xe2\x80\xae.c \xc2\x9b"
        "31m \xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80 \xf0\x9f\x98\x80 "
        "\xe6\xa8\xa1",
        "%s%n%d%%",
        "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, "
        "x, y, z, a, b, c, d, e, f, g, h.txt"};
    const char *pipec = text_format(arena, "%s/../../bin/pipec", argv[1]);
    functions();
    for (int i = 0; i < (int)(sizeof hostile / sizeof *hostile); i++)
        all_of(i + 1, pipec, argv[1], hostile[i]);
    arena_close(arena);
    return 0;
}
