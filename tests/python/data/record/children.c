/* A forked child with a thread, and one that is spawned: /bin/true. */
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *argument) {
    for (int round = 0; round < 100; round++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}

static void lock(void) {
    pthread_mutex_lock(&mutex);
}

static void unlock(void) {
    pthread_mutex_unlock(&mutex);
}

int main(void) {
    char *arguments[] = {"true", NULL};
    pid_t spawned;
    int status;
    pthread_atfork(lock, unlock, unlock); /* what these do is nobody's event */
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, run, NULL);
        pthread_join(thread, NULL);
        return 3;
    }
    waitpid(child, &status, 0);
    if (posix_spawn(&spawned, "/bin/true", NULL, NULL, arguments, environ)) {
        return 1;
    }
    waitpid(spawned, NULL, 0);
    return WEXITSTATUS(status) == 3 ? 0 : 1;
}
