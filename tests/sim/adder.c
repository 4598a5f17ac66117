/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/adder.h"

#include <stdlib.h>

#include "runtime/net/wire.h"

/* Steps are kept in a list from their start until they are decided, or have
 * been told and are over. */

enum { PROGRAMS = 16 };

typedef struct adder_step {
  weir_engine_event event;
  struct adder *engine;
  struct adder_step *next;
  uint64_t number, read;
  bool told, over;
  weir_engine_value fetch;
} adder_step;

typedef struct adder {
  weir_engine base;
  adder_calls calls;
  adder_store *store;
  bool writes[PROGRAMS]; /* by number */
  adder_step *steps;
} adder;

static void free_event(weir_engine_event *event) {
  free(event);
}

static weir_engine_event *new_event(weir_engine_event_kind kind) {
  weir_engine_event *e = calloc(1, sizeof *e);
  if (e == NULL) abort();
  e->kind = kind;
  e->release = free_event;
  e->error = (weir_error)WEIR_ERROR_INIT;
  return e;
}

static void drop(adder_step *step) {
  adder_step **at = &step->engine->steps;
  while (*at != step) at = &(*at)->next;
  *at = step->next;
  free(step);
}

static void release(weir_engine *engine) {
  adder *e = (adder *)engine;
  while (e->steps != NULL) drop(e->steps);
  free(e);
}

static weir_status begin(weir_engine *engine, const weir_engine_session *s,
                         weir_error *err) {
  (void)s, (void)err;
  ((adder *)engine)->store->users++;
  return WEIR_OK;
}

static void end(weir_engine *engine) {
  adder *e = (adder *)engine;
  if (--e->store->users == 0) e->store->made = false;
  e->calls.later(e->calls.self, new_event(WEIR_ENGINE_ENDED));
}

static weir_status control(weir_engine *engine, uint32_t peer,
                           const Weir__V1__Control *m, weir_error *err) {
  (void)engine, (void)peer, (void)m;
  return weir_fail(err, WEIR_W7011, NULL, "a value, and there are none");
}

static void lost(weir_engine *engine, uint32_t peer, const weir_error *why) {
  (void)engine, (void)peer, (void)why;
}

static weir_status add(weir_engine *engine, const Weir__V1__Register *r,
                       weir_error *err) {
  adder *e = (adder *)engine;
  weir_engine_event *event = new_event(WEIR_ENGINE_ADDED);
  (void)err;
  if ((r->flags & WEIR_WIRE_REGISTER_FRESH) != 0) {
    e->store->number = 0;
    e->store->made = true;
    e->store->first_values++;
  }
  if (!e->store->made)
    weir_fail(&event->error, WEIR_W7087, NULL, "there is no number");
  e->writes[r->program % PROGRAMS] = r->graph_hash == ADDER_ADDS;
  event->program = r->program;
  event->writes = r->graph_hash == ADDER_ADDS;
  event->graph_hash = r->graph_hash;
  e->calls.later(e->calls.self, event);
  return WEIR_OK;
}

static void forget(weir_engine *engine, uint32_t program) {
  (void)engine, (void)program;
}

static void step_read(weir_engine_event *event) {
  adder_step *step = (adder_step *)event;
  step->told = true;
  if (step->over || !event->prepared) drop(step);
}

static weir_status start(weir_engine *engine, const weir_engine_step *s,
                         weir_error *err) {
  adder *e = (adder *)engine;
  adder_step *step = calloc(1, sizeof *step);
  if (step == NULL) return weir_fail_memory(err, sizeof *step);
  *step = (adder_step){.engine = e,
                       .next = e->steps,
                       .number = s->step,
                       .read = e->store->number};
  e->steps = step;
  step->fetch = (weir_engine_value){0, &step->read, sizeof step->read};
  step->event =
      (weir_engine_event){.kind = WEIR_ENGINE_STEP,
                          .release = step_read,
                          .error = WEIR_ERROR_INIT,
                          .step = s->step,
                          .prepared = e->writes[s->program % PROGRAMS],
                          .fetches = &step->fetch,
                          .fetch_count = 1};
  e->calls.later(e->calls.self, &step->event);
  return WEIR_OK;
}

static adder_step *find(adder *e, uint64_t number) {
  adder_step *step = e->steps;
  while (step != NULL && step->number != number) step = step->next;
  return step;
}

static void commit(weir_engine *engine, uint64_t number) {
  adder *e = (adder *)engine;
  adder_step *step = find(e, number);
  if (step == NULL) return;
  e->store->number = step->read + 1;
  drop(step);
}

static void give_up(weir_engine *engine, uint64_t number,
                    const weir_error *why) {
  adder_step *step = find((adder *)engine, number);
  (void)why;
  if (step == NULL) return;
  step->over = true;
  if (step->told)
    drop(step);
  else
    step->event.prepared = false;
}

static weir_status variables(weir_engine *engine, uint32_t program,
                             uint64_t request, const uint32_t *nodes,
                             size_t count, weir_error *err) {
  (void)engine, (void)program, (void)request, (void)nodes, (void)count;
  return weir_fail(err, WEIR_W7011, NULL, "the number is read by steps");
}

static size_t pending(weir_engine *engine, weir_engine_wait *waits,
                      size_t capacity, uint32_t *out_running) {
  (void)engine, (void)waits, (void)capacity;
  *out_running = 0;
  return 0;
}

static const weir_engine_vtable kAdder = {.release = release,
                                          .begin = begin,
                                          .end = end,
                                          .control = control,
                                          .lost = lost,
                                          .add = add,
                                          .remove = forget,
                                          .start = start,
                                          .commit = commit,
                                          .abort = give_up,
                                          .get = variables,
                                          .set = variables,
                                          .pending = pending};

weir_engine *adder_create(const adder_calls *calls, adder_store *store) {
  adder *e = calloc(1, sizeof *e);
  if (e == NULL) return NULL;
  e->base.vt = &kAdder;
  e->calls = *calls;
  e->store = store;
  return &e->base;
}
