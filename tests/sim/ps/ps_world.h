/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PS_PS_WORLD_H_
#define TESTS_SIM_PS_PS_WORLD_H_

#include "runtime/base/vec.h"
#include "runtime/dist/ps/coordinator_internal.h"
#include "runtime/dist/ps/generation.h"
#include "runtime/dist/ps/server_internal.h"
#include "runtime/dist/ps/worker_internal.h"
#include "tests/counted.h"

/* Jobs of parameter servers in one thread: servers, workers, chiefs, links,
 * clocks and a disk, all made from a seed.
 *
 * First faults are on; then all is healed and the job must end. Values are
 * numbers: in sync mode a server's value is a hash of the ordered sums, which a
 * loop knows too; elsewhere it counts how often each run was applied. */

enum {
  PS_SERVERS = 3,
  PS_WORKERS = 6,
  PS_CHIEFS = 2,
  PS_PROCESSES = PS_SERVERS + PS_WORKERS + PS_CHIEFS,
  PS_FIRST_WORKER = PS_SERVERS,
  PS_FIRST_CHIEF = PS_SERVERS + PS_WORKERS,
  PS_RUNS = 1024,
  PS_GENERATIONS = 400,
  PS_EPOCHS = 4096
};

typedef enum ps_fault {
  PS_KILL_SERVER,
  PS_KILL_WORKER,
  PS_KILL_CHIEF,
  PS_DIES_AT_FAILPOINT,
  PS_PAUSE,
  PS_RESET,   /* a link breaks, both ends hear of it soon */
  PS_ONE_WAY, /* one direction is silent before */
  PS_SECOND_CHIEF,
  PS_DRAIN,
  PS_DISK_FULL,
  PS_DISK_SLOW,
  PS_WRITE_LOST, /* a process dies before its write is on disk */
  PS_WRITE_KEPT, /* a process dies after it, before it hears of it */
  PS_WRITE_TORN, /* a part of the write is there */
  PS_CLOCK_STEP, /* a chief's clock, forward or back */
  PS_CLOCK_DRIFT,
  PS_JOINS_LATE,
  PS_STOPS, /* the user ends the job */
  PS_NAN,
  PS_NO_MEMORY,
  PS_FAULT_COUNT
} ps_fault;

/* Events of the machines in a run; one that never comes fails the test. */
typedef enum ps_sight {
  PS_SAW_ROLLBACK,
  PS_SAW_GENERATION,
  PS_SAW_SECOND_EPOCH, /* a chief was fenced by another one */
  PS_SAW_RESEND,
  PS_SAW_DUPLICATE,
  PS_SAW_STALE,
  PS_SAW_PARKED,
  PS_SAW_PARTIAL,
  PS_SAW_RETURNED,
  PS_SAW_EVICTED,
  PS_SAW_SPARE,
  PS_SAW_SKIPPED,
  PS_SAW_LATE,
  PS_SAW_REJOIN,
  PS_SAW_UNSAVED,    /* a job that ended without its last generation */
  PS_SAW_PAUSED_OUT, /* a worker was dealt with while it was paused */
  PS_SAW_COUNT
} ps_sight;

typedef struct ps_result {
  bool ok;
  char why[500];
  uint64_t trace, events, pushes, end_ms;
  uint64_t faults[PS_FAULT_COUNT], sights[PS_SAW_COUNT];
  uint64_t reached[WEIR_PS_FP_COUNT], died[WEIR_PS_FP_COUNT];
  weir_ps_mode mode;
} ps_result;

/* Runs |seed| with the bug |plant|, or WEIR_PS_FP_COUNT: none. */
void ps_world_run(uint64_t seed, weir_ps_failpoint plant, bool verbose,
                  ps_result *result);
const char *ps_fault_name(ps_fault fault);
const char *ps_sight_name(ps_sight sight);

/* ---- Inside */

typedef struct ps_world ps_world;

/* The values of a push or a pull. */
typedef struct ps_data {
  uint64_t value;
  ps_world *w;
} ps_data;

typedef enum ps_event_kind {
  PS_MESSAGE,
  PS_UP,
  PS_LOST,
  PS_APPLIED,
  PS_ADDED,
  PS_NORMED,
  PS_FINISHED,
  PS_SAVED,
  PS_RESTORED,
  PS_KEPT,
  PS_SEALED,
  PS_COMPUTED,
  PS_DECIDE,
  PS_TICK,
  PS_LIFE
} ps_event_kind;

typedef struct ps_event {
  int64_t at_ns;
  uint64_t order;
  ps_event_kind kind;
  uint32_t to, from;
  uint64_t birth; /* of the process that it is for; 0: any */
  uint64_t link;  /* its number, for messages */
  uint64_t number, ticket;
  bool ok;
  weir_ps_message *message; /* owned */
  weir_ps_op op;
  weir_ps_ledger *ledger; /* owned */
  uint64_t value;         /* of a pull, or of a share of the norm */
} ps_event;

typedef struct ps_shard {
  uint64_t value, sum, share, norm_step;
  uint32_t added;
  uint64_t shares[PS_SERVERS], share_steps[PS_SERVERS];
  uint64_t spare;
  uint8_t applied[PS_RUNS];
} ps_shard;

typedef struct ps_process {
  bool alive, paused, doomed, gone; /* gone: it does not come back by itself */
  uint64_t birth;
  int64_t back_ns, since_ns, next_tick_ns;
  int64_t clock_ns; /* chief: what its clock is ahead of the world's */
  int32_t drift_ppm;
  weir_ps_task task;
  weir_ps_server *server;
  weir_ps_worker *worker;
  weir_ps_coordinator *chief;
  ps_shard shard;          /* server */
  weir_ps_message spare;   /* server: the push that is applied */
  uint64_t grads[PS_RUNS]; /* worker */
  bool have[PS_RUNS];
  uint64_t pulled[PS_SERVERS], pulled_version[PS_SERVERS];
  uint32_t slow;
  bool ended;
} ps_process;

/* A link; both ends see it in their own time. */
typedef struct ps_link {
  uint64_t number; /* 0: down */
  bool up[2], broken, silent[2];
  int64_t last_ns[2]; /* of the last message of each direction */
  int64_t again_ns;
} ps_link;

typedef struct ps_saved {
  bool here;
  uint64_t birth, life; /* of the process that wrote it, and its life */
  ps_shard shard;
  uint64_t version;
  weir_ps_mark marks[PS_WORKERS];
} ps_saved;

typedef struct ps_generation {
  ps_saved saved[PS_SERVERS];
  uint64_t sealed_as[PS_SERVERS]; /* a hash of each part when it was sealed */
  weir_ps_ledger *ledger;
} ps_generation;

struct ps_world {
  weir_counted_allocator counted;
  const weir_allocator *alloc;
  uint64_t random;
  int64_t now_ns, heal_ns;
  bool restless, verbose, healed, over, failed, stopped, unsaved;
  bool kept_free; /* a full disk takes epochs all the same */
  weir_ps_failpoint plant;
  weir_ps_config config;
  uint64_t total, stop_at, save_every;
  int64_t rejoin_ns, evict_ns, final_ns;
  uint32_t kill_ppm[3], pause_ppm, break_ppm, second_ppm, drain_ppm, full_ppm;
  uint32_t nan_ppm, stop_ppm, memory_ppm, step_ppm, slow_ppm;
  uint32_t armed[3], arm_one_in;
  uint32_t delay_us;
  ps_process processes[PS_PROCESSES];
  ps_link links[PS_PROCESSES][PS_PROCESSES]; /* [low][high] */
  uint64_t link_numbers, births, orders;
  WEIR_VEC(ps_event) heap, held; /* held: for processes that are paused */
  /* The disk. */
  ps_generation *disk[PS_GENERATIONS];
  uint64_t sealed, kept, keeper, acknowledged;
  uint64_t reference[PS_RUNS + 1][PS_SERVERS];
  uint64_t owner[PS_EPOCHS]; /* births of chiefs */
  uint64_t data_live;
  ps_result *result;
};

/* ps_net.c: */
void ps_say(ps_world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void ps_wrong(ps_world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
uint32_t ps_below(ps_world *w, uint32_t limit);
void ps_push(ps_world *w, ps_event event);
bool ps_pop(ps_world *w, ps_event *event);
void ps_event_free(ps_world *w, ps_event *event);
ps_event *ps_later(ps_world *w, uint32_t to, ps_event_kind kind,
                   uint64_t max_us);
ps_link *ps_link_of(ps_world *w, uint32_t a, uint32_t b);
void ps_link_tick(ps_world *w);
void ps_link_break(ps_world *w, uint32_t a, uint32_t b, bool one_way);
void ps_link_dead(ps_world *w, uint32_t process);
/* A server's values go with the message. */
static inline bool ps_has_values(const weir_ps_message *m) {
  return (m->kind == WEIR_PS_PULLED || m->kind == WEIR_PS_PUSHED) && m->newer;
}

void ps_net_send(ps_world *w, uint32_t from, weir_ps_task to,
                 const weir_ps_message *m);
/* Whether the event still counts; sets the link's state. */
bool ps_net_arrives(ps_world *w, const ps_event *event);

/* ps_hosts.c: */
void ps_start(ps_world *w, uint32_t process);
void ps_end(ps_world *w, uint32_t process);
/* Writes of |process| that are under way when it dies. */
void ps_disk_crash(ps_world *w, uint32_t process);
/* The time that a chief reads. */
int64_t ps_clock(const ps_world *w, const ps_process *p);
void ps_host_event(ps_world *w, ps_event *event);
void ps_check_end(ps_world *w);
void ps_dump(ps_world *w);

#endif
