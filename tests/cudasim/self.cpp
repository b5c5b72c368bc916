/* self.cpp: runs the cases of self_*.cpp; `self NAME` runs one, here and now,
 * with its words on the terminal. */
#include "cuda.h"
#include "self.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    _exit(1);
}

cudaStream_t new_stream()
{
    cudaStream_t stream;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

Gate::Gate(cudaStream_t stream) : word(pinned<unsigned>(1))
{
    *word = 0;
    EXPECT(!cuStreamWaitValue32(stream, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_EQ));
}

void Gate::open()
{
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

static void run(const Case *c)
{
    if (c->status == HANGS)
        setenv("CUDASIM_WATCHDOG", "1", 0);
    if (c->setting)
        putenv((char *)c->setting);
    alarm(60);
    c->run();
    exit(0);
}

static std::string all_of(FILE *file)
{
    std::string text;
    char line[512];
    rewind(file);
    while (fgets(line, sizeof line, file))
        text += std::string("    ") + line;
    return text;
}

/* "" or why not. */
static std::string judge(const Case *c)
{
    FILE *words = tmpfile();
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        dup2(fileno(words), 2);
        run(c);
    }
    int status;
    waitpid(child, &status, 0);
    int ended = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    std::string said = all_of(words), why;
    fclose(words);
    if (ended != c->status)
        why = "ended with " + std::to_string(ended) + " instead of " + std::to_string(c->status);
    else if (c->says && said.find(c->says) == std::string::npos)
        why = std::string("did not say \"") + c->says + "\"";
    return why.empty() ? "" : why + "\n" + said;
}

int main(int argc, char **argv)
{
    const Case *const groups[] = {stream_cases, kernel_cases, blas_cases, nccl_cases};
    int passed = 0, failed = 0;
    for (const Case *c : groups)
        for (; c->name; c++) {
            if (argc > 1 && strcmp(argv[1], c->name))
                continue;
            if (argc > 1)
                run(c);
            std::string why = judge(c);
            if (why.empty())
                printf("ok %s\n", c->name), passed++;
            else
                printf("not ok %s %s\n", c->name, why.c_str()), failed++;
        }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
