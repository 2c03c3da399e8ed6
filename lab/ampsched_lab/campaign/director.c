/* Runs mixes of programs, one after the other, and says what became of each: `director PLAN`. See plan.py for the
 * plan. It is a real-time thread that sleeps, so that it neither takes part in what is measured nor is late.
 *
 * For each run a line of JSON: when each program began and how long it took until the kernel told of its end, its CPU
 * time and switches with all its processes (wait4(2)), and the moves of its threads between CPUs and their time on each
 * class of them (the kernel's trace, unless the plan has the run go untraced).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define US_PER_S 1000000LL
#define PROGRAMS_MAX 32
#define ARGUMENTS_MAX 64
#define CPUS_MAX 64
#define CLASSES_MAX 8
#define PIDS_MAX 65536
#define REPORT_MAX 65536
#define BEAT_NS 100000000LL /* runs begin at whole multiples of it since power-on */
#define INSTANCE "/sys/kernel/tracing/instances/director/"
#define FREQUENCIES INSTANCE "events/power/cpu_frequency/enable"
#define TRACE_KIB "1024"
#define WORK_FOLDER "/run/director" /* below a program's root */
#define PATH_SIZE 512

struct program {
    const char *name;
    const char *root; /* folder that is the program's root */
    bool reports;
    int64_t start_ns; /* planned, since the run's begin */
    char *words[ARGUMENTS_MAX + 1];

    pid_t pid;
    int output;
    bool ended;
    int status;
    int64_t began_ns, ended_ns; /* since power-on */
    struct rusage used;
    int64_t moves, far_moves;
    int64_t switches; /* of CPUs to a thread of it from another one of ours, whatever was in between */
    int64_t on_class_us[CLASSES_MAX]; /* CPU time of its threads by class of the CPUs */
};

struct run {
    const char *key;
    int64_t limit_ns;
    struct program programs[PROGRAMS_MAX];
    int count;
    bool is_traced; /* moves and switches are counted */
    bool timed_out;
};

static int64_t settle_ns;
static int class_of[CPUS_MAX]; /* classes of the CPUs, to tell moves between them */
static int classes;
static const char *traces; /* folder that gets the trace of each run, none if NULL */
static long last_on[CPUS_MAX]; /* the last thread of ours that ran on a CPU */
static int64_t switched_us[CPUS_MAX]; /* when a CPU last went on to another thread */
static uint8_t owner_of[PIDS_MAX]; /* 1 + the program to which a thread belongs; 0: none */

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "director: %s (%s)\n", what, strerror(errno));
    exit(1);
}

static void check(bool right, const char *what)
{
    if (!right)
        fail(what);
}

static int64_t now_ns(void)
{
    struct timespec t;
    check(clock_gettime(CLOCK_MONOTONIC, &t) == 0, "clock_gettime");
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
}

static void write_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    check(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text), path);
    close(file);
}

static void become_real_time(void)
{
    struct sched_param param = {.sched_priority = 1};
    /* What it starts is ordinary again. */
    check(sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) == 0, "sched_setscheduler");
    check(mlockall(MCL_CURRENT | MCL_FUTURE) == 0, "mlockall");
}

static void begin_trace(void)
{
    static bool has_begun;
    if (has_begun)
        return;
    has_begun = true;
    check(mkdir("/sys/kernel/tracing/instances/director", 0700) == 0, INSTANCE);
    write_file(INSTANCE "buffer_size_kb", TRACE_KIB);
    write_file(INSTANCE "events/sched/sched_process_fork/enable", "1");
    write_file(INSTANCE "events/sched/sched_migrate_task/enable", "1");
    write_file(INSTANCE "events/sched/sched_switch/enable", "1");
    if (traces) {
        write_file(INSTANCE "events/sched/sched_wakeup/enable", "1");
        write_file(INSTANCE "events/sched/sched_wakeup_new/enable", "1");
        if (access(FREQUENCIES, W_OK) == 0)
            write_file(FREQUENCIES, "1");
        write_file(INSTANCE "trace_clock", "mono"); /* that of the programs' starts */
        check(mkdir(traces, 0755) == 0, traces);
    }
    write_file(INSTANCE "tracing_on", "0");
}

/* Where all runs begin: on the first CPU, from where the kernel does not move a real-time thread without need. */
static void go_to_first_cpu(void)
{
    cpu_set_t all, first;
    check(sched_getaffinity(0, sizeof all, &all) == 0, "sched_getaffinity");
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    check(sched_setaffinity(0, sizeof first, &first) == 0, "sched_setaffinity");
    check(sched_setaffinity(0, sizeof all, &all) == 0, "sched_setaffinity");
}

static const char *below_root(const struct program *program, const char *folder)
{
    static char path[PATH_SIZE];
    int length = snprintf(path, sizeof path, "%s" WORK_FOLDER "%s%s", program->root, *folder ? "/" : "", folder);
    check(length > 0 && length < PATH_SIZE, program->root);
    return path;
}

static _Noreturn void become(struct program *program, const sigset_t *signals)
{
    check(setpgid(0, 0) == 0 && chdir(below_root(program, program->name)) == 0, program->name);
    check(*program->root == 0 || chroot(program->root) == 0, program->root);
    check(dup2(program->output, STDOUT_FILENO) >= 0, "dup2");
    check(sigprocmask(SIG_SETMASK, signals, NULL) == 0, "sigprocmask");
    execv(program->words[0], program->words);
    fail(program->words[0]);
}

static void start(struct program *program, const sigset_t *signals)
{
    program->began_ns = now_ns();
    program->pid = fork();
    check(program->pid >= 0, "fork");
    if (program->pid == 0)
        become(program, signals);
}

/* Notes who has ended; returns how many. */
static int reap(struct run *run)
{
    int count = 0;
    struct rusage used;
    int status;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
        int64_t ended_ns = now_ns();
        for (int i = 0; i < run->count; i++)
            if (run->programs[i].pid == pid) {
                struct program *program = &run->programs[i];
                program->ended = true;
                program->status = status;
                program->used = used;
                program->ended_ns = ended_ns;
                count++;
            }
    }
    return count;
}

static void stop_all(struct run *run)
{
    for (int i = 0; i < run->count; i++)
        if (run->programs[i].pid > 0)
            kill(-run->programs[i].pid, SIGKILL);
}

static int next_to_start(const struct run *run)
{
    int next = -1;
    for (int i = 0; i < run->count; i++)
        if (!run->programs[i].pid && (next < 0 || run->programs[i].start_ns < run->programs[next].start_ns))
            next = i;
    return next;
}

/* Starts each program at its time and waits until all have ended, or the limit is over. */
static void execute(struct run *run, int64_t begin_ns, const sigset_t *before, const sigset_t *child)
{
    int running = run->count;
    while (running > 0) {
        int next = next_to_start(run);
        int64_t until_ns = begin_ns + (next >= 0 ? run->programs[next].start_ns : run->limit_ns);
        int64_t left_ns = until_ns - now_ns();
        if (left_ns <= 0 && next >= 0) {
            start(&run->programs[next], before);
            continue;
        }
        if (left_ns <= 0 && !run->timed_out) {
            run->timed_out = true;
            stop_all(run);
        }
        struct timespec wait = to_timespec(left_ns > 0 ? left_ns : NS_PER_S);
        sigtimedwait(child, NULL, &wait);
        running -= reap(run);
    }
    stop_all(run); /* what programs have left behind */
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static void empty_folder(const char *path)
{
    if (access(path, F_OK) == 0)
        check(nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0, path);
    check(mkdir(path, 0755) == 0, path);
}

static void prepare(struct run *run)
{
    for (int i = 0; i < run->count; i++)
        empty_folder(below_root(&run->programs[i], ""));
    for (int i = 0; i < run->count; i++) {
        struct program *program = &run->programs[i];
        empty_folder(below_root(program, program->name));
        program->output =
            program->reports ? memfd_create(program->name, MFD_CLOEXEC) : open("/dev/null", O_WRONLY | O_CLOEXEC);
        check(program->output >= 0, program->name);
    }
}

static void number_behind(const char *line, const char *name, long *value)
{
    const char *found = strstr(line, name);
    if (found)
        *value = strtol(found + strlen(name), NULL, 10);
}

/* A CPU goes on to another thread; that one of ours ran there last counts, not what the kernel did in between. */
static void note_switch(struct run *run, const char *line, long previous, long next)
{
    const char *place = strstr(line, " [");
    long cpu = 0, s = 0, us = 0;
    check(place && sscanf(place, " [%ld] %*s %ld.%ld:", &cpu, &s, &us) == 3 && cpu < CPUS_MAX, line);
    int64_t at_us = s * US_PER_S + us;
    uint8_t owner = owner_of[previous % PIDS_MAX];
    if (owner)
        run->programs[owner - 1].on_class_us[class_of[cpu]] += at_us - switched_us[cpu];
    switched_us[cpu] = at_us;
    owner = owner_of[next % PIDS_MAX];
    if (!owner || last_on[cpu] == next)
        return;
    run->programs[owner - 1].switches++;
    last_on[cpu] = next;
}

static void keep_trace(const struct run *run)
{
    char path[PATH_SIZE], block[4096];
    int length = snprintf(path, sizeof path, "%s/%s.txt", traces, run->key);
    check(length > 0 && length < PATH_SIZE, run->key);
    int from = open(INSTANCE "trace", O_RDONLY | O_CLOEXEC);
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    check(from >= 0 && to >= 0, path);
    ssize_t count;
    while ((count = read(from, block, sizeof block)) > 0)
        check(write(to, block, count) == count, path);
    check(count == 0, path);
    close(from);
    close(to);
}

/* Counts moves, switches and time of a run's threads by what the kernel noted: who started whom, who went where, who
 * ran. */
static void count_moves(struct run *run)
{
    memset(owner_of, 0, sizeof owner_of);
    memset(last_on, 0, sizeof last_on);
    memset(switched_us, 0, sizeof switched_us);
    for (int i = 0; i < run->count; i++)
        owner_of[run->programs[i].pid % PIDS_MAX] = (uint8_t)(i + 1);
    FILE *trace = fopen(INSTANCE "trace", "re");
    check(trace != NULL, INSTANCE "trace");
    char line[512];
    while (fgets(line, sizeof line, trace)) {
        long pid = -1, child = -1, from = -1, to = -1, previous = -1, next = -1;
        if (strncmp(line, "CPU:", 4) == 0 && strstr(line, "[LOST"))
            errno = ENOBUFS, fail("the trace has lost moves");
        number_behind(line, " pid=", &pid);
        number_behind(line, " child_pid=", &child);
        number_behind(line, " orig_cpu=", &from);
        number_behind(line, " dest_cpu=", &to);
        number_behind(line, " prev_pid=", &previous);
        number_behind(line, " next_pid=", &next);
        if (previous >= 0 && next >= 0)
            note_switch(run, line, previous, next);
        if (pid < 0)
            continue;
        uint8_t owner = owner_of[pid % PIDS_MAX];
        if (child >= 0 && owner)
            owner_of[child % PIDS_MAX] = owner;
        if (to >= 0 && owner) {
            run->programs[owner - 1].moves++;
            run->programs[owner - 1].far_moves += class_of[from % CPUS_MAX] != class_of[to % CPUS_MAX];
        }
    }
    fclose(trace);
}

static int64_t to_ns(struct timeval time)
{
    return time.tv_sec * NS_PER_S + time.tv_usec * 1000LL;
}

static void print_report(struct program *program)
{
    static char text[REPORT_MAX];
    ssize_t length = pread(program->output, text, sizeof text - 1, 0);
    check(length >= 0, "pread");
    text[length] = 0;
    text[strcspn(text, "\n")] = 0;
    printf(", \"report\": %s", text[0] == '{' ? text : "null");
}

static void print_run(struct run *run, int64_t begin_ns)
{
    int64_t end_ns = begin_ns;
    printf("{\"key\": \"%s\", \"timed_out\": %s, \"programs\": [", run->key, run->timed_out ? "true" : "false");
    for (int i = 0; i < run->count; i++) {
        struct program *program = &run->programs[i];
        int code = WIFEXITED(program->status) ? WEXITSTATUS(program->status) : 128 + WTERMSIG(program->status);
        printf("%s{\"name\": \"%s\", \"code\": %d, \"start_ns\": %lld, \"turnaround_ns\": %lld, \"cpu_ns\": %lld, "
               "\"voluntary\": %ld, \"involuntary\": %ld",
               i ? ", " : "", program->name, code, (long long)(program->began_ns - begin_ns),
               (long long)(program->ended_ns - program->began_ns),
               (long long)(to_ns(program->used.ru_utime) + to_ns(program->used.ru_stime)), program->used.ru_nvcsw,
               program->used.ru_nivcsw);
        if (run->is_traced) {
            printf(", \"moves\": %lld, \"far_moves\": %lld, \"switches\": %lld", (long long)program->moves,
                   (long long)program->far_moves, (long long)program->switches);
            for (int class = 0; class < classes; class ++)
                printf("%s%lld", class ? ", " : ", \"on_class_us\": [", (long long)program->on_class_us[class]);
            printf("]");
        }
        if (program->reports)
            print_report(program);
        printf("}");
        close(program->output);
        if (program->ended_ns > end_ns)
            end_ns = program->ended_ns;
    }
    printf("], \"begin_ns\": %lld, \"makespan_ns\": %lld}\n", (long long)begin_ns, (long long)(end_ns - begin_ns));
    fflush(stdout);
}

static void carry_out(struct run *run)
{
    sigset_t child, before;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    check(sigprocmask(SIG_BLOCK, &child, &before) == 0, "sigprocmask");
    if (run->is_traced)
        begin_trace();
    prepare(run);
    go_to_first_cpu();
    int64_t begin_ns = (now_ns() + settle_ns + BEAT_NS - 1) / BEAT_NS * BEAT_NS;
    if (run->is_traced) {
        write_file(INSTANCE "trace", "");
        write_file(INSTANCE "tracing_on", "1");
    }
    struct timespec begin = to_timespec(begin_ns);
    check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &begin, NULL) == 0, "clock_nanosleep");
    execute(run, begin_ns, &before, &child);
    if (run->is_traced) {
        write_file(INSTANCE "tracing_on", "0");
        if (traces)
            keep_trace(run);
        count_moves(run);
    }
    print_run(run, begin_ns);
}

static char *field(char **rest)
{
    char *found = strsep(rest, "\t");
    check(found != NULL, "a field is missing in the plan");
    return found;
}

static void add_program(struct run *run, char *rest)
{
    check(run->count < PROGRAMS_MAX, "too many programs");
    struct program *program = &run->programs[run->count++];
    memset(program, 0, sizeof *program);
    program->start_ns = strtoll(field(&rest), NULL, 10) * 1000;
    program->name = field(&rest);
    program->root = field(&rest);
    program->reports = strcmp(field(&rest), "report") == 0;
    int words = 0;
    while (rest && words < ARGUMENTS_MAX)
        program->words[words++] = field(&rest);
    check(words > 0 && !rest, program->name);
}

static void read_classes(char *rest)
{
    for (int cpu = 0; rest && cpu < CPUS_MAX; cpu++) {
        int class = atoi(field(&rest));
        check(class >= 0 && class < CLASSES_MAX, "a class");
        class_of[cpu] = class;
        if (class >= classes)
            classes = class + 1;
    }
}

int main(int argc, char **argv)
{
    check(argc == 2, "usage: director PLAN");
    FILE *plan = fopen(argv[1], "re");
    check(plan != NULL, argv[1]);
    become_real_time();
    check(setenv("TMPDIR", ".", 1) == 0, "setenv");
    static struct run run;
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    /* Names and words point into the lines, which are therefore kept. */
    while ((length = getline(&line, &size, plan)) > 0) {
        char *rest = line;
        rest[strcspn(rest, "\n")] = 0;
        const char *what = field(&rest);
        if (strcmp(what, "settle_us") == 0) {
            settle_ns = strtoll(field(&rest), NULL, 10) * 1000;
        } else if (strcmp(what, "classes") == 0) {
            read_classes(rest);
        } else if (strcmp(what, "traces") == 0) {
            traces = field(&rest);
        } else if (strcmp(what, "run") == 0) {
            memset(&run, 0, sizeof run);
            run.limit_ns = strtoll(field(&rest), NULL, 10) * 1000;
            run.key = field(&rest);
            run.is_traced = rest == NULL;
        } else if (strcmp(what, "start") == 0) {
            add_program(&run, rest);
        } else if (strcmp(what, "go") == 0) {
            carry_out(&run);
        } else {
            errno = EINVAL;
            fail(what);
        }
        line = NULL, size = 0;
    }
    return 0;
}
