/* Targets of a storm's tormentors; see storm.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "storm.h"

enum { PROGRESS_S = 10 };

static pid_t start_target(int self, int target)
{
    pid_t pid = child();
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    seed += (uint64_t)target << 32;
    for (;;) {
        sum_up(draw(3000) + 1);
        atomic_fetch_add(&shared->progress[self][target], 1);
        if (draw(4) == 0 || is_thin)
            rest((int64_t)draw(is_thin ? REST_US_MAX : 500));
    }
}

static void set_class(pid_t pid, int policy)
{
    struct sched_param param = {.sched_priority = policy == SCHED_FIFO ? 3 : 0};
    check(sched_setscheduler(pid, policy, &param) == 0, "sched_setscheduler");
}

/* A CPU that is online, most or all of them. */
static void change_affinity(pid_t pid)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    uint64_t how = draw(3), one = draw((uint64_t)cpus);
    for (int cpu = 0; cpu < cpus; cpu++)
        if (how == 0 || (how == 1 && draw(2)) || cpu == (int)one)
            CPU_SET(cpu, &set);
    /* None of them may be online. */
    check(sched_setaffinity(pid, sizeof set, &set) == 0 || errno == EINVAL, "sched_setaffinity");
    count(AFFINITIES);
}

static void change_class(pid_t pid)
{
    static const int others[] = {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE};
    set_class(pid, SCHED_FIFO);
    rest((int64_t)draw(1000));
    set_class(pid, others[draw(3)]);
    count(CLASSES);
}

static void stop_for_a_while(pid_t pid)
{
    check(kill(pid, SIGSTOP) == 0, "kill");
    rest((int64_t)draw(3000));
    check(kill(pid, SIGCONT) == 0, "kill");
    count(STOPS);
}

static void end_target(pid_t pid)
{
    int status;
    check(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid, "waitpid");
    errno = 0;
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a target has ended by itself");
}

static void do_something(int self, pid_t *targets)
{
    int target = (int)draw(TARGETS);
    switch (draw(10)) {
    case 0:
    case 1:
    case 2:
    case 3:
        change_affinity(targets[target]);
        break;
    case 4:
    case 5:
        check(setpriority(PRIO_PROCESS, (id_t)targets[target], (int)draw(40) - 20) == 0, "setpriority");
        count(NICES);
        break;
    case 6:
        change_class(targets[target]);
        break;
    case 7:
    case 8:
        stop_for_a_while(targets[target]);
        break;
    default:
        end_target(targets[target]);
        targets[target] = start_target(self, target);
        count(KILLS);
    }
}

/* Everybody who may run does so again. */
static void await_progress(int self, const pid_t *targets)
{
    for (int i = 0; i < TARGETS; i++) {
        cpu_set_t all;
        memset(&all, 0xff, sizeof all);
        set_class(targets[i], SCHED_OTHER);
        check(setpriority(PRIO_PROCESS, (id_t)targets[i], 0) == 0, "setpriority");
        check(sched_setaffinity(targets[i], sizeof all, &all) == 0, "sched_setaffinity");
        int64_t before = atomic_load(&shared->progress[self][i]), begin_ns = now_ns();
        while (atomic_load(&shared->progress[self][i]) == before) {
            errno = 0;
            check(now_ns() < begin_ns + PROGRESS_S * NS_PER_S, "a target does not run any more");
            rest(1000);
        }
    }
}

void torment(int self)
{
    pid_t targets[TARGETS];
    for (int i = 0; i < TARGETS; i++)
        targets[i] = start_target(self, i);
    while (goes_on()) {
        do_something(self, targets);
        rest((int64_t)draw(500));
    }
    await_progress(self, targets);
    for (int i = 0; i < TARGETS; i++)
        end_target(targets[i]);
}
