/* Groups of processes that send each other messages through pipes: each of --senders writes to each of --receivers of
 * its group, in turn, as fast as it can. --groups of them, of messages of --bytes, for --ms of time after --warm-ms; a
 * line of JSON says how many messages arrived. The exit code is 0 if all that was sent has arrived. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

#define GROUPS_MAX 64
#define PEERS_MAX 16
#define BYTES_MAX 4096
#define LINE_BYTES 64

struct count {
    _Alignas(LINE_BYTES) _Atomic int64_t messages;
};

/* Seen by all processes. */
static struct shared {
    atomic_bool is_over;
    struct count sent[GROUPS_MAX * PEERS_MAX], received[GROUPS_MAX * PEERS_MAX];
} *shared;

static int senders, receivers, bytes;
static int pipes[PEERS_MAX][2];

static void send_all(struct count *sent)
{
    char message[BYTES_MAX] = {0};
    while (!atomic_load(&shared->is_over))
        for (int to = 0; to < receivers; to++) {
            if (write(pipes[to][1], message, (size_t)bytes) != bytes)
                fail("write");
            atomic_fetch_add(&sent->messages, 1);
        }
}

static void receive_all(int end, struct count *received)
{
    char message[BYTES_MAX];
    ssize_t got;
    while ((got = read(end, message, (size_t)bytes)) == bytes)
        atomic_fetch_add(&received->messages, 1);
    if (got != 0)
        fail("read");
}

/* Waits until nobody can write into the gate any more, so that all begin together. */
static void pass(const int *gate)
{
    char unused;
    close(gate[1]);
    if (read(gate[0], &unused, 1) != 0)
        fail("read");
}

static void begin_group(int group, const int *gate)
{
    for (int i = 0; i < receivers; i++)
        if (pipe(pipes[i]) != 0)
            fail("pipe");
    for (int i = 0; i < senders + receivers; i++) {
        pid_t pid = fork();
        if (pid < 0)
            fail("fork");
        if (pid > 0)
            continue;
        pass(gate);
        if (i < senders) {
            send_all(&shared->sent[group * senders + i]);
        } else {
            for (int to = 0; to < receivers; to++)
                close(pipes[to][1]);
            receive_all(pipes[i - senders][0], &shared->received[group * receivers + i - senders]);
        }
        _exit(0);
    }
    for (int i = 0; i < receivers; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
}

static int64_t total(const struct count *counts, int count)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += atomic_load(&counts[i].messages);
    return sum;
}

static bool have_ended(void)
{
    bool well = true;
    int status;
    while (waitpid(-1, &status, 0) > 0)
        well &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return well;
}

static int small_number(int argc, char **argv, const char *name, int64_t fallback, int64_t most)
{
    int64_t value = number_argument(argc, argv, name, fallback);
    if (value > most) {
        errno = EINVAL;
        fail(name);
    }
    return (int)value;
}

int main(int argc, char **argv)
{
    int groups = small_number(argc, argv, "--groups", 2, GROUPS_MAX);
    senders = small_number(argc, argv, "--senders", 4, PEERS_MAX);
    receivers = small_number(argc, argv, "--receivers", 4, PEERS_MAX);
    bytes = small_number(argc, argv, "--bytes", 100, BYTES_MAX);
    int64_t ms = number_argument(argc, argv, "--ms", 20), warm_ms = number_argument(argc, argv, "--warm-ms", 5);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail("mmap");
    int gate[2];
    if (pipe(gate) != 0)
        fail("pipe");
    for (int group = 0; group < groups; group++)
        begin_group(group, gate);
    close(gate[0]);
    close(gate[1]);
    int64_t open_ns = now_ns();
    sleep_until(open_ns + warm_ms * 1000000);
    int64_t begin_ns = now_ns(), before = total(shared->received, groups * receivers);
    sleep_until(begin_ns + ms * 1000000);
    int64_t after = total(shared->received, groups * receivers), took_ns = now_ns() - begin_ns;
    atomic_store(&shared->is_over, true);
    bool well = have_ended();
    int64_t lost = total(shared->sent, groups * senders) - total(shared->received, groups * receivers);
    printf("{\"groups\": %d, \"messages\": %lld, \"lost\": %lld, \"ns\": %lld}\n", groups, (long long)(after - before),
           (long long)lost, (long long)took_ns);
    return well && lost == 0 ? 0 : 1;
}
