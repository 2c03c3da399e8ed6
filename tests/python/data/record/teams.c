/* OpenMP of two threads, as the argument says: regions within regions, or tasks that take a lock of the program. */
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int sum;

static void add(void) {
    pthread_mutex_lock(&mutex);
    sum++;
    pthread_mutex_unlock(&mutex);
}

/* 3 regions of two threads. Each of them begins regions of two threads that meet: one the first, two the second. */
static int nested(void) {
    omp_set_max_active_levels(2);
    for (int round = 0; round < 3; round++) {
#pragma omp parallel num_threads(2)
        for (int inner = 0; inner <= omp_get_thread_num(); inner++) {
#pragma omp parallel num_threads(2)
            {
                add();
#pragma omp barrier
                add();
            }
        }
    }
    return sum == 36;
}

/* One thread makes a group with a task, and 20 tasks, each of which makes one and waits for it. The other one takes
 * some of them when its share is over. */
static int tasks(void) {
    int is_helped = 0;
#pragma omp parallel num_threads(2)
    {
        add();
#pragma omp single nowait
        {
            int maker = omp_get_thread_num();
#pragma omp taskgroup
            {
                add();
#pragma omp task
                add();
                add();
            }
            for (int index = 0; index < 20; index++) {
#pragma omp task
                {
                    add();
#pragma omp task
                    add();
#pragma omp taskwait
                    add();
                    if (omp_get_thread_num() != maker) {
                        __atomic_store_n(&is_helped, 1, __ATOMIC_RELAXED);
                    }
                }
            }
            while (!__atomic_load_n(&is_helped, __ATOMIC_RELAXED)) {
                sched_yield();
            }
        }
    }
    add();
    return sum == 66;
}

int main(int count, char **arguments) {
    int is_nested = count > 1 && !strcmp(arguments[1], "nested");
    return (is_nested ? nested() : tasks()) ? 0 : 1;
}
