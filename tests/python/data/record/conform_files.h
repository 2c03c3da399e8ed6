/* Calls of files: pipes, sockets, counters, and the C library's buffered input and output. */
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

/* Buffered output and input through a pipe; `how` names what differs. */
static int through(int how) {
    char text[8], *longer = NULL;
    size_t room = 0;
    FILE *to = fdopen(dup(ends[1]), "w"), *from = fdopen(dup(ends[0]), "r");
    if (!to || !from) {
        return -3;
    }
    int result = how == 0 ? fprintf(to, "%d\n", 5) : how == 1 ? fputs("a\n", to) : how == 2 ? putc('b', to) : how == 3;
    result += how == 3 ? (int)fwrite("abc\n", 2, 2, to) : fputc('\n', to);
    result += fflush(how == 4 ? NULL : to);
    result += how == 0 ? getc(from) : how == 1 ? (int)fread(text, 1, 3, from) : how == 2 ? !fgets(text, 8, from) : 0;
    result += how == 3 ? (int)getline(&longer, &room, from) : how == 4 ? fgetc(from) : 0;
    free(longer);
    return result + fclose(to) + fclose(from);
}
static int counted(void) {
    eventfd_t value = 0;
    int counter = eventfd(2, 0), other = dup2(counter, 60);
    int failed = eventfd_write(other, 3) || eventfd_read(counter, &value);
    return failed || close(other) || close(counter) || close(counter) != -1 ? -3 : (int)value;
}
static int timed_by_file(void) {
    struct itimerspec once = {.it_value = {0, 1}};
    uint64_t times = 0;
    int timer = timerfd_create(CLOCK_MONOTONIC, 0), other = dup2(timer, 60);
    int failed = timerfd_settime(timer, 0, &once, NULL) || read(other, &times, sizeof times) != sizeof times;
    return failed || close(other) || close(timer) ? -3 : (int)times;
}
static int pair(void) {
    int both[2];
    char text[4] = "";
    int failed = socketpair(AF_UNIX, SOCK_STREAM, 0, both);
    failed |= send(both[0], "xyz", 3, 0) != 3 || recv(both[1], text, 2, MSG_PEEK) != 2;
    failed |= read(both[1], text, 3) != 3 || close(both[0]) || read(both[1], text, 1);
    failed |= close_range(both[1], both[1], 0);
    return failed ? -3 : text[2];
}
static int connected(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    int failed = bind(server, (struct sockaddr *)&address, bytes) || listen(server, 1);
    failed |= getsockname(server, (struct sockaddr *)&address, &bytes);
    failed |= connect(client, (struct sockaddr *)&address, bytes);
    int accepted = accept(server, NULL, NULL);
    failed |= write(client, "a", 1) != 1 || read(accepted, &letter, 1) != 1;
    return failed || close(client) || close(accepted) || close(server) ? -3 : letter;
}

/* Nothing of a file is touched if no byte is wanted. */
static int nothing_of_no_file(void) {
    return (int)(fread(&letter, 0, 4, NULL) + fwrite(&letter, 1, 0, NULL));
}

#define FILE_CALLS(X) \
    X(nothing_of_no_file()) \
    X(through(0)) \
    X(through(1)) \
    X(through(2)) \
    X(through(3)) \
    X(through(4)) \
    X(counted()) \
    X(timed_by_file()) \
    X(timerfd_create(99, 0)) \
    X(signalfd(-1, NULL, 99)) \
    X(kill(getpid(), 0)) \
    X(kill(getpid(), 999)) \
    X(sigqueue(getpid(), 999, (union sigval){0})) \
    X(pair()) \
    X(connected()) \
    X(connect(ends[0], NULL, 16)) \
    X(connect(-1, (struct sockaddr *)8, 16)) \
    X(accept(ends[0], NULL, NULL)) \
    X(accept4(-1, (struct sockaddr *)8, NULL, 99)) \
    X(socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)8)) \
    X((int)splice(ends[0], NULL, ends[1], NULL, 0, 0)) \
    X((int)sendfile(ends[1], ends[0], NULL, 1)) \
    X(eventfd_write(ends[0], 1)) \
    X(dup2(ends[1], ends[0])) \
    X(dup2(ends[0], ends[0])) \
    X(dup3(ends[0], ends[0], 0)) \
    X(dup2(-1, 99)) \
    X(close(-1)) \
    X(close(ends[1])) \
    X(close_range(9, 8, 0)) \
    X(fflush(NULL))
