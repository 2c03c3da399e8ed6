/* Input and output that may block. It is an event only if it takes long: most of it does not block. */
#include "real.h"

/* As in crates/recording/src/model.rs. */
enum io { READS, WRITES, POLLS, OTHER, INTERRUPTED };

/* How a call has ended: by a signal or the end of all who could write to a pipe, perhaps a child has ended. */
static enum io ended(ssize_t result, enum io aux)
{
    int is_ended = (result < 0 && errno == EINTR) || (aux == READS && result == 0);
    return is_ended ? INTERRUPTED : aux;
}

#define CALL(type, aux, object, call) \
    struct thread *self = current(); \
    if (UNLIKELY(!self)) { \
        return call; \
    } \
    before(self); \
    uint64_t begin = ticks(); \
    type result = call; \
    if (ticks() - begin >= short_ticks) { \
        note(self, IO, WAITED, (uint32_t)(object), ended(result, aux)); \
    } \
    return result

EXPORT ssize_t read(int file, void *to, size_t bytes)
{
    CALL(ssize_t, READS, file, real.read(file, to, bytes));
}
EXPORT ssize_t __read_chk(int file, void *to, size_t bytes, size_t room)
{
    CALL(ssize_t, READS, file, real.__read_chk(file, to, bytes, room));
}
EXPORT ssize_t pread64(int file, void *to, size_t bytes, off64_t at)
{
    CALL(ssize_t, READS, file, real.pread64(file, to, bytes, at));
}
EXPORT ssize_t pread(int file, void *to, size_t bytes, off_t at)
{
    CALL(ssize_t, READS, file, real.pread(file, to, bytes, at));
}
EXPORT ssize_t readv(int file, const struct iovec *to, int count)
{
    CALL(ssize_t, READS, file, real.readv(file, to, count));
}
EXPORT ssize_t recv(int file, void *to, size_t bytes, int flags)
{
    CALL(ssize_t, READS, file, real.recv(file, to, bytes, flags));
}
EXPORT ssize_t __recv_chk(int file, void *to, size_t bytes, size_t room, int flags)
{
    CALL(ssize_t, READS, file, real.__recv_chk(file, to, bytes, room, flags));
}
EXPORT ssize_t recvfrom(int file, void *to, size_t bytes, int flags, struct sockaddr *from, socklen_t *length)
{
    CALL(ssize_t, READS, file, real.recvfrom(file, to, bytes, flags, from, length));
}
EXPORT ssize_t recvmsg(int file, struct msghdr *message, int flags)
{
    CALL(ssize_t, READS, file, real.recvmsg(file, message, flags));
}
EXPORT ssize_t write(int file, const void *from, size_t bytes)
{
    CALL(ssize_t, WRITES, file, real.write(file, from, bytes));
}
EXPORT ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t at)
{
    CALL(ssize_t, WRITES, file, real.pwrite64(file, from, bytes, at));
}
EXPORT ssize_t pwrite(int file, const void *from, size_t bytes, off_t at)
{
    CALL(ssize_t, WRITES, file, real.pwrite(file, from, bytes, at));
}
EXPORT ssize_t writev(int file, const struct iovec *from, int count)
{
    CALL(ssize_t, WRITES, file, real.writev(file, from, count));
}
EXPORT ssize_t send(int file, const void *from, size_t bytes, int flags)
{
    CALL(ssize_t, WRITES, file, real.send(file, from, bytes, flags));
}
EXPORT ssize_t sendto(int file, const void *from, size_t bytes, int flags, const struct sockaddr *to, socklen_t length)
{
    CALL(ssize_t, WRITES, file, real.sendto(file, from, bytes, flags, to, length));
}
EXPORT ssize_t sendmsg(int file, const struct msghdr *message, int flags)
{
    CALL(ssize_t, WRITES, file, real.sendmsg(file, message, flags));
}
EXPORT ssize_t sendfile64(int to, int from, off64_t *at, size_t bytes)
{
    CALL(ssize_t, WRITES, to, real.sendfile64(to, from, at, bytes));
}
/* How a wait for several files has ended: if the other end of a pipe was closed, perhaps a child has ended. */
static enum io polled(const struct pollfd *files, nfds_t count, int found)
{
    for (nfds_t index = 0; found > 0 && index < count; index++) {
        if (files[index].revents & POLLHUP) {
            return INTERRUPTED;
        }
    }
    return POLLS;
}

EXPORT int poll(struct pollfd *files, nfds_t count, int ms)
{
    CALL(int, polled(files, count, result), 0, real.poll(files, count, ms));
}
EXPORT int __poll_chk(struct pollfd *files, nfds_t count, int ms, size_t room)
{
    CALL(int, polled(files, count, result), 0, real.__poll_chk(files, count, ms, room));
}
EXPORT int ppoll(struct pollfd *files, nfds_t count, const struct timespec *time, const sigset_t *mask)
{
    CALL(int, polled(files, count, result), 0, real.ppoll(files, count, time, mask));
}
EXPORT int select(int count, fd_set *in, fd_set *out, fd_set *errors, struct timeval *time)
{
    CALL(int, POLLS, 0, real.select(count, in, out, errors, time));
}
EXPORT int pselect(int count, fd_set *in, fd_set *out, fd_set *errors, const struct timespec *time,
                   const sigset_t *mask)
{
    CALL(int, POLLS, 0, real.pselect(count, in, out, errors, time, mask));
}
EXPORT int epoll_wait(int file, struct epoll_event *events, int count, int ms)
{
    CALL(int, POLLS, file, real.epoll_wait(file, events, count, ms));
}
EXPORT int epoll_pwait(int file, struct epoll_event *events, int count, int ms, const sigset_t *mask)
{
    CALL(int, POLLS, file, real.epoll_pwait(file, events, count, ms, mask));
}
EXPORT int accept(int file, struct sockaddr *from, socklen_t *length)
{
    CALL(int, OTHER, file, real.accept(file, from, length));
}
EXPORT int accept4(int file, struct sockaddr *from, socklen_t *length, int flags)
{
    CALL(int, OTHER, file, real.accept4(file, from, length, flags));
}
EXPORT int connect(int file, const struct sockaddr *to, socklen_t length)
{
    CALL(int, OTHER, file, real.connect(file, to, length));
}
EXPORT int fsync(int file)
{
    CALL(int, OTHER, file, real.fsync(file));
}
EXPORT int fdatasync(int file)
{
    CALL(int, OTHER, file, real.fdatasync(file));
}
EXPORT int sigwait(const sigset_t *set, int *number)
{
    CALL(int, OTHER, 0, real.sigwait(set, number));
}
EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
    CALL(int, OTHER, 0, real.sigtimedwait(set, info, time));
}
EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    CALL(int, OTHER, 0, real.sigwaitinfo(set, info));
}
EXPORT int sigsuspend(const sigset_t *mask)
{
    CALL(int, OTHER, 0, real.sigsuspend(mask));
}
EXPORT int pause(void)
{
    CALL(int, OTHER, 0, real.pause());
}
EXPORT int system(const char *command)
{
    /* It waits for a child of its own. */
    CALL(int, INTERRUPTED, 0, real.system(command));
}
