/* Memory for events: all of it is mapped when the program starts, and what a thread takes is there already. Nothing is
 * held open, and where threads run nothing is called: a thread may have little stack, be cancelled, or be in a handler
 * of signals. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "real.h"

#define PAGE_BYTES 4096u
#define KEPT_SLOTS 8      /* for what says that a chunk is full, and handlers of signals just before */
#define SHARE_OF_ROOM 4   /* of a limited address space, no more than a quarter is mapped */
#define CHUNKS_ALONE 16u  /* added at a time */

struct control *control;
static char *chunks;
static uint32_t mapped_chunks;
static char events_path[PATH_MAX]; /* used without a recording process only */

static void *map(const char *path, uint64_t bytes)
{
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
        return NULL;
    }
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    /* Writes to mapped memory leave no date, and tools that collect changed files go by dates. */
    futimens(file, NULL);
    close(file);
    return mapped == MAP_FAILED ? NULL : mapped;
}

/* How many chunks may be mapped: a program with a limit to its address space keeps most of it. */
static uint32_t chunks_that_fit(uint32_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) {
        return wanted;
    }
    uint64_t most = limit.rlim_cur / SHARE_OF_ROOM / CHUNK_BYTES;
    return most < wanted ? (uint32_t)most : wanted;
}

/* Maps the files of the working folder, as the program starts; NULL if they are not there. */
struct control *open_store(const char *folder)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/control", folder) >= sizeof path) {
        return NULL;
    }
    struct control *mapped = map(path, sizeof(struct control));
    if (!mapped || memcmp(mapped->magic, FORM_MAGIC, sizeof mapped->magic) != 0) {
        return NULL;
    }
    snprintf(events_path, sizeof events_path, "%s/events", folder);
    mapped_chunks = chunks_that_fit(mapped->chunks_max);
    chunks = mapped_chunks ? map(events_path, (uint64_t)mapped_chunks * CHUNK_BYTES) : NULL;
    if (!chunks) {
        return NULL;
    }
    return mapped;
}

/* Adds chunks up to one that is wanted, where no recording process does: in a virtual machine. */
static int add_alone(uint32_t index)
{
    uint64_t count = index / CHUNKS_ALONE * CHUNKS_ALONE + CHUNKS_ALONE;
    count = count > control->chunks_max ? control->chunks_max : count;
    int file = (int)real.syscall(SYS_openat, AT_FDCWD, events_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    if (file < 0) {
        return 0;
    }
    int is_there = real.syscall(SYS_fallocate, file, 0, 0L, (long)(count * CHUNK_BYTES)) == 0;
    real.syscall(SYS_close, file);
    uint32_t known = __atomic_load_n(&control->available, __ATOMIC_ACQUIRE);
    while (is_there && known < count &&
           !__atomic_compare_exchange_n(&control->available, &known, (uint32_t)count, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
    }
    return is_there;
}

/* Whether memory stands behind a chunk: beyond it, a write would end the program. */
static int is_there(uint32_t index)
{
    return index < mapped_chunks && (index < __atomic_load_n(&control->available, __ATOMIC_ACQUIRE) ||
                                     (UNLIKELY(control->is_alone) && !is_sandboxed && add_alone(index)));
}

/* The next chunk, for a thread; NULL if there is none now. */
static struct chunk *take_chunk(uint32_t thread, uint32_t sequence)
{
    uint32_t index = __atomic_load_n(&control->taken, __ATOMIC_RELAXED);
    do {
        if (!is_there(index)) {
            return NULL;
        }
    } while (!__atomic_compare_exchange_n(&control->taken, &index, index + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    struct chunk *chunk = (struct chunk *)(chunks + (uint64_t)index * CHUNK_BYTES);
    chunk->process = process_number;
    chunk->thread = thread;
    chunk->sequence = sequence;
    return chunk;
}

/* Events meet memory that is there, so that they take the time that an event takes. */
static void touch(struct chunk *chunk)
{
    for (uint32_t at = PAGE_BYTES; at < CHUNK_BYTES; at += PAGE_BYTES) {
        *((volatile char *)chunk + at) = 0;
    }
}

static void use(struct thread *self, struct chunk *chunk, uint32_t skipped)
{
    touch(chunk);
    self->next = (struct slot *)((char *)chunk + skipped);
    self->end = (struct slot *)((char *)chunk + CHUNK_BYTES) - KEPT_SLOTS;
}

/* A thread's record in a chunk of its own; NULL if there is no room. */
struct thread *first_chunk(uint32_t number)
{
    _Static_assert(sizeof(struct chunk) + sizeof(struct head) + sizeof(struct thread) <= FIRST_SLOTS, "both fit");
    struct chunk *chunk = take_chunk(number, 0);
    if (!chunk) {
        return NULL;
    }
    struct head *head = (struct head *)(chunk + 1);
    struct thread *self = (struct thread *)(head + 1);
    self->head = head;
    self->number = number;
    self->counter = -1;
    use(self, chunk, FIRST_SLOTS);
    return self;
}

static void append_reading(struct thread *self, unsigned kind, uint64_t now, struct reading reading)
{
    struct slot *slot = self->next;
    memcpy(slot + 1, &reading, sizeof reading);
    slot->object = slot->aux = 0;
    __atomic_store_n(&slot->head, kind | READING << 8 | (now - self->last) << 16, __ATOMIC_RELEASE);
    self->last = now;
    self->next = slot + 2;
}

/* Goes on behind what is full. The caller is busy and has kept two slots. */
void next_chunk(struct thread *self)
{
    uint64_t begin = ticks();
    struct chunk *chunk = take_chunk(self->number, self->sequence + 1);
    self->has_no_room = !chunk;
    if (!chunk) {
        self->end = self->next;
        return;
    }
    self->sequence++;
    /* The time until here is the program's, but for what this has taken: both are recorded. */
    struct reading reading = read_cpu(self, begin, 0);
    uint64_t cpu_ns = reading.cpu_ns;
    append_reading(self, ANCHOR, begin < self->last ? self->last : begin, reading);
    use(self, chunk, sizeof *chunk);
    self->head->last = clock_pair();
    uint64_t end = ticks();
    reading = read_cpu(self, end, 0);
    append_reading(self, OWN_TIME, end < self->last ? self->last : end, reading);
    self->head->own_ns += reading.cpu_ns - cpu_ns;
}
