/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/dist/driver/driver_internal.h"
#include "runtime/net/wire_error.h"

/* Programs and variables of a session.
 *
 * A program is ready when all its tasks have replied well. When one has failed
 * the others are told to forget it, or they would wait for a neighbour that
 * never comes. All of them answer, and the error is that of the task of the
 * lowest place that failed by itself. */

weir_driver_prog *weir_driver_find(weir_driver *d, uint32_t program) {
  for (size_t i = 0; i < WEIR_DRIVER_PROGRAMS; i++)
    if (d->programs[i].used && d->programs[i].number == program)
      return &d->programs[i];
  return NULL;
}

weir_status weir_driver_register(weir_driver *d, int64_t now_ns,
                                 Weir__V1__Register *request,
                                 const uint32_t *places, size_t count,
                                 uint32_t *out_program, weir_error *err) {
  d->now_ns = now_ns;
  weir_driver_prog *p = NULL;
  for (size_t i = 0; i < WEIR_DRIVER_PROGRAMS && p == NULL; i++)
    if (!d->programs[i].used) p = &d->programs[i];
  if (d->state != WEIR_DRIVER_READY || p == NULL || count == 0)
    return weir_fail(err, WEIR_W7011, NULL,
                     d->state != WEIR_DRIVER_READY
                         ? "the session does not run"
                         : "no task has work, or 16 programs are registered");
  weir_part_state *parts = p->parts;
  bool *part_writes = p->part_writes;
  if (parts == NULL)
    parts = weir_arena_array(&d->arena, d->count, sizeof *parts);
  if (part_writes == NULL)
    part_writes = weir_arena_array(&d->arena, d->count, sizeof *part_writes);
  if (parts == NULL || part_writes == NULL)
    return weir_fail_memory(err, d->count * sizeof *parts);
  memset(parts, 0, d->count * sizeof *parts);
  memset(part_writes, 0, d->count * sizeof *part_writes);
  *p = (weir_driver_prog){.used = true,
                          .number = ++d->last_program,
                          .until_ns = now_ns + d->options.register_ns,
                          .parts = parts,
                          .part_writes = part_writes,
                          .error = WEIR_ERROR_INIT};
  request->program = *out_program = p->number;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_REGISTER;
  m.register_ = request;
  for (size_t i = 0; i < count; i++) {
    parts[places[i]] = WEIR_PART_WAITS;
    weir_driver_send(d, places[i], &m);
  }
  return WEIR_OK;
}

/* To its tasks in |state|. */
static void send_unregister(weir_driver *d, const weir_driver_prog *p,
                            weir_part_state state) {
  Weir__V1__Unregister body = WEIR__V1__UNREGISTER__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.program = p->number;
  m.body_case = WEIR__V1__CONTROL__BODY_UNREGISTER;
  m.unregister = &body;
  for (uint32_t i = 0; i < d->count; i++)
    if (p->parts[i] == state) weir_driver_send(d, i, &m);
}

weir_status weir_driver_unregister(weir_driver *d, uint32_t program,
                                   weir_error *err) {
  weir_driver_prog *p = weir_driver_find(d, program);
  for (size_t i = 0; i < d->steps.count; i++)
    if (d->steps.items[i]->program == program) p = NULL;
  if (p == NULL || !p->ready)
    return weir_fail(err, WEIR_W7011, NULL,
                     "program %" PRIu32 " is not registered, or runs", program);
  send_unregister(d, p, WEIR_PART_DONE);
  p->used = p->ready = false;
  return WEIR_OK;
}

static void finish(weir_driver *d, weir_driver_prog *p) {
  weir_driver_program result = {p->number, p->writes, p->memory_bytes};
  if (p->error.id[0] == '\0') {
    p->ready = true;
    d->calls.registered(d->calls.self, &result, NULL);
    return;
  }
  weir_error why = p->error;
  send_unregister(d, p, WEIR_PART_DONE);
  p->used = false;
  d->calls.registered(d->calls.self, &result, &why);
}

/* What |place| says counts, unless it only did as it was told. */
static void note_failure(weir_driver *d, weir_driver_prog *p, uint32_t place,
                         const Weir__V1__Error *why, bool told) {
  weir_error err = WEIR_ERROR_INIT;
  (void)weir_wire_error_get(why, &err);
  if ((told && strcmp(err.id, "W7027") == 0) ||
      (p->error.id[0] != '\0' && place > p->error_place))
    return;
  p->error = err;
  snprintf(p->error.message, sizeof p->error.message, "%s: %.400s",
           d->places[place].name, err.message);
  p->error_place = place;
}

/* The tasks that have not replied are told to forget the program. */
static void give_up(weir_driver *d, weir_driver_prog *p) {
  send_unregister(d, p, WEIR_PART_WAITS);
  for (uint32_t i = 0; i < d->count; i++)
    if (p->parts[i] == WEIR_PART_WAITS) p->parts[i] = WEIR_PART_FORGETS;
}

void weir_driver_register_reply(weir_driver *d, uint32_t place,
                                const Weir__V1__RegisterReply *reply) {
  weir_driver_prog *p = weir_driver_find(d, reply->program);
  if (p == NULL || (p->parts[place] != WEIR_PART_WAITS &&
                    p->parts[place] != WEIR_PART_FORGETS))
    return;
  bool told = p->parts[place] == WEIR_PART_FORGETS;
  p->parts[place] = WEIR_PART_NONE; /* it does not have it */
  if (weir_wire_error_is(reply->error)) {
    note_failure(d, p, place, reply->error, told);
    give_up(d, p);
  } else if (!told) {
    p->parts[place] = WEIR_PART_DONE;
    p->part_writes[place] = reply->writes;
    p->writes |= reply->writes;
    if (p->memory_bytes <= UINT64_MAX - reply->memory_bytes)
      p->memory_bytes += reply->memory_bytes;
  }
  for (uint32_t i = 0; i < d->count; i++)
    if (p->parts[i] == WEIR_PART_WAITS || p->parts[i] == WEIR_PART_FORGETS)
      return;
  finish(d, p);
}

/* ---- Variables */

weir_status weir_driver_variables_start(weir_driver *d, int64_t now_ns,
                                        const weir_driver_variables *want,
                                        uint64_t *out_request,
                                        weir_error *err) {
  d->now_ns = now_ns;
  if (d->state != WEIR_DRIVER_READY || want->place >= d->count ||
      (want->set && d->steps.count > 0))
    return weir_fail(err, WEIR_W7011, NULL,
                     "variables are set between steps of a session");
  weir_driver_request r = {++d->last_request, want->place,
                           now_ns + d->options.register_ns};
  if (!weir_vec_push(d->alloc, &d->requests, r))
    return weir_fail_memory(err, sizeof r);
  *out_request = r.number;
  Weir__V1__VariableGet get = WEIR__V1__VARIABLE_GET__INIT;
  Weir__V1__VariableSet set = WEIR__V1__VARIABLE_SET__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  if (want->set) {
    set.request = r.number;
    set.program = want->program;
    set.n_nodes = want->count;
    set.nodes = (uint32_t *)want->nodes;
    m.body_case = WEIR__V1__CONTROL__BODY_VARIABLE_SET;
    m.variable_set = &set;
  } else {
    get.request = r.number;
    get.program = want->program;
    get.n_nodes = want->count;
    get.nodes = (uint32_t *)want->nodes;
    m.body_case = WEIR__V1__CONTROL__BODY_VARIABLE_GET;
    m.variable_get = &get;
  }
  weir_driver_send(d, want->place, &m);
  return WEIR_OK;
}

/* Whether |number| is a request to |place| of that kind; it is none any more.
 */
static bool take_request(weir_driver *d, uint32_t place, uint64_t number,
                         bool asked) {
  for (size_t i = 0; i < d->requests.count; i++) {
    const weir_driver_request *r = &d->requests.items[i];
    if (r->number != number || r->place != place || r->asked != asked) continue;
    d->requests.items[i] = d->requests.items[--d->requests.count];
    return true;
  }
  return false;
}

void weir_driver_variable_reply(weir_driver *d, uint32_t place,
                                const Weir__V1__VariableReply *reply) {
  weir_error err = WEIR_ERROR_INIT;
  if (!take_request(d, place, reply->request, false)) return;
  bool failed = weir_wire_error_is(reply->error);
  if (failed) (void)weir_wire_error_get(reply->error, &err);
  d->calls.variables(d->calls.self, reply->request, failed ? &err : NULL);
}

/* ---- Checkpoints */

weir_status weir_driver_ask(weir_driver *d, int64_t now_ns, uint32_t place,
                            Weir__V1__Control *message, uint64_t *out_request,
                            weir_error *err) {
  d->now_ns = now_ns;
  if (d->state != WEIR_DRIVER_READY || place >= d->count)
    return weir_fail(err, WEIR_W7011, NULL, "the session does not run");
  weir_driver_request r = {d->last_request + 1, place, INT64_MAX, true};
  if (!weir_vec_push(d->alloc, &d->requests, r))
    return weir_fail_memory(err, sizeof r);
  *out_request = ++d->last_request;
  weir_driver_send(d, place, message);
  return WEIR_OK;
}

void weir_driver_tell(weir_driver *d, uint32_t place,
                      Weir__V1__Control *message) {
  if (d->state == WEIR_DRIVER_READY) weir_driver_send(d, place, message);
}

void weir_driver_checkpoint_reply(weir_driver *d, uint32_t place,
                                  const Weir__V1__CheckpointReply *reply) {
  if (take_request(d, place, reply->request, true))
    d->calls.replied(d->calls.self, reply->request, reply, NULL);
}

/* ---- Ends */

void weir_driver_programs_fail(weir_driver *d, const weir_error *why) {
  for (size_t i = 0; i < WEIR_DRIVER_PROGRAMS; i++) {
    weir_driver_prog *p = &d->programs[i];
    bool waits = p->used && !p->ready;
    weir_driver_program result = {.program = p->number};
    p->used = false;
    if (waits) d->calls.registered(d->calls.self, &result, why);
  }
  while (d->requests.count > 0) {
    weir_driver_request r = d->requests.items[0];
    d->requests.items[0] = d->requests.items[--d->requests.count];
    if (r.asked)
      d->calls.replied(d->calls.self, r.number, NULL, why);
    else
      d->calls.variables(d->calls.self, r.number, why);
  }
}

static void too_late(weir_driver *d, const char *what, uint32_t place) {
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, WEIR_W7021, NULL, "%s at %s has not answered: %s",
            d->places[place].name, d->places[place].address, what);
  weir_driver_fail(d, &err);
}

int64_t weir_driver_program_tick(weir_driver *d) {
  int64_t next = INT64_MAX;
  for (size_t i = 0; i < WEIR_DRIVER_PROGRAMS; i++) {
    const weir_driver_prog *p = &d->programs[i];
    if (!p->used || p->ready) continue;
    if (p->until_ns < next) next = p->until_ns;
    for (uint32_t k = 0; d->now_ns >= p->until_ns && k < d->count; k++)
      if (p->parts[k] == WEIR_PART_WAITS || p->parts[k] == WEIR_PART_FORGETS)
        too_late(d, "registration", k);
  }
  for (size_t i = 0; i < d->requests.count; i++) {
    const weir_driver_request *r = &d->requests.items[i];
    if (r->until_ns < next) next = r->until_ns;
    if (d->now_ns >= r->until_ns) too_late(d, "variables", r->place);
  }
  return next;
}
