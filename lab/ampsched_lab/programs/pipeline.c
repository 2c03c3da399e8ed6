/* A pipeline of three stages: a source, --middle threads, a sink, joined by two bounded queues of
 * --capacity items; --items items, each costing --source, --work and --sink iterations. */
#include <pthread.h>
#include <stdbool.h>

#include "truth.h"

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t not_full, not_empty;
    int64_t length;
    int producers; /* closed when none is left */
};

static struct queue to_middle = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 1};
static struct queue to_sink = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 1};
static int64_t items, capacity, source_work, middle_work, sink_work;

static void push(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->length == capacity)
        pthread_cond_wait(&queue->not_full, &queue->mutex);
    queue->length++;
    pthread_mutex_unlock(&queue->mutex);
    pthread_cond_signal(&queue->not_empty);
}

/* Takes an item; false if the queue is closed and empty. */
static bool pop(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->length == 0 && queue->producers > 0)
        pthread_cond_wait(&queue->not_empty, &queue->mutex);
    bool taken = queue->length > 0;
    if (taken)
        queue->length--;
    pthread_mutex_unlock(&queue->mutex);
    if (taken)
        pthread_cond_signal(&queue->not_full);
    return taken;
}

static void close_queue(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->producers--;
    pthread_mutex_unlock(&queue->mutex);
    pthread_cond_broadcast(&queue->not_empty);
}

static void source(struct worker *self)
{
    (void)self;
    for (int64_t i = 0; i < items; i++) {
        spin(source_work);
        push(&to_middle);
    }
    close_queue(&to_middle);
}

static void middle(struct worker *self)
{
    (void)self;
    while (pop(&to_middle)) {
        spin(middle_work);
        push(&to_sink);
    }
    close_queue(&to_sink);
}

static void sink(struct worker *self)
{
    (void)self;
    while (pop(&to_sink))
        spin(sink_work);
}

int main(int argc, char **argv)
{
    static struct worker workers[WORKERS_MAX];
    int middles = (int)number_argument(argc, argv, "--middle", 2);
    if (middles > WORKERS_MAX - 2)
        fail("--middle");
    items = number_argument(argc, argv, "--items", 2000);
    capacity = number_argument(argc, argv, "--capacity", 8);
    source_work = number_argument(argc, argv, "--source", 300000);
    middle_work = number_argument(argc, argv, "--work", 1000000);
    sink_work = number_argument(argc, argv, "--sink", 300000);
    to_sink.producers = middles;
    workers[0] = (struct worker){.name = "source", .body = source, .index = 0, .nice = 0, .cpu = -1};
    for (int i = 0; i < middles; i++)
        workers[1 + i] = (struct worker){.name = "middle", .body = middle, .index = i, .nice = 0, .cpu = -1};
    workers[1 + middles] = (struct worker){.name = "sink", .body = sink, .index = 0, .nice = 0, .cpu = -1};
    return run_workers(argc, argv, "pipeline", workers, middles + 2);
}
