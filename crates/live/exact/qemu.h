/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What is used of QEMU 10: its plugin interface, version 4 (plugins of an unknown version are refused by QEMU), and
 * what the program exports besides. QEMU resolves all names when it loads a plugin, and refuses it if one is missing.
 */
#ifndef AMPSCHED_QEMU_H
#define AMPSCHED_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

/* The plugin interface ------------------------------------------------------------------------------------------- */

enum { PLUGIN_VERSION = 4 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
typedef uint32_t qemu_plugin_meminfo_t;

typedef struct qemu_info_t {
    const char *target_name;
    struct {
        int min;
        int cur;
    } version;
    bool system_emulation;
    union {
        struct {
            int smp_vcpus;
            int max_vcpus;
        } system;
    };
} qemu_info_t;

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, void (*call)(qemu_plugin_id_t id, unsigned int vcpu));
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*call)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*call)(unsigned int vcpu, void *data),
                                          enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                      void (*call)(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address,
                                                   void *data),
                                      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw which, void *data);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*call)(qemu_plugin_id_t id, void *data), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *destination, size_t length);

/* Other functions ------------------------------------------------------------------------------------------------ */

typedef struct CPUState CPUState;

typedef union {
    int host_int;
    unsigned long host_ulong;
    void *host_ptr;
    uint64_t target_ptr;
} run_on_cpu_data;

enum { QEMU_CLOCK_VIRTUAL = 1, QEMU_TIMER_ATTR_ALL = -1 };

extern __thread CPUState *current_cpu __attribute__((tls_model("initial-exec")));

CPUState *qemu_get_cpu(int index);
bool cpu_thread_is_idle(CPUState *cpu);
void cpu_exit(CPUState *cpu);
void async_run_on_cpu(CPUState *cpu, void (*call)(CPUState *cpu, run_on_cpu_data data), run_on_cpu_data data);
bool runstate_is_running(void);
int qemu_shutdown_requested_get(void); /* a cause, or 0 */
int64_t qemu_clock_advance_virtual_time(int64_t to_ns);
void *cpu_physical_memory_map(uint64_t address, uint64_t *length, bool is_write);
int64_t qemu_clock_deadline_ns_all(int clock, int attributes);

/* The accelerator's table of functions, and two of those that stand in it when all CPUs share a thread. */
void **cpus_get_accel(void);
void rr_start_vcpu_thread(CPUState *cpu);
void tcg_handle_interrupt(CPUState *cpu, int mask);

#endif
