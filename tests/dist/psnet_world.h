/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DIST_PSNET_WORLD_H_
#define TESTS_DIST_PSNET_WORLD_H_

#include <pthread.h>

#include "runtime/dist/psnet/psnet.h"
#include "runtime/net/grpc.h"
#include "runtime/net/local.h"
#include "tests/check.h"

/* Tasks of a job of parameter servers in one process, each with its net, over
 * transports in memory or over gRPC on loopback. Hosts note all that they hear;
 * tests wait for what they expect, without a time. */

enum { PS_HOSTS = 8, PS_HEARD = 4096, PS_SIZES = 8, PS_CLOGS = 16 };
enum { PS_REPORT_BYTES = 50000 };

typedef enum ps_what { PS_UP, PS_LOST, PS_MESSAGE, PS_UNRECEIVED } ps_what;

typedef struct ps_heard {
  ps_what what;
  weir_ps_task peer;
  weir_ps_kind kind;
  uint64_t request;
  uint32_t pieces;
  bool intact; /* the values are those that were sent */
  char why[256];
} ps_heard;

typedef struct ps_world ps_world;

typedef struct ps_host {
  ps_world *world;
  weir_ps_task self;
  uint64_t hash;
  weir_env env;
  weir_counted_allocator memory;
  weir_allocator failing;           /* above it */
  atomic_int_least64_t fails_after; /* 1: the next allocation fails */
  weir_ps_net *net;
  bool released;
  /* Under the world's lock: */
  ps_heard heard[PS_HEARD];
  size_t heard_count;
  uint32_t asked, sent;   /* values: on their way, come back */
  size_t sizes[PS_SIZES]; /* places of what comes, but REPORT's one piece */
  uint32_t count;
  bool refuses; /* receive() does */
  char log[4096];
  /* Called for each message, with the lock, if not NULL. */
  void (*check)(void *self, const weir_ps_message *m);
  void *check_self;
} ps_host;

/* A bulk transport that stops before its frame |at|, until it is let go. */
typedef struct ps_clog {
  ps_world *world;
  weir_transport_handler handler;
} ps_clog;

struct ps_world {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  weir_net_hub *hub;
  weir_module_handle module;
  weir_transports transports;
  weir_ps_config config;
  char addresses[PS_HOSTS][WEIR_NET_ADDRESS_BYTES]; /* chief, servers */
  ps_host *hosts[PS_HOSTS];
  uint32_t host_count;
  ps_clog clogs[PS_CLOGS * PS_HOSTS];
  uint32_t clog_count, bulk_frames;
  uint32_t clog_at; /* 0: never */
  bool clogged;
  weir_error err;
};

/* Waits until |expr| holds, which the hosts' lock guards. */
#define ps_await(w, expr)                                         \
  do {                                                            \
    pthread_mutex_lock(&(w)->lock);                               \
    while (!(expr)) pthread_cond_wait(&(w)->changed, &(w)->lock); \
    pthread_mutex_unlock(&(w)->lock);                             \
  } while (0)

/* |grpc|: over sockets. */
void ps_world_open(ps_world *w, uint32_t servers, uint32_t workers, bool grpc);
/* Releases all hosts, and checks that nothing is left. */
void ps_world_close(ps_world *w);
/* A task, of which nothing runs yet; servers and the chief first. */
ps_host *ps_host_create(ps_world *w, weir_ps_role role, uint32_t index);
/* The same with another hash. */
ps_host *ps_host_of(ps_world *w, weir_ps_role role, uint32_t index,
                    uint64_t hash);
void ps_host_start(ps_host *h);
/* Its net ends; what it heard stays. */
void ps_host_release(ps_host *h);
/* Starts all, and waits until all links are up. */
void ps_world_start(ps_world *w);

/* A world with servers, a chief, who dials them, and workers, all up. */
void ps_world_job(ps_world *w, uint32_t servers, uint32_t workers, bool grpc);

/* Has |fn| called on the control thread; waits for it. */
void ps_host_call(ps_host *h, void (*fn)(ps_host *h, void *arg), void *arg);
/* Sends |m| with |count| values of these sizes; SIZE_MAX: without. */
void ps_host_send(ps_host *h, weir_ps_task to, const weir_ps_message *m,
                  const size_t *sizes, size_t count);
void ps_host_describe(ps_host *h, weir_ps_task peer, char text[256]);
/* What |h| makes room for. */
void ps_host_wants(ps_host *h, const size_t *sizes, uint32_t count);

/* With the lock: how many of that kind |h| has heard of; the last. */
uint32_t ps_heard_count(const ps_host *h, ps_what what, weir_ps_task peer);
const ps_heard *ps_heard_last(const ps_host *h, ps_what what,
                              weir_ps_task peer);

#endif
