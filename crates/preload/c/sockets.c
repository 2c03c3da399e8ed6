/* Which two sockets are the ends of one stream, and who has waited for a connection. */
#include <netinet/in.h>
#include <string.h>
#include <sys/syscall.h>

#include "real.h"

EXPORT int socketpair(int domain, int type, int protocol, int ends[2])
{
    struct thread *self = current();
    int error = real.socketpair(domain, type, protocol, ends);
    if (self && !error) {
        note(self, PAIR, 0, file_of(self, ends[0]), file_of(self, ends[1]));
    }
    return error;
}

/* A number for a server's address: its path, or its port; 0 if it is neither. */
static uint32_t server_of(const struct sockaddr *address, socklen_t length)
{
    if (length < sizeof(sa_family_t)) {
        return 0;
    }
    if (address->sa_family == AF_INET || address->sa_family == AF_INET6) {
        /* The port is at the same place in both. */
        return hash((const void *)(uintptr_t)((const struct sockaddr_in *)address)->sin_port);
    }
    if (address->sa_family != AF_UNIX) {
        return 0;
    }
    const char *path = ((const struct sockaddr_un *)address)->sun_path;
    size_t bytes = length - offsetof(struct sockaddr_un, sun_path);
    bytes = bytes > 0 && path[0] ? strnlen(path, bytes) : bytes;
    uint64_t sum = bytes;
    for (size_t at = 0; at < bytes; at++) {
        sum = (sum ^ (unsigned char)path[at]) * 0x100000001b3u;
    }
    return bytes ? hash((const void *)(uintptr_t)sum) : 0;
}

/* What a socket's own address names, or its peer's: asked of the kernel by that call. */
static uint32_t asked(struct thread *self, long call, int file)
{
    if (self->is_busy || is_sandboxed) {
        return 0;
    }
    uint32_t server = 0;
    int error = errno;
    self->is_busy = 1;
    __asm__ volatile("" ::: "memory");
    struct sockaddr *address = (struct sockaddr *)&self->answer.address;
    socklen_t length = sizeof self->answer.address;
    if (real.syscall(call, file, address, &length) == 0) {
        length = length < sizeof self->answer.address ? length : sizeof self->answer.address;
        server = server_of(address, length);
    }
    __asm__ volatile("" ::: "memory");
    self->is_busy = 0;
    errno = error;
    return server;
}

/* A connection as both ends know it: by its server, and its client's port if it has one. */
static uint32_t connection(uint32_t server, uint32_t client)
{
    return server ^ (client << 1 | client >> 31);
}

EXPORT int connect(int file, const struct sockaddr *to, socklen_t length)
{
    struct thread *self = current();
    if (UNLIKELY(!self)) {
        return real.connect(file, to, length);
    }
    before(self);
    uint64_t begin = ticks();
    int result = real.connect(file, to, length);
    /* Only now it is known that there is an address at `to`. */
    uint32_t server = !result || errno == EINPROGRESS ? server_of(to, length) : 0;
    if (server) {
        note_at(self, begin, ADD, server, 0);
    }
    has_waited(self, begin, (uint32_t)file, result, OTHER);
    if (server) {
        note(self, CONNECTED, 0, file_of(self, file), connection(server, asked(self, SYS_getsockname, file)));
    }
    return result;
}

static void accepted(struct thread *self, int file, uint64_t begin, int made)
{
    uint32_t server = made >= 0 ? asked(self, SYS_getsockname, made) : 0;
    if (server) {
        note(self, TAKE, WAITED, server, 0);
        note(self, ACCEPTED, 0, file_of(self, made), connection(server, asked(self, SYS_getpeername, made)));
    } else {
        has_waited(self, begin, (uint32_t)file, made, OTHER);
    }
}

EXPORT int accept(int file, struct sockaddr *from, socklen_t *length)
{
    TOLD(int, real.accept(file, from, length), accepted(self, file, begin, result));
}

EXPORT int accept4(int file, struct sockaddr *from, socklen_t *length, int flags)
{
    TOLD(int, real.accept4(file, from, length, flags), accepted(self, file, begin, result));
}
