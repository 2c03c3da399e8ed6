/* CPU hogs: one thread per entry of --nice, each computing --work iterations.
 * --cpu 0 pins all of them to the first allowed CPU. */
#include "truth.h"

static int64_t work;

static void hog(struct worker *self)
{
    (void)self;
    spin(work);
}

int main(int argc, char **argv)
{
    static struct worker workers[WORKERS_MAX];
    int nice[WORKERS_MAX], pin[1] = {-1};
    int count = split_numbers(text_argument(argc, argv, "--nice", "0,0,5,5"), nice, WORKERS_MAX);
    split_numbers(text_argument(argc, argv, "--cpu", "-1"), pin, 1);
    work = number_argument(argc, argv, "--work", 1000000000);
    for (int i = 0; i < count; i++)
        workers[i] = (struct worker){.name = "hog", .body = hog, .index = i, .nice = nice[i], .cpu = pin[0]};
    return run_workers(argc, argv, "hogs", workers, count);
}
