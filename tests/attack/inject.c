// Makes system calls of a command fail: inject CALL NUMBER ERROR once|lasting first|each TOLD COMMAND...
//
// The NUMBER-th call of that name fails with a number of errno, and if it lasts, so do all later ones: those of the
// command's first thread, or of each thread of it and of all that it starts. The kernel asks a process of ours before
// such calls and before no others (seccomp_unotify(2)), which costs what is tried next to nothing; a tracer stops at
// all calls of a thread. The file TOLD gets a line with the first argument of each call that fails.

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define HERE AUDIT_ARCH_AARCH64
#endif
// Since Linux 5.19.
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

// The calls of injection.py that this architecture has.
static const struct {
    const char *name;
    int number;
} calls[] = {
#include "calls.h"
};

struct plan {
    long number;
    int error;
    int lasts;
    int first_only;
    const char *told;
};

// Where command and supervisor meet: no call can do it, since any of them may be the one that is waiting.
struct meeting {
    int listener;
    int taken;
};

struct count {
    pid_t thread;
    long calls;
};

static void die(const char *what)
{
    fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
    exit(125);
}

static int number_of(const char *name)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    }
    errno = ENOSYS;
    die(name);
    return -1;
}

// Calls of a thread so far, with this one.
static long counted(pid_t thread)
{
    static struct count *counts;
    static size_t known;
    size_t i = 0;

    while (i < known && counts[i].thread != thread)
        i++;
    if (i == known) {
        counts = realloc(counts, (known + 1) * sizeof(*counts));
        if (counts == NULL)
            die("memory");
        counts[known++] = (struct count){.thread = thread};
    }
    return ++counts[i].calls;
}

static int fails(const struct plan *plan, pid_t first, pid_t thread)
{
    if (plan->first_only && thread != first)
        return 0;
    long number = counted(thread);
    return number == plan->number || (plan->lasts && number > plan->number);
}

static void answer(int listener, const struct plan *plan, pid_t first, int told)
{
    // Later kernels may have longer ones.
    static union {
        struct seccomp_notif request;
        char room[1024];
    } question;
    static union {
        struct seccomp_notif_resp response;
        char room[1024];
    } reply;

    memset(&question, 0, sizeof(question));
    memset(&reply, 0, sizeof(reply));
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) != 0)
        return;
    reply.response.id = question.request.id;
    if (fails(plan, first, (pid_t)question.request.pid)) {
        reply.response.error = -plan->error;
        dprintf(told, "(INJECTED) %llu\n", (unsigned long long)question.request.data.args[0]);
    } else {
        reply.response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    // Who has asked may be gone.
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

// Takes the listener of the command, which waits for that.
static int taken_from(pid_t first, struct meeting *meeting)
{
    int there;

    while ((there = __atomic_load_n(&meeting->listener, __ATOMIC_ACQUIRE)) < 0) {
        if (kill(first, 0) != 0)
            _exit(0);
        usleep(50);
    }
    int process = (int)syscall(SYS_pidfd_open, first, 0);
    int listener = (int)syscall(SYS_pidfd_getfd, process, there, 0);
    close(process);
    __atomic_store_n(&meeting->taken, listener < 0 ? -errno : 1, __ATOMIC_RELEASE);
    return listener;
}

static void supervise(const struct plan *plan, pid_t first, struct meeting *meeting)
{
    int told = open(plan->told, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    // Whoever reads the command's output waits for its end, not for this one's.
    setsid();
    for (int stream = 0; stream <= 2; stream++)
        dup2(nothing, stream);
    int listener = taken_from(first, meeting);
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    while (listener >= 0 && poll(&wait, 1, -1) >= 0 && !(wait.revents & POLLHUP)) {
        if (wait.revents & POLLIN)
            answer(listener, plan, first, told);
    }
    _exit(0);
}

// A process that is nobody's child, so that what is tried has none that it does not know.
static void begin_supervisor(const struct plan *plan, struct meeting *meeting)
{
    pid_t first = getpid();
    pid_t between = fork();

    if (between < 0)
        die("fork");
    if (between == 0) {
        if (fork() == 0)
            supervise(plan, first, meeting);
        _exit(0);
    }
    waitpid(between, NULL, 0);
}

static int listener_for(int call)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HERE, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(steps) / sizeof(steps[0]), .filter = steps};
    unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

int main(int argc, char **argv)
{
    if (argc < 8) {
        fprintf(stderr, "usage: inject CALL NUMBER ERROR once|lasting first|each TOLD COMMAND...\n");
        return 125;
    }
    struct plan plan = {
        .number = strtol(argv[2], NULL, 10),
        .error = (int)strtol(argv[3], NULL, 10),
        .lasts = strcmp(argv[4], "lasting") == 0,
        .first_only = strcmp(argv[5], "first") == 0,
        .told = argv[6],
    };
    int call = number_of(argv[1]);
    struct meeting *meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (meeting == MAP_FAILED)
        die("memory");
    *meeting = (struct meeting){.listener = -1};
    begin_supervisor(&plan, meeting);

    int listener = listener_for(call);
    if (listener < 0)
        die("seccomp (it needs root)");
    __atomic_store_n(&meeting->listener, listener, __ATOMIC_RELEASE);
    int taken;
    while ((taken = __atomic_load_n(&meeting->taken, __ATOMIC_ACQUIRE)) == 0)
        sched_yield();
    if (taken < 0) {
        errno = -taken;
        die("pidfd_getfd");
    }
    execvp(argv[7], argv + 7);
    die(argv[7]);
}
