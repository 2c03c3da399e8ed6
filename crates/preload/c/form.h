/* What a recorded program leaves in the working folder. The reader is crates/recording/src/raw.
 *
 * `control`: one for all processes; `events`: chunks, each of one thread. Both are mapped and shared, so whatever a
 * thread has stored is in the file, however the program ends. The recording process makes room: it adds chunks ahead,
 * and a thread takes the next one. Numbers have the computer's byte order. */
#ifndef AMPSCHED_FORM_H
#define AMPSCHED_FORM_H

#include <stdint.h>

#define FORM_MAGIC "AMPRAW2\n"
#define CONTROL_BYTES 4096 /* of `control`, before the processes */
#define CHUNK_BYTES 65536u
#define PROCESSES_MAX 65535

/* Kinds of crates/recording/src/model.rs; above: only in raw files. */
enum kind {
    START = 1,
    EXIT,
    CREATE,
    JOIN,
    LOCK,
    TRY_FAIL,
    UNLOCK,
    COND_WAIT,
    COND_WAKE,
    SIGNAL,
    BROADCAST,
    BARRIER,
    SEM_WAIT,
    SEM_POST,
    READ_LOCK,
    WRITE_LOCK,
    RW_UNLOCK,
    SPIN_LOCK,
    SPIN_UNLOCK,
    OMP_FORK,
    OMP_JOIN,
    OMP_BEGIN,
    OMP_END,
    OMP_BARRIER,
    OMP_CRITICAL,
    OMP_CRITICAL_END,
    FUTEX_WAIT_EVENT,
    FUTEX_WAKE_EVENT,
    SLEEP,
    YIELD,
    BARRIER_INIT,
    IO,
    OMP_CHUNK = 35,
    READ,  /* object: a stream's end as this process has it; aux: bytes */
    WRITE, /* the same; when it began. 0 bytes: it has waited for room, and ends here */
    CREATE_PROCESS = 64, /* object: the process's id as the kernel has it */
    JOIN_PROCESS,        /* the same */
    ANCHOR,              /* what follows begins here, with a reading; the time before it is the program's */
    OWN_TIME,            /* the same, but the time before it is the recorder's */
    PAIR,                /* two ends of one stream are made. object, aux: each */
    CONNECTED,           /* object: an end of a stream; aux: what names the connection at both ends */
    ACCEPTED,            /* the same */
    ADD,                 /* object: what counts, or queues, what others wait for: a counter, or a server's address */
    TAKE,                /* it has waited there */
    KILL,                /* object: the process that gets a signal, as the kernel has it; aux: the signal */
};

enum flag {
    CONTENDED = 1, /* a try has failed, so the thread had to block */
    READING = 2,   /* a second slot follows */
    WAITED = 4,    /* time without a core since the previous event passed inside the call */
};

/* An event: 16 bytes; `head` is stored last, 0 is the end. */
struct slot {
    uint64_t head; /* kind | flags << 8 | ticks since the previous event << 16 */
    uint32_t object;
    uint32_t aux;
};

/* What follows an event that has a reading. */
struct reading {
    uint64_t cpu_ns; /* CPU time of the thread so far */
    uint64_t core;
};

/* How CPU time is measured: by the kernel at every event, or by it only where a thread may have lost its core. */
enum clock { KERNEL_CLOCK, TICKS };

/* The same moment of two clocks. */
struct pair {
    uint64_t ticks;
    uint64_t ns;
};

/* The first bytes of a chunk. Those of a thread follow one another by `sequence`, and slots fill the rest. */
struct chunk {
    uint32_t process, thread, sequence, unused[13];
};

/* What stands in a thread's first chunk after that. */
struct head {
    char magic[8];
    uint32_t process, thread, pid, parent_pid;
    uint32_t creator;      /* 1 + the thread of this process that created it */
    uint32_t is_continued; /* the first thread of a process that has executed another program */
    uint64_t identity;     /* pthread_t */
    uint64_t lost_events;
    uint64_t fast_cost, slow_cost; /* ticks of the recorder per event without and with a reading */
    uint64_t own_ns;               /* CPU time of the recorder's other work */
    struct pair begin, last, rate; /* rate: a stretch of time by both clocks */
    uint64_t instructions;
    uint32_t has_instructions, is_ended;
    uint32_t clock; /* enum clock */
    uint32_t startup_us; /* CPU time of a first thread until its program was loaded, all programs before included */
    char name[16];
    struct pair stopped; /* if it still ran at the end of its process: when, and its CPU time by then */
    uint32_t is_sandboxed; /* from some moment on, CPU time was not read but told by ticks */
    uint32_t before_us;    /* CPU time of the recorder before the recording began, in the very first program */
    uint32_t tid;        /* as the kernel has it; 0 if it was not asked */
    uint32_t unused;
};

#define FIRST_SLOTS 1024 /* where slots begin in a thread's first chunk: between, the recorder keeps its own things */

/* A process, by the number that it has in the recording. */
struct process {
    uint32_t pid;
    uint32_t threads;
    uint32_t is_ended;
    uint32_t is_sandboxed;
};

/* The file `control`. */
struct control {
    char magic[8];
    uint32_t processes;
    uint32_t refused;          /* threads for which there was no room */
    uint32_t taken, available; /* chunks */
    uint32_t chunks_max;
    uint32_t is_alone; /* there is no recording process beside the program, so the library makes room itself */
    struct pair rate;  /* rate.ticks is 0 until the first process has measured what follows */
    uint64_t fast_cost, slow_cost;
    char rest[CONTROL_BYTES - 64];
    struct process process[PROCESSES_MAX];
};

#endif
