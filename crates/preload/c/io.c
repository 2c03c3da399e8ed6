/* Input and output that may block. It is an event only if it takes long: most of it does not block. */
#include "real.h"

#define CALL(type, aux, object, call) TOLD(type, call, has_waited(self, begin, (uint32_t)(object), result, aux))

/* What `has_read` or `has_written` notes. */
#define TRANSFER(noted, file, call) TOLD(ssize_t, call, (noted)(self, file, begin, result))

EXPORT ssize_t read(int file, void *to, size_t bytes)
{
    TRANSFER(has_read, file, real.read(file, to, bytes));
}
EXPORT ssize_t __read_chk(int file, void *to, size_t bytes, size_t room)
{
    TRANSFER(has_read, file, real.__read_chk(file, to, bytes, room));
}
EXPORT ssize_t pread64(int file, void *to, size_t bytes, off64_t at)
{
    TRANSFER(has_peeked, file, real.pread64(file, to, bytes, at));
}
EXPORT ssize_t pread(int file, void *to, size_t bytes, off_t at)
{
    TRANSFER(has_peeked, file, real.pread(file, to, bytes, at));
}
EXPORT ssize_t readv(int file, const struct iovec *to, int count)
{
    TRANSFER(has_read, file, real.readv(file, to, count));
}
EXPORT ssize_t recv(int file, void *to, size_t bytes, int flags)
{
    TRANSFER(flags & MSG_PEEK ? has_peeked : has_read, file, real.recv(file, to, bytes, flags));
}
EXPORT ssize_t __recv_chk(int file, void *to, size_t bytes, size_t room, int flags)
{
    TRANSFER(flags & MSG_PEEK ? has_peeked : has_read, file, real.__recv_chk(file, to, bytes, room, flags));
}
EXPORT ssize_t recvfrom(int file, void *to, size_t bytes, int flags, struct sockaddr *from, socklen_t *length)
{
    TRANSFER(flags & MSG_PEEK ? has_peeked : has_read, file, real.recvfrom(file, to, bytes, flags, from, length));
}
EXPORT ssize_t recvmsg(int file, struct msghdr *message, int flags)
{
    TRANSFER(flags & MSG_PEEK ? has_peeked : has_read, file, real.recvmsg(file, message, flags));
}
EXPORT ssize_t write(int file, const void *from, size_t bytes)
{
    TRANSFER(has_written, file, real.write(file, from, bytes));
}
EXPORT ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t at)
{
    TRANSFER(has_stored, file, real.pwrite64(file, from, bytes, at));
}
EXPORT ssize_t pwrite(int file, const void *from, size_t bytes, off_t at)
{
    TRANSFER(has_stored, file, real.pwrite(file, from, bytes, at));
}
EXPORT ssize_t writev(int file, const struct iovec *from, int count)
{
    TRANSFER(has_written, file, real.writev(file, from, count));
}
EXPORT ssize_t send(int file, const void *from, size_t bytes, int flags)
{
    TRANSFER(has_written, file, real.send(file, from, bytes, flags));
}
EXPORT ssize_t sendto(int file, const void *from, size_t bytes, int flags, const struct sockaddr *to, socklen_t length)
{
    TRANSFER(has_written, file, real.sendto(file, from, bytes, flags, to, length));
}
EXPORT ssize_t sendmsg(int file, const struct msghdr *message, int flags)
{
    TRANSFER(has_written, file, real.sendmsg(file, message, flags));
}
EXPORT ssize_t sendfile64(int to, int from, off64_t *at, size_t bytes)
{
    TRANSFER(has_written, to, real.sendfile64(to, from, at, bytes));
}
EXPORT ssize_t sendfile(int to, int from, off_t *at, size_t bytes)
{
    TRANSFER(has_written, to, real.sendfile(to, from, at, bytes));
}
/* What is read of a counter, or added to it, has 8 bytes; these calls return 0. */
static void has_counted(struct thread *self, int file, uint64_t begin, ssize_t error)
{
    has_read(self, file, begin, error ? -1 : (ssize_t)sizeof(eventfd_t));
}
static void has_added(struct thread *self, int file, uint64_t begin, ssize_t error)
{
    has_written(self, file, begin, error ? -1 : (ssize_t)sizeof(eventfd_t));
}
static void has_moved(struct thread *self, const int files[2], uint64_t begin, ssize_t bytes)
{
    has_read(self, files[0], begin, bytes);
    has_written(self, files[1], ticks(), bytes);
}
EXPORT ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t bytes, unsigned flags)
{
    const int files[2] = {from, to};
    TRANSFER(has_moved, files, real.splice(from, from_at, to, to_at, bytes, flags));
}
EXPORT int eventfd_read(int file, eventfd_t *value)
{
    TRANSFER(has_counted, file, real.eventfd_read(file, value));
}
EXPORT int eventfd_write(int file, eventfd_t value)
{
    TRANSFER(has_added, file, real.eventfd_write(file, value));
}

/* A wait for several files has found something: in that stream, which another thread may read, or who knows where. */
static void has_found(struct thread *self, uint64_t begin, uint32_t stream, int found, enum io aux)
{
    if (stream && aux == POLLS) {
        note(self, READ, WAITED, stream, 0);
    } else {
        has_waited(self, begin, stream, found, aux);
    }
}

static uint32_t stream_of(struct thread *self, int file)
{
    uint32_t id = file_of(self, file);
    return is_stream(id) ? id : 0;
}

/* The first of them that tells something. If the other end was closed, perhaps a child has ended. */
static void has_polled(struct thread *self, const struct pollfd *files, nfds_t count, uint64_t begin, int found)
{
    if (ticks() - begin < short_ticks) {
        return;
    }
    uint32_t stream = 0;
    enum io aux = POLLS;
    for (nfds_t index = 0; found > 0 && index < count && !stream && aux == POLLS; index++) {
        if (files[index].revents & (POLLIN | POLLHUP)) {
            stream = stream_of(self, files[index].fd);
            aux = files[index].revents & POLLHUP ? INTERRUPTED : POLLS;
        }
    }
    has_found(self, begin, stream, found, aux);
}

static void has_selected(struct thread *self, const fd_set *in, int count, uint64_t begin, int found)
{
    if (ticks() - begin < short_ticks) {
        return;
    }
    uint32_t stream = 0;
    for (int file = 0; in && found > 0 && file < count && !stream; file++) {
        stream = FD_ISSET(file, in) ? stream_of(self, file) : 0;
    }
    has_found(self, begin, stream, found, POLLS);
}

static void has_heard(struct thread *self, int epoll, const struct epoll_event *events, uint64_t begin, int found)
{
    if (ticks() - begin < short_ticks) {
        return;
    }
    uint32_t stream = 0;
    enum io aux = POLLS;
    for (int index = 0; index < found && !stream && aux == POLLS; index++) {
        if (events[index].events & (EPOLLIN | EPOLLHUP)) {
            stream = stream_of(self, watched_file(epoll, events[index].data.u64));
            aux = events[index].events & EPOLLHUP ? INTERRUPTED : POLLS;
        }
    }
    has_found(self, begin, stream, found, aux);
}

#define POLLED(call) TOLD(int, call, has_polled(self, files, count, begin, result))
#define SELECTED(call) TOLD(int, call, has_selected(self, in, count, begin, result))
#define HEARD(call) TOLD(int, call, has_heard(self, file, events, begin, result))

EXPORT int poll(struct pollfd *files, nfds_t count, int ms)
{
    POLLED(real.poll(files, count, ms));
}
EXPORT int __poll_chk(struct pollfd *files, nfds_t count, int ms, size_t room)
{
    POLLED(real.__poll_chk(files, count, ms, room));
}
EXPORT int ppoll(struct pollfd *files, nfds_t count, const struct timespec *time, const sigset_t *mask)
{
    POLLED(real.ppoll(files, count, time, mask));
}
EXPORT int select(int count, fd_set *in, fd_set *out, fd_set *errors, struct timeval *time)
{
    SELECTED(real.select(count, in, out, errors, time));
}
EXPORT int pselect(int count, fd_set *in, fd_set *out, fd_set *errors, const struct timespec *time,
                   const sigset_t *mask)
{
    SELECTED(real.pselect(count, in, out, errors, time, mask));
}
EXPORT int epoll_wait(int file, struct epoll_event *events, int count, int ms)
{
    HEARD(real.epoll_wait(file, events, count, ms));
}
EXPORT int epoll_pwait(int file, struct epoll_event *events, int count, int ms, const sigset_t *mask)
{
    HEARD(real.epoll_pwait(file, events, count, ms, mask));
}
EXPORT int fsync(int file)
{
    TOLD(int, real.fsync(file), has_stored(self, file, begin, result));
}
EXPORT int fdatasync(int file)
{
    TOLD(int, real.fdatasync(file), has_stored(self, file, begin, result));
}
EXPORT int sigwait(const sigset_t *set, int *number)
{
    CALL(int, INTERRUPTED, 0, real.sigwait(set, number));
}
EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
    CALL(int, INTERRUPTED, 0, real.sigtimedwait(set, info, time));
}
EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    CALL(int, INTERRUPTED, 0, real.sigwaitinfo(set, info));
}
EXPORT int sigsuspend(const sigset_t *mask)
{
    CALL(int, INTERRUPTED, 0, real.sigsuspend(mask));
}
EXPORT int pause(void)
{
    CALL(int, INTERRUPTED, 0, real.pause());
}
/* Who waits for a signal goes on with it. A sender may be gone once it has sent one to itself. */
#define SENT(process, number, call) TOLD(int, call, has_sent(self, process, number, begin, result))

static void has_sent(struct thread *self, pid_t process, int number, uint64_t begin, int error)
{
    if (!error && process > 0 && number) {
        note_at(self, begin, KILL, (uint32_t)process, (uint32_t)number);
    }
}

EXPORT int kill(pid_t process, int number)
{
    SENT(process, number, real.kill(process, number));
}
EXPORT int sigqueue(pid_t process, int number, const union sigval value)
{
    SENT(process, number, real.sigqueue(process, number, value));
}
EXPORT int system(const char *command)
{
    /* It waits for a child of its own. */
    CALL(int, INTERRUPTED, 0, real.system(command));
}
