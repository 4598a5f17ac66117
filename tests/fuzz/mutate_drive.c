/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/mutate_drive.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/weir.h"
#include "tests/fuzz/mutate_text.h"

/* The promises that are looked at here hold for any graph: a refusal has an id
 * and a message, none is an internal error (W9...), memory stays below a limit,
 * and nothing is left when all is released. Sanitizers and the caller's clock
 * look at the rest. */

const char *const drive_names[DRIVE_WAYS] = {"check", "run", "place", "train"};

enum { INPUTS = 16, FETCHES = 16, MOST_ELEMENTS = 1 << 20 };

/* The limit that weir is given, and what it may not pass. */
static const uint64_t kLimitBytes = (uint64_t)1 << 30;
static const uint64_t kMostBytes = (uint64_t)1 << 30;
static const uint64_t kRunBytes = (uint64_t)1 << 28;
/* As `--timeout 4s`: a case may take 10 s of the processor's time, and has two
 * threads. */
static const int64_t kTimeoutNs = (int64_t)4 * 1000000000;

/* ---- Memory, counted */

typedef struct meter {
  atomic_uint_least64_t live, peak, blocks;
  atomic_bool refused;
} meter;

typedef struct meter_head {
  void *block;
  uint64_t bytes;
} meter_head;

static void *meter_alloc(void *self, size_t bytes, size_t align) {
  meter *m = self;
  size_t pad = align > sizeof(meter_head) ? align : sizeof(meter_head);
  uint64_t live = atomic_fetch_add(&m->live, bytes) + bytes;
  char *block = NULL;
  if (live > kMostBytes)
    atomic_store(&m->refused, true);
  else if (posix_memalign((void **)&block, pad, bytes + pad) != 0)
    block = NULL;
  if (block == NULL) {
    atomic_fetch_sub(&m->live, bytes);
    return NULL;
  }
  uint64_t peak = atomic_load(&m->peak);
  while (live > peak && !atomic_compare_exchange_weak(&m->peak, &peak, live)) {
  }
  atomic_fetch_add(&m->blocks, 1);
  meter_head head = {block, bytes};
  memcpy(block + pad - sizeof head, &head, sizeof head);
  return block + pad;
}

static void meter_free(void *self, void *ptr) {
  meter *m = self;
  meter_head head;
  if (ptr == NULL) return;
  memcpy(&head, (char *)ptr - sizeof head, sizeof head);
  atomic_fetch_sub(&m->live, head.bytes);
  atomic_fetch_sub(&m->blocks, 1);
  free(head.block);
}

/* ---- One graph */

typedef struct work {
  weir_runtime *runtime;
  weir_graph *graph;
  const char *folder;
  mutate_random random;
  drive_result *result;
} work;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

__attribute__((format(printf, 2, 3))) static void find(drive_result *r,
                                                       const char *fmt, ...) {
  va_list args;
  if (r->finding[0] != '\0') return;
  va_start(args, fmt);
  vsnprintf(r->finding, sizeof r->finding, fmt, args);
  va_end(args);
}

/* A refusal has a reason, and the reason is not a mistake of ours. */
static void look_at(drive_result *r, drive_way way, weir_status s,
                    const weir_error *err) {
  r->done[way] = s == WEIR_OK;
  if (s == WEIR_OK) return;
  if (err->id[0] != 'W' || err->message[0] == '\0')
    find(r, "%s: status %d without a reason", drive_names[way], (int)s);
  else if (err->id[1] == '9')
    find(r, "%s: %s %.150s", drive_names[way], err->id, err->message);
}

static void on_diag(void *self, const weir_diag *diag) {
  const weir_error *err = weir_diag_error(diag);
  if (err->id[0] != 'W' || err->id[1] == '9' || err->message[0] == '\0')
    find(self, "check: %s %.150s", err->id, err->message);
}

static weir_status load(work *w, const char *text, size_t size,
                        weir_error *err) {
  weir_load_opts opts = {.struct_size = sizeof opts,
                         .max_nodes = 100000,
                         .on_diag = on_diag,
                         .on_diag_self = w->result};
  return weir_graph_load_buffer(w->runtime, text, size, "mutant.weir.yaml",
                                &opts, &w->graph, err);
}

/* Small numbers; bytes for what is no number. */
static void fill(work *w, weir_dtype dtype, void *data, int64_t n,
                 size_t bytes) {
  for (int64_t i = 0; i < n; i++) {
    uint64_t x = mutate_next(&w->random);
    if (dtype == WEIR_F32)
      ((float *)data)[i] = (float)(x % 1000) / 250.0f - 2.0f;
    else if (dtype == WEIR_F64)
      ((double *)data)[i] = (double)(x % 1000) / 250.0 - 2.0;
    else if (dtype == WEIR_I64)
      ((int64_t *)data)[i] = (int64_t)(x % 4);
    else if (dtype == WEIR_I32)
      ((int32_t *)data)[i] = (int32_t)(x % 4);
    else
      memset((char *)data + (size_t)i * (bytes / (size_t)n), (int)(x % 2),
             bytes / (size_t)n);
  }
}

/* A tensor for input |i|; NULL where its shape is not known or large. Open
 * dimensions are 2. */
static weir_tensor *feed_of(work *w, size_t i, char *name, size_t room) {
  weir_io_desc d = {.struct_size = sizeof d};
  weir_tensor *t = NULL;
  int64_t n = 1;
  if (weir_graph_io(w->graph, WEIR_INPUT, i, &d, NULL) != WEIR_OK ||
      d.rank < 0 || d.name_size >= room)
    return NULL;
  for (int32_t k = 0; k < d.rank; k++) {
    if (d.dims[k] < 0) d.dims[k] = 2;
    if (d.dims[k] > MOST_ELEMENTS) return NULL;
    n *= d.dims[k];
    if (n > MOST_ELEMENTS) return NULL;
  }
  memcpy(name, d.name, d.name_size);
  name[d.name_size] = '\0';
  if (weir_tensor_create(w->runtime, d.dtype, d.rank, d.dims, &t, NULL) !=
      WEIR_OK)
    return NULL;
  weir_tensor_info info = {.struct_size = sizeof info};
  if (weir_tensor_desc(t, &info) == WEIR_OK && n > 0)
    fill(w, d.dtype, weir_tensor_mutable_data(t), n, info.bytes);
  return t;
}

static weir_status run_session(work *w, weir_session *session,
                               weir_error *err) {
  static char names[INPUTS + FETCHES][256];
  weir_feed feeds[INPUTS];
  weir_fetch fetches[FETCHES];
  size_t fed = 0, fetched = 0;
  for (size_t i = 0; i < weir_graph_io_count(w->graph, WEIR_INPUT); i++) {
    if (fed == INPUTS) break;
    weir_tensor *t = feed_of(w, i, names[fed], sizeof names[fed]);
    if (t == NULL) continue;
    feeds[fed] = (weir_feed)WEIR_FEED(names[fed], t);
    fed++;
  }
  for (size_t i = 0; i < weir_graph_io_count(w->graph, WEIR_OUTPUT); i++) {
    weir_io_desc d = {.struct_size = sizeof d};
    char *name = names[INPUTS + fetched];
    if (weir_graph_io(w->graph, WEIR_OUTPUT, i, &d, NULL) != WEIR_OK ||
        d.name_size >= sizeof names[0])
      continue;
    memcpy(name, d.name, d.name_size);
    name[d.name_size] = '\0';
    fetches[fetched] = (weir_fetch)WEIR_FETCH(name);
    if (++fetched == FETCHES) break;
  }
  weir_run_request request = WEIR_RUN_REQUEST(feeds, fed, fetches, fetched);
  weir_status s = weir_session_run(session, &request, NULL, err);
  for (size_t i = 0; i < fed; i++) weir_tensor_release(feeds[i].tensor);
  for (size_t i = 0; i < fetched; i++) weir_tensor_release(fetches[i].tensor);
  return s;
}

static weir_status run(work *w, weir_error *err) {
  weir_session_opts opts = {.struct_size = sizeof opts,
                            .memory_limit = kRunBytes,
                            .ref_kernels = mutate_below(&w->random, 4) == 0};
  weir_session *session = NULL;
  weir_status s =
      weir_session_create(w->runtime, w->graph, &opts, &session, err);
  if (s == WEIR_OK) s = run_session(w, session, err);
  weir_session_release(session);
  return s;
}

static weir_status place(work *w, weir_error *err) {
  weir_plan_opts opts = {.struct_size = sizeof opts,
                         .cluster = "ps=1,worker=2",
                         .open = mutate_below(&w->random, 2) == 0,
                         .inference = mutate_below(&w->random, 2) == 0,
                         .moves = 200};
  weir_plan *plan = NULL;
  weir_status s = weir_plan_create(w->runtime, w->graph, &opts, &plan, err);
  if (s == WEIR_OK) {
    (void)weir_plan_count(plan, WEIR_PLAN_PARTS);
    (void)weir_plan_count(plan, WEIR_PLAN_EDGES);
  }
  weir_plan_release(plan);
  return s;
}

static weir_status train(work *w, weir_error *err) {
  weir_session_opts session = {.struct_size = sizeof session,
                               .memory_limit = kRunBytes};
  weir_train_opts opts = {.struct_size = sizeof opts,
                          .steps = 2,
                          .data_root = w->folder,
                          .checkpoint = w->folder,
                          .events = w->folder,
                          .session = &session};
  weir_trainer *trainer = NULL;
  weir_train_end end = WEIR_TRAIN_END_GOING;
  weir_status s =
      weir_trainer_create(w->runtime, w->graph, &opts, &trainer, err);
  if (s == WEIR_OK) s = weir_trainer_run(trainer, &end, err);
  weir_trainer_release(trainer);
  return s;
}

static void go(work *w, drive_way way,
               weir_status (*step)(work *, weir_error *)) {
  weir_error err = WEIR_ERROR_INIT;
  int64_t start_ns = now_ns();
  look_at(w->result, way, step(w, &err), &err);
  w->result->ns[way] = now_ns() - start_ns;
}

void drive(const char *text, size_t size, uint64_t seed, const char *folder,
           drive_result *out) {
  meter m = {0};
  weir_error err = WEIR_ERROR_INIT;
  weir_allocator_hook hook = {sizeof hook, &m, meter_alloc, meter_free};
  weir_runtime_opts opts = {.struct_size = sizeof opts,
                            .threads = 2,
                            .allocator = &hook,
                            .memory_limit = kLimitBytes,
                            .timeout_ns = kTimeoutNs};
  *out = (drive_result){0};
  work w = {.folder = folder, .random = {seed}, .result = out};
  if (weir_runtime_create(&opts, &w.runtime, &err) != WEIR_OK) {
    find(out, "no runtime: %s", err.message);
    return;
  }
  int64_t start_ns = now_ns();
  look_at(out, DRIVE_CHECK, load(&w, text, size, &err), &err);
  out->ns[DRIVE_CHECK] = now_ns() - start_ns;
  if (w.graph != NULL) {
    go(&w, DRIVE_RUN, run);
    go(&w, DRIVE_PLACE, place);
    go(&w, DRIVE_TRAIN, train);
  }
  weir_graph_release(w.graph);
  weir_runtime_release(w.runtime);
  out->peak_bytes = atomic_load(&m.peak);
  if (atomic_load(&m.blocks) != 0)
    find(out, "%llu blocks are left",
         (unsigned long long)atomic_load(&m.blocks));
  if (atomic_load(&m.refused))
    find(out, "more than %llu bytes were wanted",
         (unsigned long long)kMostBytes);
}
