/* A forked child that uses its parent's runtime, from a thread that is none of its workers. */
#define _GNU_SOURCE
#include "ampsched_taskrt.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int nothing(size_t first, size_t end, void *context)
{
    (void)first, (void)end, (void)context;
    return 0;
}

static void no_tasks(ampsched_scope *scope, void *context)
{
    (void)scope, (void)context;
}

static int is_refused(int result)
{
    return result == -1 && strstr(ampsched_last_error(), "a forked child does not have") != NULL;
}

int main(void)
{
    double speeds[64];
    ampsched_runtime *runtime = ampsched_runtime_new(NULL, NULL);
    if (runtime == NULL || ampsched_for_each(runtime, 0, 10, nothing, NULL) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        int refused = is_refused(ampsched_for_each(runtime, 0, 10, nothing, NULL));
        refused += is_refused(ampsched_for_each(runtime, 5, 5, nothing, NULL));
        refused += is_refused(ampsched_scope_run(runtime, 0, no_tasks, NULL));
        refused += is_refused(ampsched_scope_run(runtime, 1, no_tasks, NULL));
        refused += is_refused(ampsched_measure_speeds(runtime, 0.001, speeds));
        ampsched_runtime_free(runtime);
        /* One of its own works. */
        runtime = ampsched_runtime_new(NULL, NULL);
        int works = runtime != NULL && ampsched_for_each(runtime, 0, 10, nothing, NULL) == 0;
        ampsched_runtime_free(runtime);
        _exit(refused == 5 && works ? 0 : 10 + refused);
    }
    int status = -1;
    waitpid(child, &status, 0);
    printf("child %d, parent %d\n", status, ampsched_for_each(runtime, 0, 10, nothing, NULL));
    ampsched_runtime_free(runtime);
    return 0;
}
