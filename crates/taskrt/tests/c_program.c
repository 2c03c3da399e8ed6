/* Uses every function of the header; exits with the line of the first thing that is wrong. */
#include "ampsched_taskrt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s; %s\n", __LINE__, #what, ampsched_last_error()); \
            exit(1); \
        } \
    } while (0)

#define COUNT 10000

static int square(size_t first, size_t end, void *context)
{
    long *squares = context;
    for (size_t i = first; i < end; i++)
        squares[i] += (long)(i * i);
    return 0;
}

static int stop(size_t first, size_t end, void *context)
{
    (void)end, (void)context;
    return first >= 100;
}

/* a = 1; b = a + 1 and c = a + 2, in any order; d = b * c. */
static int a, b, c, d, not_run;

static void set_a(void *context)
{
    (void)context, a = 1;
}
static void set_b(void *context)
{
    (void)context, b = a + 1;
}
static void set_c(void *context)
{
    c = a + *(int *)context;
}
static void set_d(void *context)
{
    (void)context, d = b * c;
}
static void fail(void *context)
{
    (void)context, not_run = 1;
}

static void create(ampsched_scope *scope, void *context)
{
    ampsched_access write_a[] = {{&a, 1}}, read_a_write_b[] = {{&a, 0}, {&b, 1}};
    ampsched_access read_a_write_c[] = {{&a, 0}, {&c, 1}}, read_write_d[] = {{&b, 0}, {&c, 0}, {&d, 1}};
    CHECK(ampsched_task(scope, "set", 1e-6, write_a, 1, set_a, NULL) == AMPSCHED_OK);
    CHECK(ampsched_task(scope, "add", -1, read_a_write_b, 2, set_b, NULL) == AMPSCHED_OK);
    CHECK(ampsched_task(scope, "add", -1, read_a_write_c, 2, set_c, context) == AMPSCHED_OK);
    CHECK(ampsched_task(scope, "multiply", -1, read_write_d, 3, set_d, NULL) == AMPSCHED_OK);
    CHECK(ampsched_task(scope, "set", NAN, NULL, 0, set_a, NULL) == AMPSCHED_ERROR);
    CHECK(!strcmp(ampsched_last_error(), "cost NaN s of a \"set\" task is not a time"));
}

static void create_and_cancel(ampsched_scope *scope, void *context)
{
    (void)context;
    CHECK(ampsched_task(scope, NULL, -1, NULL, 0, fail, NULL) == AMPSCHED_OK);
    ampsched_cancel(scope);
}

int main(void)
{
    CHECK(ampsched_runtime_new("big", NULL) == NULL);
    CHECK(strstr(ampsched_last_error(), "cores \"big\": \"big\" is not a class of cores"));
    CHECK(ampsched_runtime_new(NULL, "fifi") == NULL);
    CHECK(!strcmp(ampsched_last_error(), "unknown task policy \"fifi\" (did you mean \"fifo\"?)"));

    ampsched_runtime *runtime = ampsched_runtime_new(NULL, "cats:steal=1");
    CHECK(runtime != NULL);
    CHECK(ampsched_workers(runtime) >= 1);
    double *speeds = calloc(ampsched_workers(runtime), sizeof *speeds);
    CHECK(ampsched_measure_speeds(runtime, 0.001, speeds) == AMPSCHED_OK && speeds[0] >= 1);
    CHECK(ampsched_measure_speeds(runtime, -1, speeds) == AMPSCHED_ERROR);
    free(speeds);

    static long squares[COUNT];
    CHECK(ampsched_for_each(runtime, 0, COUNT, square, squares) == AMPSCHED_OK);
    for (long i = 0; i < COUNT; i++)
        CHECK(squares[i] == i * i);
    CHECK(ampsched_for_each(runtime, 0, 1000000000, stop, NULL) == AMPSCHED_CANCELLED);

    for (int whole_graph = 0; whole_graph <= 1; whole_graph++) {
        int two = 2;
        a = b = c = d = 0;
        CHECK(ampsched_scope_run(runtime, whole_graph, create, &two) == AMPSCHED_OK);
        CHECK(d == 6);
    }
    CHECK(ampsched_scope_run(runtime, 1, create_and_cancel, NULL) == AMPSCHED_CANCELLED);
    CHECK(!not_run && strstr(ampsched_last_error(), "cancelled after 0 of 1 tasks"));
    ampsched_runtime_free(runtime);
    ampsched_runtime_free(NULL);
    return 0;
}
