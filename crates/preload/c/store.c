/* The files of the events. Nothing is held open: a program may close, or run out of, whatever it likes. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "real.h"

#define FIRST_BYTES (64u << 10)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define NEXT_BYTES (1u << 20)
#define KEPT_SLOTS 8 /* for what says that a window is full, and handlers of signals just before */

struct control *control;
uint32_t process_number;
char folder[PATH_MAX];

/* Whether the recording may take that many bytes more. */
static int may_take(uint64_t bytes)
{
    if (__atomic_add_fetch(&control->bytes, bytes, __ATOMIC_RELAXED) <= control->bytes_max) {
        return 1;
    }
    __atomic_sub_fetch(&control->bytes, bytes, __ATOMIC_RELAXED);
    return 0;
}

/* Whether files may become that long: beyond the limit, a signal ends the program. */
static int may_grow_to(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

/* Adds bytes at a file's end, for sure there, and maps them; NULL if there are none. */
static char *extend(const struct thread *self, uint64_t offset, uint64_t bytes)
{
    char path[PATH_MAX + 32];
    if (!may_grow_to(offset + bytes) || !may_take(bytes)) {
        return NULL;
    }
    snprintf(path, sizeof path, "%s/%u.%u.raw", folder, process_number, self->number);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) {
        return NULL;
    }
    char *window = MAP_FAILED;
    if (fallocate(file, 0, (off_t)offset, (off_t)bytes) == 0) {
        window = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
    }
    close(file);
    if (window == MAP_FAILED) {
        return NULL;
    }
    madvise(window, bytes, MADV_POPULATE_WRITE); /* before Linux 5.14, pages come when they are written */
    return window;
}

static void use(struct thread *self, char *window, uint64_t skipped, uint64_t bytes)
{
    self->next = (struct slot *)(window + skipped);
    self->end = (struct slot *)(window + bytes) - KEPT_SLOTS;
    self->file_bytes += bytes;
}

/* Makes a thread's file; whether there is one. */
int open_thread(struct thread *self, int is_continued)
{
    char *window = extend(self, 0, FIRST_BYTES);
    if (!window) {
        return 0;
    }
    self->head = (struct head *)window;
    self->head_window_bytes = FIRST_BYTES;
    use(self, window, HEAD_BYTES, FIRST_BYTES);
    struct head *head = self->head;
    head->process = process_number;
    head->thread = self->number;
    head->pid = (uint32_t)getpid();
    head->parent_pid = (uint32_t)getppid();
    head->creator = self->creator;
    head->is_continued = (uint32_t)is_continued;
    head->identity = (uint64_t)pthread_self();
    head->fast_cost = fast_cost;
    head->slow_cost = slow_cost;
    head->rate = rate;
    head->clock = sees_switches() ? TICKS : KERNEL_CLOCK;
    head->begin = head->last = clock_pair();
    prctl(PR_GET_NAME, head->name);
    __asm__ volatile("" ::: "memory");
    memcpy(head->magic, FORM_MAGIC, sizeof head->magic);
    return 1;
}

/* Goes on behind what is full. The caller is busy and has kept two slots. */
void next_window(struct thread *self)
{
    uint64_t begin = ticks(), cpu_ns = thread_cpu_ns();
    char *window = extend(self, self->file_bytes, NEXT_BYTES);
    if (!window) {
        self->end = self->next;
        return;
    }
    /* The time until here is the program's, but for what this has taken: both are recorded. */
    struct slot *slot = self->next;
    struct reading reading = {cpu_ns, *self->core};
    memcpy(slot + 1, &reading, sizeof reading);
    slot->object = slot->aux = 0;
    __atomic_store_n(&slot->head, ANCHOR | READING << 8 | (begin - self->last) << 16, __ATOMIC_RELEASE);
    if (self->window) {
        munmap(self->window, self->window_bytes);
    }
    self->window = window;
    self->window_bytes = NEXT_BYTES;
    use(self, window, 0, NEXT_BYTES);
    self->head->last = clock_pair();
    prctl(PR_GET_NAME, self->head->name);
    slot = self->next;
    uint64_t end = ticks();
    reading = (struct reading){thread_cpu_ns(), *self->core};
    memcpy(slot + 1, &reading, sizeof reading);
    slot->object = slot->aux = 0;
    __atomic_store_n(&slot->head, OWN_TIME | READING << 8 | (end - begin) << 16, __ATOMIC_RELEASE);
    self->next = slot + 2;
    self->last = end;
    self->head->own_ns += reading.cpu_ns - cpu_ns;
}

/* Lets go of what is mapped of a thread's file. */
void forget_thread(struct thread *self)
{
    if (self->window) {
        munmap(self->window, self->window_bytes);
    }
    if (self->head) {
        munmap(self->head, self->head_window_bytes);
    }
    self->window = NULL;
    self->head = NULL;
    self->next = self->end = NULL;
    self->file_bytes = 0;
}
