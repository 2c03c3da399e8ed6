/* Programs on POSIX threads, as people write them: `threads KIND THREADS`. Each does some 150 million instructions
 * however many threads it has. plan.py says what each stands for. */
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "work.h"

static pthread_t ids[THREADS_MAX];
static int count;

/* Starts threads that get their number, and waits for them. */
static void fork_join(int threads, void *(*body)(void *))
{
    for (int i = 0; i < threads; i++)
        check(pthread_create(&ids[i], NULL, body, (void *)(intptr_t)i) == 0, "pthread_create");
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

static int64_t share(int64_t whole, int64_t number, int64_t parts)
{
    return whole * (number + 1) / parts - whole * number / parts;
}

/* crack: every thread tries its equal share of keys, and never talks to another. */
#define KEYS 3000
#define KEY_STEPS 12500

static void *try_keys(void *number)
{
    for (int64_t left = share(KEYS, (intptr_t)number, count); left > 0; left--)
        compute(KEY_STEPS);
    return NULL;
}

static void crack(int threads)
{
    count = threads;
    fork_join(threads, try_keys);
}

/* wavefront: threads take rows of blocks; a block needs the row above to be two blocks ahead, and the picture before
 * to be two rows further down. */
#define PICTURES 4
#define ROWS 17
#define COLUMNS 30
#define BLOCK_STEPS 18000

static struct row {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int done;
} rows[PICTURES * ROWS];
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;
static int next_row;

static void wait_for(int row, int columns)
{
    pthread_mutex_lock(&rows[row].lock);
    while (rows[row].done < columns)
        pthread_cond_wait(&rows[row].moved, &rows[row].lock);
    pthread_mutex_unlock(&rows[row].lock);
}

static int take_row(void)
{
    pthread_mutex_lock(&taking);
    int row = next_row++;
    pthread_mutex_unlock(&taking);
    return row;
}

static void encode_row(int row)
{
    int picture = row / ROWS, place = row % ROWS;
    int reference = (picture - 1) * ROWS + (place + 2 < ROWS ? place + 2 : ROWS - 1);
    for (int column = 0; column < COLUMNS; column++) {
        int ahead = column + 2 < COLUMNS ? column + 2 : COLUMNS;
        if (place > 0)
            wait_for(row - 1, ahead);
        if (picture > 0)
            wait_for(reference, ahead);
        compute(uneven(BLOCK_STEPS, (uint64_t)(row * COLUMNS + column)));
        pthread_mutex_lock(&rows[row].lock);
        rows[row].done++;
        pthread_cond_broadcast(&rows[row].moved);
        pthread_mutex_unlock(&rows[row].lock);
    }
}

static void *encode(void *unused)
{
    (void)unused;
    for (int row; (row = take_row()) < PICTURES * ROWS;)
        encode_row(row);
    return NULL;
}

static void wavefront(int threads)
{
    for (int i = 0; i < PICTURES * ROWS; i++) {
        pthread_mutex_init(&rows[i].lock, NULL);
        pthread_cond_init(&rows[i].moved, NULL);
    }
    fork_join(threads, encode);
}

/* Bounded queues of items' numbers. */
#define ROOM 16
#define END -1

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    int items[ROOM];
    int first, used;
};

#define QUEUE {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0}

static void put(struct queue *queue, int item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->used == ROOM)
        pthread_cond_wait(&queue->emptied, &queue->lock);
    queue->items[(queue->first + queue->used++) % ROOM] = item;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

static int get(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->used == 0)
        pthread_cond_wait(&queue->filled, &queue->lock);
    int item = queue->items[queue->first];
    queue->first = (queue->first + 1) % ROOM;
    queue->used--;
    pthread_cond_signal(&queue->emptied);
    pthread_mutex_unlock(&queue->lock);
    return item;
}

/* queue: the main thread reads blocks, the others compress them. */
#define BLOCKS 160
#define READ_STEPS 8000
#define COMPRESS_STEPS 226000

static struct queue blocks = QUEUE;

static void *compress(void *unused)
{
    (void)unused;
    for (int item; (item = get(&blocks)) != END;)
        compute(uneven(COMPRESS_STEPS, (uint64_t)item));
    return NULL;
}

static void queue(int threads)
{
    for (int i = 0; i < threads; i++)
        check(pthread_create(&ids[i], NULL, compress, NULL) == 0, "pthread_create");
    for (int item = 0; item < BLOCKS; item++) {
        compute(READ_STEPS);
        put(&blocks, item);
    }
    for (int i = 0; i < threads; i++)
        put(&blocks, END);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

/* pipeline: one thread decodes frames, one writes them, all others filter them in between; at least three. */
#define FRAMES 120
#define DECODE_STEPS 31000
#define FILTER_STEPS 250000
#define WRITE_STEPS 38000

static struct queue decoded = QUEUE, filtered = QUEUE;

static void *filter(void *unused)
{
    (void)unused;
    for (int item; (item = get(&decoded)) != END;) {
        compute(FILTER_STEPS);
        put(&filtered, item);
    }
    return NULL;
}

static void *write_all(void *unused)
{
    (void)unused;
    for (int i = 0; i < FRAMES; i++) {
        get(&filtered);
        compute(WRITE_STEPS);
    }
    return NULL;
}

static void pipeline(int threads)
{
    int filters = threads > 3 ? threads - 2 : 1;
    pthread_t writer;
    check(pthread_create(&writer, NULL, write_all, NULL) == 0, "pthread_create");
    for (int i = 0; i < filters; i++)
        check(pthread_create(&ids[i], NULL, filter, NULL) == 0, "pthread_create");
    for (int frame = 0; frame < FRAMES; frame++) {
        compute(DECODE_STEPS);
        put(&decoded, frame);
    }
    for (int i = 0; i < filters; i++)
        put(&decoded, END);
    for (int i = 0; i < filters; i++)
        pthread_join(ids[i], NULL);
    pthread_join(writer, NULL);
}

/* tree: as parallel merge sorts; threads sort a part each, then half as many merge two of them each, down to one. */
#define SORTS 3
#define SORT_STEPS 9000000
#define MERGE_STEPS 1000000

static int64_t level_steps;

static void *do_level(void *number)
{
    compute(share(level_steps, (intptr_t)number, count));
    return NULL;
}

static void tree(int threads)
{
    for (int sort = 0; sort < SORTS; sort++) {
        level_steps = SORT_STEPS;
        for (count = threads; count > 1; count = (count + 1) / 2) {
            fork_join(count, do_level);
            level_steps = MERGE_STEPS;
        }
        compute(level_steps);
    }
}

/* server: clients ask, wait for the answer and think for 2 ms; threads answer. */
#define CLIENTS 12
#define REQUESTS 20
#define ANSWER_STEPS 156000
#define THINK_NS 2000000

static struct queue asked = QUEUE;
static struct client {
    pthread_t id;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool has_answer;
} clients[CLIENTS];

static void *ask(void *number)
{
    struct client *own = &clients[(intptr_t)number];
    for (int i = 0; i < REQUESTS; i++) {
        put(&asked, (int)(intptr_t)number);
        pthread_mutex_lock(&own->lock);
        while (!own->has_answer)
            pthread_cond_wait(&own->answered, &own->lock);
        own->has_answer = false;
        pthread_mutex_unlock(&own->lock);
        nanosleep(&(struct timespec){0, THINK_NS}, NULL);
    }
    return NULL;
}

static void *answer(void *unused)
{
    (void)unused;
    for (int item; (item = get(&asked)) != END;) {
        compute(ANSWER_STEPS);
        pthread_mutex_lock(&clients[item].lock);
        clients[item].has_answer = true;
        pthread_cond_signal(&clients[item].answered);
        pthread_mutex_unlock(&clients[item].lock);
    }
    return NULL;
}

static void server(int threads)
{
    for (int i = 0; i < threads; i++)
        check(pthread_create(&ids[i], NULL, answer, NULL) == 0, "pthread_create");
    for (int i = 0; i < CLIENTS; i++) {
        pthread_mutex_init(&clients[i].lock, NULL);
        pthread_cond_init(&clients[i].answered, NULL);
        check(pthread_create(&clients[i].id, NULL, ask, (void *)(intptr_t)i) == 0, "pthread_create");
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].id, NULL);
    for (int i = 0; i < threads; i++)
        put(&asked, END);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

int main(int argc, char **argv)
{
    static const struct kind kinds[] = {
        {"crack", crack}, {"wavefront", wavefront}, {"queue", queue}, {"pipeline", pipeline},
        {"tree", tree},   {"server", server},       {NULL, NULL},
    };
    return run_kind(argc, argv, kinds);
}
