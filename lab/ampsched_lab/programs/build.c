/* A load like a parallel build: a tree of short processes. At most --jobs at a time; each executes a "shell", which
 * executes a "compiler", that computes for a drawn time in fresh memory and writes a file, and then an "assembler",
 * that reads the file, checks it, computes and removes it. For --ms of time after --warm-ms; a line of JSON says how
 * many jobs ended. The exit code is 0 if every process found what it should. All are this program, started by exec(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

#define WORK_LEAST 25000 /* iterations: 0.1 ms of a core with 1000 MIPS */
#define WORK_RANGE 225000
#define ASSEMBLER_SHARE 4
#define HEAP_BYTES (256 * 1024)
#define PAGE_BYTES 4096
#define FILE_WORDS 1024
#define NAME_SIZE 32

static uint64_t drawn(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void name_file(char *name, uint64_t job)
{
    snprintf(name, NAME_SIZE, "%llu.s", (unsigned long long)job);
}

static void compile(uint64_t job)
{
    uint64_t seed = job;
    spin(WORK_LEAST + drawn(&seed) % WORK_RANGE);
    uint64_t *heap = malloc(HEAP_BYTES);
    if (!heap)
        fail("malloc");
    for (size_t i = 0; i < HEAP_BYTES / sizeof *heap; i += PAGE_BYTES / sizeof *heap / 2)
        heap[i] = drawn(&seed);
    uint64_t text[FILE_WORDS];
    for (int i = 0; i < FILE_WORDS; i++)
        text[i] = drawn(&seed);
    char name[NAME_SIZE];
    name_file(name, job);
    FILE *file = fopen(name, "w");
    if (!file || fwrite(text, sizeof text, 1, file) != 1 || fclose(file) != 0)
        fail(name);
    free(heap);
}

static void assemble(uint64_t job)
{
    uint64_t seed = job, text[FILE_WORDS];
    uint64_t work = (WORK_LEAST + drawn(&seed) % WORK_RANGE) / ASSEMBLER_SHARE;
    for (size_t i = 0; i < HEAP_BYTES / sizeof(uint64_t); i += PAGE_BYTES / sizeof(uint64_t) / 2)
        drawn(&seed);
    char name[NAME_SIZE];
    name_file(name, job);
    FILE *file = fopen(name, "r");
    if (!file || fread(text, sizeof text, 1, file) != 1 || fclose(file) != 0)
        fail(name);
    errno = 0;
    for (int i = 0; i < FILE_WORDS; i++)
        if (text[i] != drawn(&seed))
            fail("a file is not what was written");
    spin(work);
    if (unlink(name) != 0)
        fail(name);
}

static pid_t begin(const char *program, const char *role, uint64_t job)
{
    char number[NAME_SIZE];
    snprintf(number, sizeof number, "%llu", (unsigned long long)job);
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        execl(program, "build", role, number, (char *)NULL);
        fail(program);
    }
    return pid;
}

static bool is_well(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void run_shell(const char *program, uint64_t job)
{
    static const char *const roles[] = {"compile", "assemble"};
    for (int i = 0; i < 2; i++) {
        int status;
        pid_t pid = begin(program, roles[i], job);
        if (waitpid(pid, &status, 0) != pid || !is_well(status))
            fail(roles[i]);
    }
}

static int play(const char *role, uint64_t job)
{
    if (strcmp(role, "shell") == 0)
        run_shell("/proc/self/exe", job);
    else if (strcmp(role, "compile") == 0)
        compile(job);
    else if (strcmp(role, "assemble") == 0)
        assemble(job);
    else
        fail(role);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && argv[1][0] != '-')
        return play(argv[1], strtoull(argv[2], NULL, 10));
    int64_t jobs = number_argument(argc, argv, "--jobs", 4);
    int64_t ms = number_argument(argc, argv, "--ms", 40), warm_ms = number_argument(argc, argv, "--warm-ms", 5);
    int64_t begin_ns = now_ns() + warm_ms * 1000000, end_ns = begin_ns + ms * 1000000;
    int64_t begun = 0, running = 0, ended = 0, failed = 0;
    for (;;) {
        for (; running < jobs && now_ns() < end_ns; running++)
            begin("/proc/self/exe", "shell", (uint64_t)++begun);
        int status;
        if (running == 0 || waitpid(-1, &status, 0) < 0)
            break;
        int64_t now = now_ns();
        running--;
        failed += !is_well(status);
        ended += now >= begin_ns && now < end_ns;
    }
    printf("{\"jobs\": %lld, \"failed\": %lld, \"ns\": %lld}\n", (long long)ended, (long long)failed,
           (long long)(end_ns - begin_ns));
    return failed == 0 && ended > 0 ? 0 : 1;
}
