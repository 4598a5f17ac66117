/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DIST_KV_WORLD_H_
#define TESTS_DIST_KV_WORLD_H_

#include "runtime/base/mix.h"
#include "runtime/dist/kv/client.h"
#include "runtime/dist/kv/keeper.h"
#include "tests/check.h"

/* Servers and members of keys in one thread, over links that a seed cuts: what
 * is under way is lost, each end hears of it at another time, work takes a
 * while. Keys are numbers: a push adds its |count| to the one of its name's
 * first letter. */

enum { KV_SERVERS = 2, KV_MEMBERS = 8, KV_KEYS = 26, KV_QUEUE = 512 };

typedef struct kv_world kv_world;

/* One direction of a link. */
typedef struct kv_way {
  weir_kv_message *frames[KV_QUEUE];
  uint32_t first, count;
} kv_way;

typedef struct kv_link {
  bool up_here, up_there; /* of the member, of the server */
  bool cut;               /* both have yet to hear */
  bool closed;            /* it does not come back */
  kv_way out, in;         /* of the member */
} kv_link;

typedef struct kv_end {
  kv_world *world;
  uint32_t index;
} kv_end;

struct kv_world {
  weir_counted_allocator memory;
  uint64_t random;
  int64_t now_ns;
  uint32_t servers, members;
  kv_end server_ends[KV_SERVERS], member_ends[KV_MEMBERS];
  weir_kv_keeper *keepers[KV_SERVERS];
  weir_kv_client *clients[KV_MEMBERS];
  kv_link links[KV_MEMBERS][KV_SERVERS];
  weir_kv_job *jobs[KV_SERVERS][KV_QUEUE]; /* at work */
  uint32_t job_count[KV_SERVERS];
  /* What was done. */
  uint64_t sums[KV_SERVERS][KV_KEYS], versions[KV_SERVERS][KV_KEYS];
  uint64_t order[KV_SERVERS][KV_KEYS][KV_MEMBERS]; /* the last push's number */
  uint64_t applied, cuts, repeats, given_up;
  bool repeat_frames; /* the way to servers doubles some changes */
  bool refuse_odd;    /* pushes of an odd number are refused */
};

/* An op of a test. */
typedef struct kv_op {
  weir_kv_op op;
  bool done;
  uint32_t member;
} kv_op;

void kv_open(kv_world *w, uint32_t servers, uint32_t members, uint64_t seed);
void kv_close(kv_world *w);
/* Another process takes the place of a member or a server. */
void kv_restart_member(kv_world *w, uint32_t member);
void kv_restart_server(kv_world *w, uint32_t server);
/* The member's process ends, and does not come back. */
void kv_kill_member(kv_world *w, uint32_t member);
void kv_cut(kv_world *w, uint32_t member, uint32_t server);
/* One event, chosen by the seed. False: nothing is left to do. */
bool kv_turn(kv_world *w);
/* Until nothing is left. */
void kv_settle(kv_world *w);
void kv_pass_time(kv_world *w, int64_t ns);
void kv_push(kv_world *w, uint32_t member, uint32_t server, char key,
             int32_t priority, uint64_t value, kv_op *op);
void kv_pull(kv_world *w, uint32_t member, uint32_t server, char key,
             kv_op *op);
void kv_enter(kv_world *w, uint32_t member, const char *name, uint32_t group,
              kv_op *op);

#endif
