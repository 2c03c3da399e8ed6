/* File descriptors whose other ends recorded threads may have: pipes, sockets, counters (eventfd), signals (signalfd);
 * and timers. What was read or written there is an event, however short it took, so that who waits for it is tied to
 * who has written it. */
#include <sys/syscall.h>

#include "real.h"

#define ON_EXEC_ONLY 4 /* include/uapi/linux/close_range.h: CLOSE_RANGE_CLOEXEC, which older headers lack */
/* The C library has these two since 2.34, its headers the call since 2.33: a program that looks for them finds ours. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define FILES 4096 /* descriptors that are known; others are taken for OTHER_FILE */
static uint32_t files[FILES];
static uint32_t devices[FILES]; /* those of files of disks */
int counts_blocks;
static uint8_t has_period[FILES]; /* timers that go on by themselves */

static uint32_t id_of(uint64_t value, enum file kind)
{
    uint32_t known = hash((const void *)(uintptr_t)value);
    return known - known % FILE_KINDS + kind;
}

/* After vfork, a child has descriptors of its own in its parent's memory. */
static int is_own_memory(void)
{
    return control && (is_sandboxed || control->process[process_number].pid == (uint32_t)getpid());
}

/* Files of disks, and disks themselves: how long these take depends on no other thread. */
static int is_stored(mode_t mode)
{
    return S_ISREG(mode) || S_ISBLK(mode) || S_ISDIR(mode);
}

/* Who accepts connections there waits for who asks for one, not for bytes. */
static int accepts(int file)
{
    int is_accepting = 0;
    socklen_t length = sizeof is_accepting;
    return !real.syscall(SYS_getsockopt, file, SOL_SOCKET, SO_ACCEPTCONN, &is_accepting, &length) && is_accepting;
}

/* Asks the kernel, but not where a signal's handler has interrupted this, nor in a sandbox, which may kill for it. */
static uint32_t learn(struct thread *self, int file)
{
    if (self->is_busy || is_sandboxed) {
        return OTHER_FILE;
    }
    int error = errno;
    uint32_t id = UNKNOWN_FILE;
    self->is_busy = 1;
    __asm__ volatile("" ::: "memory");
    struct stat *status = &self->answer.status;
    if (real.syscall(SYS_fstat, file, status) == 0) {
        uint64_t device = status->st_dev, inode = status->st_ino ^ device << 40;
        id = S_ISFIFO(status->st_mode)    ? id_of(inode, PIPE)
             : S_ISSOCK(status->st_mode)  ? (accepts(file) ? OTHER_FILE : id_of(inode, SOCKET))
             : is_stored(status->st_mode) ? STORED
                                          : OTHER_FILE;
        if (is_own_memory()) {
            devices[file] = (uint32_t)device;
            __atomic_store_n(&files[file], id, __ATOMIC_RELAXED);
        }
    }
    __asm__ volatile("" ::: "memory");
    self->is_busy = 0;
    errno = error;
    return id;
}

uint32_t file_of(struct thread *self, int file)
{
    if (file < 0 || file >= FILES) {
        return OTHER_FILE;
    }
    uint32_t id = __atomic_load_n(&files[file], __ATOMIC_RELAXED);
    return LIKELY(id != UNKNOWN_FILE) ? id : learn(self, file);
}

/* These numbers, the last one included, will be other files, if any. */
void forget_files(int from, int to)
{
    to = to < FILES ? to : FILES - 1;
    int is_known = 0;
    for (int file = from < 0 ? to + 1 : from; file <= to && !is_known; file++) {
        is_known = files[file] != UNKNOWN_FILE;
    }
    if (is_known && is_own_memory()) {
        for (int file = from; file <= to; file++) {
            __atomic_store_n(&files[file], UNKNOWN_FILE, __ATOMIC_RELAXED);
        }
    }
}

/* A call that began then has returned: if it took long. Waiting for files until the time is over has been a sleep. */
void has_waited(struct thread *self, uint64_t begin, uint32_t object, ssize_t result, enum io aux)
{
    if (ticks() - begin < short_ticks) {
        return;
    }
    if (aux == POLLS && result == 0) {
        note(self, SLEEP, WAITED, object, SLEEP_FOR);
    } else {
        note(self, IO, WAITED, object, ended(result, aux));
    }
}

/* Whether the kernel counts for the thread that reads there what is read of disks (include/uapi/linux/magic.h): not
 * where another process or computer reads for it, nor in what kernels make up. */
static int is_counted(uint32_t type)
{
    switch (type) {
    case 0xef53: /* ext */
    case 0x58465342: /* XFS */
    case 0x9123683e: /* Btrfs */
    case 0x794c7630: /* overlay */
    case 0xf2f52010: /* F2FS */
    case 0xca451a4e: /* bcachefs */
    case 0x4d44: /* FAT */
    case 0x2011bab0: /* exFAT */
    case 0x73717368: /* SquashFS */
    case 0xe0f5e1e2: /* EROFS */
    case 0x9660: /* ISO 9660 */
    case 0x01021994: /* tmpfs */
    case 0x858458f6: /* ramfs */
        return 1;
    default:
        return 0;
    }
}

#define DEVICES 64
/* The same by device, once it was asked, as asking may be a question to a server: the device and the answer. */
static uint64_t counted[DEVICES];

static int is_file_counted(struct thread *self, int file)
{
    uint64_t device = devices[file];
    uint64_t *place = &counted[device % DEVICES];
    uint64_t known = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (!known || known / 4 != device) {
        int is_known = real.syscall(SYS_fstatfs, file, &self->answer.system) == 0;
        known = device * 4 + 2 + (is_known && is_counted((uint32_t)self->answer.system.f_type));
        __atomic_store_n(place, known, __ATOMIC_RELAXED);
    }
    return (int)(known % 2);
}

/* Whether the thread may have waited for a disk: it has read from one since it was last asked, or nobody can tell. Else
 * what it had to read was in memory, or another thread was just reading it, so it has waited for a core. */
static int may_have_read_disk(struct thread *self, int file)
{
    if (!counts_blocks || self->is_busy || is_sandboxed) {
        return 1;
    }
    int error = errno;
    self->is_busy = 1;
    __asm__ volatile("" ::: "memory");
    int may_have = 1;
    if (is_file_counted(self, file) && real.syscall(SYS_getrusage, RUSAGE_THREAD, &self->answer.usage) == 0) {
        uint64_t blocks = (uint64_t)self->answer.usage.ru_inblock;
        may_have = blocks != self->blocks_read;
        self->blocks_read = blocks;
    }
    __asm__ volatile("" ::: "memory");
    self->is_busy = 0;
    errno = error;
    return may_have;
}

/* A call that waited ends; `bytes` is negative if it failed, 0 at the end of what can be read. */
static void end_wait(struct thread *self, uint32_t id, int file, enum io aux, ssize_t bytes)
{
    uint32_t object = is_stream(id) ? id : (uint32_t)file;
    int is_from_memory = kind_of(id) == STORED && aux == READS && bytes >= 0 && !may_have_read_disk(self, file);
    if (!is_from_memory) {
        note(self, IO, WAITED, object, ended(bytes, kind_of(id) == STORED ? STORAGE : aux));
    }
}

/* What was read or written there changes nothing for who reads next. */
void has_peeked(struct thread *self, int file, uint64_t begin, ssize_t bytes)
{
    if (ticks() - begin >= short_ticks) {
        end_wait(self, file_of(self, file), file, READS, bytes);
    }
}

/* The same of what was written there, or brought to the disk. */
void has_stored(struct thread *self, int file, uint64_t begin, ssize_t bytes)
{
    if (ticks() - begin >= short_ticks) {
        end_wait(self, file_of(self, file), file, WRITES, bytes);
    }
}

/* A call that began then has read so much. */
void has_read(struct thread *self, int file, uint64_t begin, ssize_t bytes)
{
    int is_slow = ticks() - begin >= short_ticks;
    if (!is_slow && bytes <= 0) {
        return;
    }
    uint32_t id = file_of(self, file);
    if (is_stream(id) && bytes > 0) {
        note(self, READ, WAITED, id, (uint32_t)bytes);
    } else if (kind_of(id) == COUNTER && bytes > 0) {
        note(self, TAKE, WAITED, id, 0);
    } else if (kind_of(id) == TIMER && bytes > 0) {
        note(self, SLEEP, WAITED, id, has_period[file] ? SLEEP_PERIOD : SLEEP_UNTIL);
    } else if (kind_of(id) == SIGNALS && bytes > 0) {
        note(self, IO, WAITED, id, INTERRUPTED);
    } else if (is_slow) {
        end_wait(self, id, file, READS, bytes);
    }
}

/* A call that began then has written so much: at its begin, as its reader may have gone on since. */
void has_written(struct thread *self, int file, uint64_t begin, ssize_t bytes)
{
    int is_slow = ticks() - begin >= short_ticks;
    if (!is_slow && bytes <= 0) {
        return;
    }
    uint32_t id = file_of(self, file);
    if (is_stream(id) && bytes > 0) {
        note_at(self, begin, WRITE, id, (uint32_t)bytes);
        if (is_slow) {
            note(self, WRITE, WAITED, id, 0);
        }
    } else if (kind_of(id) == COUNTER && bytes > 0) {
        note_at(self, begin, ADD, id, 0);
    } else if (is_slow) {
        end_wait(self, id, file, WRITES, bytes);
    }
}

EXPORT int close(int file)
{
    resolve_once();
    forget_files(file, file);
    return real.close(file);
}

EXPORT void closefrom(int from)
{
    resolve_once();
    forget_files(from, FILES - 1);
    if (real.closefrom) {
        real.closefrom(from);
    } else {
        real.syscall(SYS_close_range, (unsigned)from, ~0u, 0);
    }
}

EXPORT int close_range(unsigned from, unsigned to, int flags)
{
    resolve_once();
    if (from < FILES && !(flags & ON_EXEC_ONLY)) {
        forget_files((int)from, to < FILES ? (int)to : FILES - 1);
    }
    return real.close_range ? real.close_range(from, to, flags) : (int)real.syscall(SYS_close_range, from, to, flags);
}

/* The kernel gives all these one inode: only their numbers tell them apart. */
static int is_numbered(uint32_t id)
{
    return kind_of(id) == COUNTER || kind_of(id) == TIMER || kind_of(id) == SIGNALS;
}

static int copied(int from, int to)
{
    int is_there = from >= 0 && from < FILES && to >= 0 && to < FILES;
    if (is_there && from != to && is_numbered(files[from]) && is_own_memory()) {
        files[to] = files[from];
        has_period[to] = has_period[from];
    }
    return to;
}

EXPORT int dup2(int from, int to)
{
    resolve_once();
    if (from != to) {
        forget_files(to, to);
    }
    return copied(from, real.dup2(from, to));
}

EXPORT int dup3(int from, int to, int flags)
{
    resolve_once();
    if (from != to) {
        forget_files(to, to);
    }
    return copied(from, real.dup3(from, to, flags));
}

/* Numbers a file that a call has made. */
static int numbered(int file, enum file kind)
{
    static uint32_t made;
    if (file >= 0 && file < FILES && is_own_memory()) {
        uint32_t number = __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
        files[file] = id_of((uint64_t)process_number << 32 | number, kind);
    }
    return file;
}

EXPORT int eventfd(unsigned count, int flags)
{
    resolve_once();
    return numbered(real.eventfd(count, flags), COUNTER);
}

EXPORT int timerfd_create(clockid_t clock, int flags)
{
    resolve_once();
    return numbered(real.timerfd_create(clock, flags), TIMER);
}

EXPORT int timerfd_settime(int file, int flags, const struct itimerspec *timer, struct itimerspec *before)
{
    resolve_once();
    int error = real.timerfd_settime(file, flags, timer, before);
    if (!error && file >= 0 && file < FILES && is_own_memory()) {
        has_period[file] = timer->it_interval.tv_sec || timer->it_interval.tv_nsec;
    }
    return error;
}

#define WATCHED 8192
/* What instances of epoll were last asked to tell by some data: a hash of both, and the file in the low bits. */
static uint64_t watched[WATCHED];

static uint64_t watch_key(int epoll, uint64_t data)
{
    uint64_t mixed = (data ^ (uint64_t)epoll << 48) * 0x9e3779b97f4a7c15u;
    return (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15u / FILES * FILES;
}

EXPORT int epoll_ctl(int epoll, int operation, int file, struct epoll_event *event)
{
    resolve_once();
    int error = real.epoll_ctl(epoll, operation, file, event);
    if (!error && operation != EPOLL_CTL_DEL && file < FILES && is_own_memory()) {
        uint64_t key = watch_key(epoll, event->data.u64);
        __atomic_store_n(&watched[key / FILES % WATCHED], key | (uint64_t)file, __ATOMIC_RELAXED);
    }
    return error;
}

/* The file of which an instance of epoll has told by that data, whatever thread has asked it to; -1 if not known. */
int watched_file(int epoll, uint64_t data)
{
    uint64_t key = watch_key(epoll, data);
    uint64_t found = __atomic_load_n(&watched[key / FILES % WATCHED], __ATOMIC_RELAXED);
    return found && found / FILES == key / FILES ? (int)(found % FILES) : -1;
}

EXPORT int signalfd(int file, const sigset_t *set, int flags)
{
    resolve_once();
    return numbered(real.signalfd(file, set, flags), SIGNALS);
}
