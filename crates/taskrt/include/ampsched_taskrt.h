/* A task runtime for unequal cores: parallel loops, and tasks with dependences, on pinned threads.
 *
 * Link with libampsched_taskrt.a (cargo build --release -p ampsched-taskrt) and -lpthread -ldl -lm.
 * Functions that can fail return AMPSCHED_ERROR or NULL, and ampsched_last_error() says why.
 * What the functions do is described in the Rust documentation of the crate; crates/taskrt/src/c_api.rs maps one to
 * the other.
 */
#ifndef AMPSCHED_TASKRT_H
#define AMPSCHED_TASKRT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results. */
#define AMPSCHED_OK 0
/* A body has asked to stop. */
#define AMPSCHED_CANCELLED 1
#define AMPSCHED_ERROR (-1)

/* A team of worker threads. */
typedef struct ampsched_runtime ampsched_runtime;
/* Where tasks are created; valid while its `create` function runs, and in its tasks. */
typedef struct ampsched_scope ampsched_scope;

/* Why the last call of this thread has failed; never NULL, valid until this thread's next call. */
const char *ampsched_last_error(void);

/* Starts workers on some cores, such as "big:2.5=0-3;little=4-7" (NULL: those that are there), under a task policy,
 * such as "cats:steal=1" (NULL: "fifo"). NULL on error. */
ampsched_runtime *ampsched_runtime_new(const char *cores, const char *policy);

/* Ends the workers; nothing of the runtime may be running. NULL is allowed. */
void ampsched_runtime_free(ampsched_runtime *runtime);

/* Number of workers. */
size_t ampsched_workers(const ampsched_runtime *runtime);

/* Measures the workers' speeds, for `seconds`, and writes one number per worker; the slowest is 1. */
int ampsched_measure_speeds(const ampsched_runtime *runtime, double seconds, double *speeds);

/* Executes `body` for the iterations from first to end - 1, in parts. A body that returns other than 0 ends the
 * loop. */
int ampsched_for_each(const ampsched_runtime *runtime, size_t first, size_t end,
                      int (*body)(size_t first, size_t end, void *context), void *context);

/* How a task uses some data; what counts is the address. */
typedef struct {
    const void *data;
    int writes; /* 0: reads only (in); otherwise writes, and may read (out, inout) */
} ampsched_access;

/* Calls `create`, whose tasks start while it creates more, or (whole_graph other than 0, for policies that need it)
 * afterwards; waits for all. */
int ampsched_scope_run(const ampsched_runtime *runtime, int whole_graph,
                       void (*create)(ampsched_scope *scope, void *context), void *context);

/* Creates a task of a kind, such as "gemm". cost_s: seconds at speed 1, or below 0 if it is not known. */
int ampsched_task(ampsched_scope *scope, const char *kind, double cost_s, const ampsched_access *accesses,
                  size_t access_count, void (*body)(void *context), void *context);

/* Starts no more tasks of the scope. */
void ampsched_cancel(ampsched_scope *scope);

#ifdef __cplusplus
}
#endif

#endif
