/* CPU hogs: one thread per entry of --nice, each computing --work iterations of a --kind: integer (the others' work),
 * memory (loads within 4 KiB) or float (a chain of products and sums).
 * --cpu 0 pins all of them to the first allowed CPU. */
#include <errno.h>
#include <string.h>

#include "truth.h"

#define WORDS 512

static int64_t work;

static void hog(struct worker *self)
{
    (void)self;
    spin((uint64_t)work);
}

/* Eight loads an iteration, each of the place that the one before names. */
static void memory_hog(struct worker *self)
{
    void *ring[WORDS];
    for (int i = 0; i < WORDS; i++)
        ring[i] = &ring[(i + 1 + self->index) % WORDS];
    void **at = ring;
    for (int64_t left = work; left > 0; left--) {
        at = *at, at = *at, at = *at, at = *at;
        at = *at, at = *at, at = *at, at = *at;
        __asm__ volatile("" : "+r"(at));
    }
}

/* Four products and four sums an iteration, each of the one before. */
static void float_hog(struct worker *self)
{
    double x = self->index;
    for (int64_t left = work; left > 0; left--) {
        x = x * 0.999 + 0.5, x = x * 0.998 + 0.5;
        x = x * 0.997 + 0.5, x = x * 0.996 + 0.5;
    }
    __asm__ volatile("" : : "r"(&x) : "memory"); /* keeps the chain */
}

static void (*body_of(const char *kind))(struct worker *)
{
    if (strcmp(kind, "integer") == 0)
        return hog;
    if (strcmp(kind, "memory") == 0)
        return memory_hog;
    if (strcmp(kind, "float") == 0)
        return float_hog;
    errno = EINVAL;
    fail(kind);
}

int main(int argc, char **argv)
{
    static struct worker workers[WORKERS_MAX];
    int nice[WORKERS_MAX], pin[1] = {-1};
    int count = split_numbers(text_argument(argc, argv, "--nice", "0,0,5,5"), nice, WORKERS_MAX);
    split_numbers(text_argument(argc, argv, "--cpu", "-1"), pin, 1);
    work = number_argument(argc, argv, "--work", 1000000000);
    void (*body)(struct worker *) = body_of(text_argument(argc, argv, "--kind", "integer"));
    for (int i = 0; i < count; i++)
        workers[i] = (struct worker){.name = "hog", .body = body, .index = i, .nice = nice[i], .cpu = pin[0]};
    return run_workers(argc, argv, "hogs", workers, count);
}
