/* Four threads, each 1000 times: lock, unlock; trylock, unlock; read, write, unlock; spin, unlock. */
#define _GNU_SOURCE
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, own[4];
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static long sum;

static void *run(void *argument) {
    pthread_mutex_t *mine = argument;
    for (int round = 0; round < 1000; round++) {
        pthread_mutex_lock(&mutex);
        sum++;
        pthread_mutex_unlock(&mutex);
        if (pthread_mutex_trylock(mine) == 0 && pthread_mutex_trylock(mine) != 0) {
            pthread_mutex_unlock(mine);
        }
        pthread_rwlock_rdlock(&readers);
        pthread_rwlock_unlock(&readers);
        pthread_rwlock_wrlock(&readers);
        pthread_rwlock_unlock(&readers);
        pthread_spin_lock(&spin);
        pthread_spin_unlock(&spin);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    pthread_spin_init(&spin, 0);
    for (int index = 0; index < 4; index++) {
        pthread_mutex_init(&own[index], NULL);
        pthread_create(&threads[index], NULL, run, &own[index]);
    }
    for (int index = 0; index < 4; index++) {
        pthread_join(threads[index], NULL);
    }
    return sum == 4000 ? 0 : 1;
}
