/* Conditions, barriers, semaphores, sleeps, a futex, a pipe: each a known number of times. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 200 };

/* As much as a pipe may have room for: a write of one byte is sometimes long enough to be told, and sometimes not. */
static char many[1 << 20];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t full, empty;
static int turn, word;
static int ends[2];

static void *run(void *argument) {
    int mine = (int)(intptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
    }
    for (int round = 0; round < ROUNDS; round++) {
        sem_t *mine_first = mine ? &full : &empty, *then = mine ? &empty : &full;
        sem_wait(mine_first);
        sem_post(then);
    }
    pthread_mutex_lock(&mutex);
    for (int round = 0; round < ROUNDS; round++) {
        while (turn != mine) {
            pthread_cond_wait(&condition, &mutex);
        }
        turn = !mine;
        pthread_cond_signal(&condition);
    }
    pthread_mutex_unlock(&mutex);
    char byte = 1;
    if (mine) {
        usleep(20000);
        return (void *)(write(ends[1], many, sizeof(many)) - (ssize_t)sizeof(many));
    }
    return (void *)(read(ends[0], &byte, 1) - 1);
}

int main(void) {
    pthread_t threads[2];
    struct timespec soon, ms = {0, 1000000};
    if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, (int)sizeof(many)) < 0) {
        return 1;
    }
    pthread_barrier_init(&barrier, NULL, 2);
    sem_init(&full, 0, 0);
    sem_init(&empty, 0, 1);
    for (int index = 0; index < 2; index++) {
        pthread_create(&threads[index], NULL, run, (void *)(intptr_t)index);
    }
    for (int index = 0; index < 2; index++) {
        pthread_join(threads[index], NULL);
    }
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 0;
    pthread_mutex_lock(&mutex);
    int error = pthread_cond_timedwait(&condition, &mutex, &soon);
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    nanosleep(&ms, NULL);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
    usleep(1000);
    sched_yield();
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ms, NULL, 0);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return error == ETIMEDOUT ? 0 : 1;
}
