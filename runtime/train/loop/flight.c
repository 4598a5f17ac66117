/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/flight.h"

#include <pthread.h>
#include <string.h>

#include "runtime/train/loop/flight_ring.h"

/* Several runs at once: the caller's thread reads batches into cells and gives
 * results; lanes, threads with a stepper each, run them. The ring says which
 * batch is next for what (flight_ring.h).
 *
 * A cell belongs to the caller's thread, and to a lane from the start of its
 * batch to the end of it. All else is under the lock. */

enum { CELLS_A_LANE = 4 };

/* A batch and its results. */
typedef struct cell {
  weir_batch batch;
  weir_tensor **columns, **outputs; /* made when first needed; of any shape */
  size_t bytes;
  weir_status status;
  weir_error err;
} cell;

typedef struct flight flight;

typedef struct lane {
  flight *all;
  weir_stepper *stepper; /* the first one's is the caller's */
  pthread_t thread;
  bool started;
} lane;

struct flight {
  const weir_allocator *alloc;
  const weir_flight_options *options;
  lane *lanes;
  cell *cells;
  bool *ended;
  uint32_t lane_count, cell_count;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  weir_flight_ring ring;
  size_t bytes; /* of cells that are held */
  bool stop;
};

/* ---- One after the other */

static weir_status run_alone(const weir_env *env, const weir_flight_options *o,
                             weir_error *err) {
  const weir_tensor **outputs =
      weir_alloc_array(env->alloc, (size_t)o->outputs + 1, sizeof *outputs);
  weir_status s = outputs == NULL ? weir_fail_memory(err, o->outputs) : WEIR_OK;
  bool more = true;
  while (s == WEIR_OK) {
    weir_batch batch;
    s = o->take(o->self, &batch, &more, err);
    if (s != WEIR_OK || !more) break;
    s = weir_stepper_run(o->stepper, &batch, o->run, err);
    if (s != WEIR_OK) break;
    for (uint32_t i = 0; i < o->outputs; i++)
      outputs[i] = weir_stepper_output(o->stepper, i);
    weir_flight_result result = {&batch, outputs};
    s = o->give(o->self, &result, err);
  }
  weir_free(env->alloc, outputs);
  return s;
}

/* ---- Cells */

/* |*to| becomes a copy of |from|. */
static weir_status copy_tensor(const weir_allocator *alloc,
                               const weir_tensor *from, weir_tensor **to,
                               weir_error *err) {
  if (*to == NULL || (*to)->dtype != from->dtype ||
      !weir_shape_equal(&(*to)->shape, &from->shape)) {
    weir_tensor_unref(*to);
    *to = NULL;
    WEIR_TRY(
        weir_tensor_create_shaped(alloc, from->dtype, &from->shape, to, err));
  }
  if (from->bytes > 0) memcpy((*to)->data, from->data, from->bytes);
  return WEIR_OK;
}

/* The caller's thread. */
static weir_status fill(flight *f, cell *c, const weir_batch *batch,
                        weir_error *err) {
  c->bytes = 0;
  for (uint32_t i = 0; i < f->options->columns; i++) {
    WEIR_TRY(copy_tensor(f->alloc, batch->columns[i], &c->columns[i], err));
    c->bytes += c->columns[i]->bytes;
  }
  c->batch = *batch;
  c->batch.columns = c->columns;
  c->status = WEIR_OK;
  c->err = (weir_error)WEIR_ERROR_INIT;
  return WEIR_OK;
}

/* Returns the bytes of its results. */
static size_t run_cell(flight *f, const lane *l, cell *c) {
  const weir_flight_options *o = f->options;
  size_t bytes = 0;
  c->status = weir_stepper_run(l->stepper, &c->batch, o->run, &c->err);
  for (uint32_t i = 0; c->status == WEIR_OK && i < o->outputs; i++) {
    c->status = copy_tensor(f->alloc, weir_stepper_output(l->stepper, i),
                            &c->outputs[i], &c->err);
    if (c->status == WEIR_OK) bytes += c->outputs[i]->bytes;
  }
  return bytes;
}

/* ---- Lanes */

static void *run_lane(void *self) {
  const lane *l = self;
  flight *f = l->all;
  pthread_mutex_lock(&f->lock);
  while (!f->stop) {
    if (!weir_flight_may_start(&f->ring)) {
      pthread_cond_wait(&f->changed, &f->lock);
      continue;
    }
    uint64_t n = weir_flight_start(&f->ring);
    cell *c = &f->cells[n % f->cell_count];
    pthread_mutex_unlock(&f->lock);
    size_t bytes = run_cell(f, l, c);
    pthread_mutex_lock(&f->lock);
    c->bytes += bytes;
    f->bytes += bytes;
    weir_flight_ended(&f->ring, n, c->status != WEIR_OK);
    pthread_cond_broadcast(&f->changed);
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

/* The first batch's program is made before the lanes would all make it. A
 * thread that the system refuses is done without, but for the first. */
static weir_status start_lanes(flight *f, const weir_batch *first,
                               weir_error *err) {
  WEIR_TRY(weir_stepper_prepare(f->options->stepper, first, err));
  for (uint32_t i = 0; i < f->lane_count; i++) {
    lane *l = &f->lanes[i];
    l->all = f;
    if (i == 0)
      l->stepper = f->options->stepper;
    else
      WEIR_TRY(weir_stepper_like(f->options->stepper, &l->stepper, err));
    l->started = pthread_create(&l->thread, NULL, run_lane, l) == 0;
    if (!l->started && i == 0)
      return weir_fail(err, WEIR_W6003, NULL, "the system refused a thread");
    if (!l->started) break;
  }
  return WEIR_OK;
}

static void stop_lanes(flight *f) {
  pthread_mutex_lock(&f->lock);
  f->stop = true;
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->lock);
  for (uint32_t i = 0; i < f->lane_count; i++) {
    if (f->lanes[i].started) pthread_join(f->lanes[i].thread, NULL);
    if (i > 0) weir_stepper_release(f->lanes[i].stepper);
  }
}

/* ---- The caller's thread */

/* Under the lock. */
static bool has_room(const flight *f) {
  uint64_t held = weir_flight_held(&f->ring);
  return weir_flight_may_read(&f->ring) &&
         (held <= f->lane_count || f->bytes < WEIR_FLIGHT_BYTES);
}

/* Reads a batch into its cell, which is free. Without the lock. */
static weir_status read_one(flight *f, bool *more, weir_error *err) {
  const weir_flight_options *o = f->options;
  weir_batch batch;
  cell *c = &f->cells[f->ring.read % f->cell_count]; /* ours alone changes it */
  WEIR_TRY(o->take(o->self, &batch, more, err));
  if (!*more) return WEIR_OK;
  if (!f->lanes[0].started) WEIR_TRY(start_lanes(f, &batch, err));
  WEIR_TRY(fill(f, c, &batch, err));
  pthread_mutex_lock(&f->lock);
  (void)weir_flight_read(&f->ring);
  f->bytes += c->bytes;
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->lock);
  return WEIR_OK;
}

/* Gives the oldest batch, which has ended. Without the lock. */
static weir_status give_one(flight *f, weir_error *err) {
  const weir_flight_options *o = f->options;
  cell *c = &f->cells[f->ring.given % f->cell_count]; /* likewise */
  if (c->status != WEIR_OK) {
    weir_error_copy(err, &c->err);
    return c->status;
  }
  weir_flight_result result = {&c->batch,
                               (const weir_tensor *const *)c->outputs};
  WEIR_TRY(o->give(o->self, &result, err));
  pthread_mutex_lock(&f->lock);
  (void)weir_flight_give(&f->ring);
  f->bytes -= c->bytes;
  pthread_mutex_unlock(&f->lock);
  return WEIR_OK;
}

typedef enum next { READ, GIVE, OVER } next;

/* Waits for something to do. Lanes that would soon have nothing to run come
 * first, then results that are there. */
static next wait_for_next(flight *f, bool more) {
  next n = OVER;
  pthread_mutex_lock(&f->lock);
  for (;;) {
    bool gives = weir_flight_may_give(&f->ring), reads = more && has_room(f);
    bool hungry = f->ring.read - f->ring.started < f->lane_count / 2;
    if (reads && (hungry || !gives))
      n = READ;
    else if (gives)
      n = GIVE;
    if (n != OVER || weir_flight_held(&f->ring) == 0) break;
    pthread_cond_wait(&f->changed, &f->lock);
  }
  pthread_mutex_unlock(&f->lock);
  return n;
}

/* A failure to read is told once all that was read is given. */
static weir_status run_all(flight *f, weir_error *err) {
  weir_status reading = WEIR_OK;
  weir_error why = WEIR_ERROR_INIT;
  bool more = true;
  for (;;) {
    next n = wait_for_next(f, more && reading == WEIR_OK);
    if (n == OVER) break;
    if (n == READ)
      reading = read_one(f, &more, &why);
    else
      WEIR_TRY(give_one(f, err));
  }
  if (reading != WEIR_OK) weir_error_copy(err, &why);
  return reading;
}

/* ---- The whole */

static weir_status make_cells(flight *f, weir_error *err) {
  uint32_t columns = f->options->columns, outputs = f->options->outputs;
  f->lanes = weir_alloc_array(f->alloc, f->lane_count, sizeof *f->lanes);
  f->cells = weir_alloc_array(f->alloc, f->cell_count, sizeof *f->cells);
  f->ended = weir_alloc_array(f->alloc, f->cell_count, sizeof *f->ended);
  if (f->lanes == NULL || f->cells == NULL || f->ended == NULL)
    return weir_fail_memory(err, f->cell_count * sizeof *f->cells);
  for (uint32_t i = 0; i < f->cell_count; i++) {
    cell *c = &f->cells[i];
    c->columns =
        weir_alloc_array(f->alloc, (size_t)columns + 1, sizeof(weir_tensor *));
    c->outputs =
        weir_alloc_array(f->alloc, (size_t)outputs + 1, sizeof(weir_tensor *));
    if (c->columns == NULL || c->outputs == NULL)
      return weir_fail_memory(err, columns + outputs);
  }
  weir_flight_ring_init(&f->ring, f->ended, f->cell_count);
  return WEIR_OK;
}

static void free_cells(flight *f) {
  for (uint32_t k = 0; f->cells != NULL && k < f->cell_count; k++) {
    cell *c = &f->cells[k];
    for (uint32_t i = 0; c->columns != NULL && i < f->options->columns; i++)
      weir_tensor_unref(c->columns[i]);
    for (uint32_t i = 0; c->outputs != NULL && i < f->options->outputs; i++)
      weir_tensor_unref(c->outputs[i]);
    weir_free(f->alloc, c->columns);
    weir_free(f->alloc, c->outputs);
  }
  weir_free(f->alloc, f->ended);
  weir_free(f->alloc, f->cells);
  weir_free(f->alloc, f->lanes);
}

weir_status weir_flight_run(const weir_env *env, const weir_flight_options *o,
                            weir_error *err) {
  uint32_t width = weir_exec_session_width(o->session);
  if (width < 2) return run_alone(env, o, err);
  flight f = {.alloc = env->alloc,
              .options = o,
              .lane_count = width,
              .cell_count = width * CELLS_A_LANE};
  pthread_mutex_init(&f.lock, NULL);
  pthread_cond_init(&f.changed, NULL);
  weir_status s = make_cells(&f, err);
  if (s == WEIR_OK) {
    s = run_all(&f, err);
    stop_lanes(&f);
  }
  free_cells(&f);
  pthread_cond_destroy(&f.changed);
  pthread_mutex_destroy(&f.lock);
  return s;
}
