/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DIST_ENGINES_H_
#define TESTS_DIST_ENGINES_H_

#include <pthread.h>

#include "placement/parts/hashes.h"
#include "placement/parts/tasks.h"
#include "runtime/dist/bundle/bundle.h"
#include "runtime/dist/channel/exchange.h"
#include "runtime/dist/run/run.h"
#include "runtime/exec/session/prepare.h"
#include "runtime/graph/goal.h"
#include "tests/exec/support.h"

/* Engines of one process, joined by wires in memory, and a driver that the test
 * writes: one thread handles all frames and events in their order. */

enum { ENGINES = 4, ENGINE_FEEDS = 8, ENGINE_FETCHES = 32 };

/* A frame or an event under way. */
typedef struct office_item {
  struct office_item *next;
  uint32_t from, to; /* ENGINES: the driver */
  uint8_t *bytes;
  size_t size;
  bool bulk;
  weir_engine_event *event;
} office_item;

typedef struct office_end {
  struct office *office;
  uint32_t id;
  weir_wire_out out;
  weir_engine_events events;
  weir_engine *engine;
  bool live;
  /* The events of the last call. */
  bool added, stepped, prepared, told, ended;
  weir_error error;    /* of ADDED, STEP or VARIABLES */
  uint64_t blob_bytes; /* sent to it */
  uint32_t wants;
  weir_plan_hashes hashes;
} office_end;

typedef struct office {
  exec_world world;
  pthread_mutex_t lock;
  pthread_cond_t more;
  office_item *first, *last;
  office_end ends[ENGINES + 1];
  uint32_t count;        /* of engines */
  weir_exchange *remote; /* the driver's */
  /* The graph and how it is placed. */
  weir_graph *graph;
  weir_goal *goal;
  weir_placing *placing;
  weir_pool *pool;
  weir_exec_session *planner, *alone; /* cuts; one process */
  weir_plan *plan;
  weir_cut *cut;
  weir_task_cut *tasks;
  weir_bundle_blobs blobs;
  weir_strbuf bundle, plan_bytes;
  uint8_t bundle_name[WEIR_BLOB_NAME_BYTES], plan_name[WEIR_BLOB_NAME_BYTES];
  weir_exec_feed feeds[ENGINE_FEEDS];
  uint32_t feed_count, fetch_count, target_count;
  weir_value_id fetches[ENGINE_FETCHES];
  const weir_node_id *targets;
  weir_bytes got[ENGINE_FETCHES]; /* of the last step */
  weir_channel_done sent[64];
  uint32_t sends;
  uint64_t step, request;
  enum { BLOBS_GOOD, BLOBS_SPOILT, BLOBS_LOST } bad; /* of the graph's files */
  uint8_t *spoilt;
  char names[ENGINES][32];
  const char *name_list[ENGINES];
  weir_error err;
} office;

/* A graph of graphs/, a file where |name| begins with '/', or |text|; |placer|
 * deals its nodes over ps=1,worker=2.
 */
void office_open(office *o, const char *name, const char *text,
                 const char *placer, bool train);
void office_close(office *o);
/* Registers the program with the engines that have work. */
void office_register(office *o);
/* The same; false when an engine failed, with |o->err|. */
bool office_try_register(office *o);
/* One step of all; false when some part failed, with |o->err|. What was
 * prepared is committed, or aborted unless |commit|. */
bool office_step(office *o, uint64_t random_step, bool commit);
/* The same step in one process; its fetches must be those of the last step. */
void office_compare(office *o, uint64_t random_step);
/* All variables are those of one process. */
void office_compare_variables(office *o);
/* engines_wires.c */
void office_end_init(office *o, uint32_t id);
void office_send(office *o, uint32_t place, const weir_slot *slot,
                 weir_bytes bytes);
/* Waits for a frame or an event and handles it. */
void office_pump(office *o);

/* Values that the engines exchange in a step. */
uint32_t office_crossings(const office *o);

#endif
