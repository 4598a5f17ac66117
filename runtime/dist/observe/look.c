/* SPDX-License-Identifier: Apache-2.0 */
/* A look at one task.
 *
 * Phases follow in their order; one that was not asked for is passed over. A
 * question has a number, and an answer with another number is late: it is
 * passed over. A measurement sends |due| messages, kWindow of them without an
 * answer, so that the way is full and queues stay short; its time is from the
 * first message to the last answer. Each wait ends: a phase at its until_ns,
 * all of it when the peer is lost. Figures are taken of one task after the
 * other: a look waits for its turn, and gives it up with the phase.
 *
 * Invariant: |peer| is NULL exactly from the end of its row on; then phase is
 * DONE. */
#include "runtime/dist/observe/look.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/net/wire.h"
#include "runtime/net/wire_error.h"

enum { kWindow = 8 };

static void finish(weir_look *look, const weir_error *why) {
  if (why != NULL) weir_error_copy(&look->row->error, why);
  if (look->peer != NULL) {
    look->peer->owner = NULL;
    weir_link_drop(look->peer);
  }
  look->peer = NULL;
  look->phase = WEIR_LOOK_DONE;
  look->waits = false;
  if (look->turn->holder == look) look->turn->holder = NULL;
}

weir_status weir_look_start(weir_look *look, weir_link *link, int64_t now_ns,
                            weir_error *err) {
  const weir_driver_task *task = &look->options->tasks[look->task];
  weir_link_target target = {task->job, task->index, task->address,
                             now_ns + look->options->wait_ns};
  WEIR_TRY(weir_link_dial(link, now_ns, &target, &look->peer, err));
  look->peer->owner = look;
  look->peer->parting = true; /* why it was lost is not worth a probe */
  look->until_ns = target.until_ns;
  return WEIR_OK;
}

/* ---- Questions */

static void ask_state(weir_look *look) {
  Weir__V1__AskState body = WEIR__V1__ASK_STATE__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.number = ++look->number;
  m.body_case = WEIR__V1__CONTROL__BODY_ASK_STATE;
  m.ask_state = &body;
  weir_link_send(look->peer, 0, &m);
}

static void ask_stop(weir_look *look) {
  Weir__V1__StopTask body = WEIR__V1__STOP_TASK__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.number = ++look->number;
  body.force = look->options->force;
  m.body_case = WEIR__V1__CONTROL__BODY_STOP_TASK;
  m.stop_task = &body;
  weir_link_send(look->peer, 0, &m);
}

static bool echo(weir_look *look, size_t bytes, uint32_t back) {
  Weir__V1__Echo body = WEIR__V1__ECHO__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  void *data = NULL;
  if (bytes > 0) {
    data = weir_alloc_array(look->alloc, bytes, 1);
    weir_error err = WEIR_ERROR_INIT;
    if (data == NULL) {
      weir_fail_memory(&err, bytes);
      finish(look, &err);
      return false;
    }
  }
  body.number = ++look->number;
  body.data.data = data;
  body.data.len = bytes;
  body.back = back;
  m.body_case = WEIR__V1__CONTROL__BODY_ECHO;
  m.echo = &body;
  weir_link_send(look->peer, 0, &m);
  weir_free(look->alloc, data);
  return true;
}

static void ping(weir_look *look, int64_t now_ns) {
  look->at_ns = now_ns;
  look->until_ns = now_ns + look->options->wait_ns;
  look->next_ns = 0;
  look->row->trips.sent++;
  (void)echo(look, 0, 0);
}

/* Fills the window of a measurement. */
static void pump(weir_look *look, int64_t now_ns) {
  bool up = look->phase == WEIR_LOOK_UP;
  look->until_ns = now_ns + look->options->wait_ns;
  while (look->sent < look->due && look->sent - look->back < kWindow) {
    look->sent++;
    if (!echo(look, up ? WEIR_WIRE_ECHO_BYTES : 0,
              up ? 0 : WEIR_WIRE_ECHO_BYTES))
      return;
  }
}

static void measure(weir_look *look, int64_t now_ns) {
  look->at_ns = now_ns;
  look->first = look->number + 1;
  look->sent = look->back = 0;
  look->due = (look->options->bandwidth_bytes + WEIR_WIRE_ECHO_BYTES - 1) /
              WEIR_WIRE_ECHO_BYTES;
  pump(look, now_ns);
}

/* ---- Phases */

static bool wanted(const weir_look *look) {
  const weir_observe_options *o = look->options;
  switch (look->phase) {
    case WEIR_LOOK_PINGS:
      return o->pings > 0;
    case WEIR_LOOK_UP:
    case WEIR_LOOK_DOWN:
      return o->bandwidth_bytes > 0;
    case WEIR_LOOK_STOP:
      return o->stop;
    default:
      return true;
  }
}

/* Pings with time between them hardly meet those of other tasks. */
static bool needs_turn(const weir_look *look) {
  return look->phase == WEIR_LOOK_UP || look->phase == WEIR_LOOK_DOWN ||
         (look->phase == WEIR_LOOK_PINGS && look->options->interval_ns == 0);
}

static void begin_phase(weir_look *look, int64_t now_ns) {
  weir_look_turn *turn = look->turn;
  bool needs = needs_turn(look);
  look->waits = needs && turn->holder != NULL && turn->holder != look;
  if (look->waits) return;
  if (needs)
    turn->holder = look;
  else if (turn->holder == look)
    turn->holder = NULL;
  look->until_ns = now_ns + look->options->wait_ns;
  if (look->phase == WEIR_LOOK_STATE) ask_state(look);
  if (look->phase == WEIR_LOOK_PINGS) ping(look, now_ns);
  if (look->phase == WEIR_LOOK_UP || look->phase == WEIR_LOOK_DOWN)
    measure(look, now_ns);
  if (look->phase == WEIR_LOOK_STOP) ask_stop(look);
  if (look->phase == WEIR_LOOK_ENDS && !look->row->stopped) finish(look, NULL);
}

static void next_phase(weir_look *look, int64_t now_ns) {
  do look->phase++;
  while (look->phase != WEIR_LOOK_ENDS && !wanted(look));
  begin_phase(look, now_ns);
}

void weir_look_up(weir_look *look, int64_t now_ns) {
  look->row->profile = look->peer->profile;
  next_phase(look, now_ns);
}

/* A round trip is over, or has no answer. */
static void pinged(weir_look *look, int64_t now_ns, int64_t rtt_ns) {
  const weir_observe_options *o = look->options;
  uint32_t number = look->row->trips.sent;
  if (rtt_ns >= 0)
    look->trips[look->answered++] = rtt_ns;
  else
    look->row->trips.lost++;
  if (o->pinged != NULL) o->pinged(o->self, look->task, number, rtt_ns);
  if (number == o->pings) {
    next_phase(look, now_ns);
  } else if (look->at_ns + o->interval_ns > now_ns) {
    look->next_ns = look->at_ns + o->interval_ns;
    look->until_ns = INT64_MAX;
  } else {
    ping(look, now_ns);
  }
}

static void measured(weir_look *look, int64_t now_ns) {
  int64_t ns = now_ns - look->at_ns;
  double rate = (double)look->due * WEIR_WIRE_ECHO_BYTES * 1e9 /
                (double)(ns > 0 ? ns : 1);
  if (look->phase == WEIR_LOOK_UP)
    look->row->up_bytes_per_s = rate;
  else
    look->row->down_bytes_per_s = rate;
  next_phase(look, now_ns);
}

static void keep_state(weir_look *look, const Weir__V1__TellState *told) {
  weir_observe_row *row = look->row;
  weir_task_state *s = &row->state;
  *s = (weir_task_state){.phase = (int)told->phase,
                         .epoch = told->epoch,
                         .tasks = told->tasks,
                         .steps = told->steps,
                         .committed = told->committed};
  snprintf(s->share, sizeof s->share, "%s", told->share);
  if (told->driver[0] != '\0') {
    s->driver_count = 1;
    snprintf(s->drivers[0], sizeof s->drivers[0], "%s", told->driver);
  }
  for (size_t i = 1; i < told->n_drivers && i < WEIR_TURNS_TASKS; i++)
    snprintf(s->drivers[s->driver_count++], sizeof s->drivers[0], "%s",
             told->drivers[i]);
  for (size_t i = 0; i < told->n_held && i < WEIR_TASK_HELD; i++)
    s->held[s->held_count++] =
        (weir_task_held){told->held[i]->program, told->held[i]->graph_hash,
                         told->held[i]->memory_bytes};
  row->memory_bytes = told->memory_bytes;
  row->uptime_ns = told->uptime_ns;
  snprintf(row->version, sizeof row->version, "%s", told->version);
  row->known = true;
}

static void told_state(weir_look *look, int64_t now_ns,
                       const Weir__V1__TellState *told) {
  weir_error why = WEIR_ERROR_INIT;
  if (told->number != look->number) return;
  if (look->phase == WEIR_LOOK_STATE) {
    keep_state(look, told);
    next_phase(look, now_ns);
  } else if (look->phase == WEIR_LOOK_STOP) {
    keep_state(look, told);
    look->row->stopped = told->stops != 0;
    if (weir_wire_error_is(told->refused))
      (void)weir_wire_error_get(told->refused, &why);
    else if (!look->row->stopped)
      weir_fail(&why, WEIR_W7011, NULL, "%s does not say why it goes on",
                look->peer->name);
    if (look->row->stopped)
      next_phase(look, now_ns);
    else
      finish(look, &why);
  }
}

void weir_look_message(weir_look *look, int64_t now_ns,
                       const Weir__V1__Control *m) {
  if (m->body_case == WEIR__V1__CONTROL__BODY_TELL_STATE) {
    told_state(look, now_ns, m->tell_state);
    return;
  }
  if (m->body_case != WEIR__V1__CONTROL__BODY_ECHO_REPLY) return;
  uint64_t number = m->echo_reply->number;
  if (look->phase == WEIR_LOOK_PINGS) {
    if (number == look->number && look->next_ns == 0)
      pinged(look, now_ns, now_ns - look->at_ns);
  } else if ((look->phase == WEIR_LOOK_UP || look->phase == WEIR_LOOK_DOWN) &&
             number == look->first + look->back) {
    look->back++;
    if (look->back == look->due)
      measured(look, now_ns);
    else
      pump(look, now_ns);
  }
}

void weir_look_lost(weir_look *look, int64_t now_ns, const weir_error *why) {
  (void)now_ns;
  bool ends = look->phase == WEIR_LOOK_ENDS;
  /* A task closes the connection of an observer only when it ends: its answer
   * was late, that is all. */
  if (look->phase == WEIR_LOOK_STOP && look->peer->orderly)
    look->row->stopped = ends = true;
  look->peer = NULL;
  finish(look, ends ? NULL : why);
}

/* ---- Time */

static void late(weir_look *look, int64_t now_ns) {
  weir_error why = WEIR_ERROR_INIT;
  double s = (double)look->options->wait_ns / 1e9;
  if (look->phase == WEIR_LOOK_PINGS) {
    pinged(look, now_ns, -1);
    return;
  }
  if (look->phase == WEIR_LOOK_ENDS) {
    weir_fail(&why, WEIR_W7001, NULL,
              "%s was asked to end and is still there after %.1f s",
              look->peer->name, s);
    look->row->stopped = false;
  } else {
    weir_fail(&why, WEIR_W7001, NULL, "%s has not answered for %.1f s",
              look->peer->name, s);
  }
  finish(look, &why);
}

int64_t weir_look_tick(weir_look *look, int64_t now_ns) {
  if (look->phase == WEIR_LOOK_DONE) return INT64_MAX;
  if (look->phase == WEIR_LOOK_DIALS) {
    /* Whoever looks does not wait for a task to be started. */
    weir_peer *peer = look->peer;
    if (peer->state < WEIR_PEER_UP && peer->last.id[0] != '\0') {
      weir_error why = peer->last;
      finish(look, &why);
    }
    return INT64_MAX; /* the link ends it */
  }
  if (look->waits) begin_phase(look, now_ns);
  if (look->waits) return INT64_MAX;
  if (look->next_ns != 0 && now_ns >= look->next_ns) ping(look, now_ns);
  if (look->phase != WEIR_LOOK_DONE && look->next_ns == 0 &&
      now_ns >= look->until_ns)
    late(look, now_ns);
  if (look->phase == WEIR_LOOK_DONE) return INT64_MAX;
  return look->next_ns != 0 ? look->next_ns : look->until_ns;
}
