/* A library whose constructor begins a thread that yields all the time, as runtimes for numbers do, and works 50 ms;
 * and a program that sleeps. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#ifdef PROGRAM

int main(void) {
    return nanosleep(&(struct timespec){0, 50000000}, NULL);
}

#else

static void *yield(void *nothing) {
    for (;;) {
        sched_yield();
    }
    return nothing;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    struct timespec cpu = {0, 0};
    pthread_create(&thread, NULL, yield, NULL);
    while (cpu.tv_nsec < 50000000) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    }
}

#endif
