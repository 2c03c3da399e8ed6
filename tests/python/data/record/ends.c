/* Locks 5000 times in a thread, then ends as it is told: segv, kill, abort, _exit, exec, wait, or leave it at work. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock_often(int rounds) {
    for (int round = 0; round < rounds; round++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void *run(void *how) {
    lock_often(5000);
    if (!strcmp(how, "segv")) {
        *(volatile int *)0 = 1;
    } else if (!strcmp(how, "kill")) {
        kill(getpid(), SIGKILL);
    } else if (!strcmp(how, "abort")) {
        abort();
    } else if (!strcmp(how, "_exit")) {
        _exit(7);
    } else if (!strcmp(how, "leave")) {
        for (volatile long step = 0;; step++) {
        }
    }
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t thread;
    if (count < 2) {
        lock_often(10);
        return 5;
    }
    if (!strcmp(arguments[1], "exec")) {
        lock_often(10);
        execl(arguments[0], arguments[0], (char *)NULL);
    }
    pthread_create(&thread, NULL, run, arguments[1]);
    if (!strcmp(arguments[1], "leave")) {
        usleep(200000);
        return 0;
    }
    pthread_join(thread, NULL);
    puts("waits");
    fflush(stdout);
    while (1) {
        pause();
    }
}
