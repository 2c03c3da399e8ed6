/* Four threads that work, with locks in between or without any; each prints the CPU time that it has had, in ns. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t mutexes[4];
static long pieces;

static long long cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void *run(void *argument) {
    pthread_mutex_t *mutex = argument;
    volatile unsigned work = 0;
    long long begin = cpu_ns();
    for (long piece = 0; piece < pieces; piece++) {
        for (unsigned step = 0; step < 300000000u / pieces; step++) {
            work += step;
        }
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
    }
    return (void *)(intptr_t)(cpu_ns() - begin);
}

int main(int count, char **arguments) {
    pthread_t threads[4];
    pieces = count > 1 ? atol(arguments[1]) : 1;
    for (int index = 0; index < 4; index++) {
        pthread_mutex_init(&mutexes[index], NULL);
        pthread_create(&threads[index], NULL, run, &mutexes[index]);
    }
    for (int index = 0; index < 4; index++) {
        void *used;
        pthread_join(threads[index], &used);
        printf("%lld\n", (long long)(intptr_t)used);
    }
    return 0;
}
