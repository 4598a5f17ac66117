/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to observers.
 *
 * An answer is made of what the control thread knows already: it waits for
 * nothing, touches no engine, and needs the memory of one message. The bytes of
 * Echo have a limit on both sides (wire.h); an observer that does not read its
 * answers fills its own queue and is cut off by the transport. */
#include "runtime/dist/serve/observed.h"

#include <string.h>

#include "runtime/net/wire.h"
#include "runtime/net/wire_error.h"

static void tell(const weir_observed_process *process, weir_peer *peer,
                 uint64_t number, bool stops, const weir_error *refused) {
  weir_task_state state;
  Weir__V1__Held held[WEIR_TASK_HELD];
  Weir__V1__Held *rows[WEIR_TASK_HELD];
  char *drivers[WEIR_TURNS_TASKS];
  Weir__V1__Error words = WEIR__V1__ERROR__INIT;
  Weir__V1__TellState body = WEIR__V1__TELL_STATE__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  weir_front_describe(process->front, &state);
  for (uint32_t i = 0; i < state.held_count; i++) {
    held[i] = (Weir__V1__Held)WEIR__V1__HELD__INIT;
    held[i].program = state.held[i].program;
    held[i].graph_hash = state.held[i].graph_hash;
    held[i].memory_bytes = state.held[i].memory_bytes;
    rows[i] = &held[i];
  }
  if (refused != NULL) {
    weir_wire_error_put(refused, &words);
    body.refused = &words;
  }
  body.number = number;
  body.stops = stops;
  body.phase = (Weir__V1__TaskPhase)state.phase;
  body.driver = state.driver_count > 0 ? state.drivers[0] : "";
  body.share = state.share;
  for (uint32_t i = 0; i < state.driver_count; i++)
    drivers[i] = state.drivers[i];
  body.drivers = drivers;
  if (state.share[0] != '\0') body.n_drivers = state.driver_count;
  body.epoch = state.epoch;
  body.tasks = state.tasks;
  body.steps = state.steps;
  body.committed = state.committed;
  body.held = rows;
  body.n_held = state.held_count;
  body.memory_bytes = process->memory_bytes;
  body.uptime_ns = process->uptime_ns;
  if (process->version != NULL) body.version = (char *)process->version;
  m.body_case = WEIR__V1__CONTROL__BODY_TELL_STATE;
  m.tell_state = &body;
  weir_link_send(peer, 0, &m);
}

static bool stop(const weir_observed_process *process, weir_peer *peer,
                 const Weir__V1__StopTask *asked) {
  weir_error err = WEIR_ERROR_INIT;
  weir_task_state state;
  weir_front_describe(process->front, &state);
  bool busy = state.phase != WEIR__V1__TASK_PHASE__FREE && !asked->force;
  if (busy)
    weir_fail(&err, WEIR_W7080, NULL, "the task works for a driver%s%s",
              state.driver_count > 0 ? " at " : ", which is lost",
              state.driver_count > 0 ? state.drivers[0] : "");
  tell(process, peer, asked->number, !busy, busy ? &err : NULL);
  return !busy;
}

static void echo(const weir_observed_process *process, weir_peer *peer,
                 const Weir__V1__Echo *asked) {
  weir_error err = WEIR_ERROR_INIT;
  void *bytes = NULL;
  if (asked->back > WEIR_WIRE_ECHO_BYTES) {
    weir_fail(&err, WEIR_W7011, NULL, "%s wants too many bytes", peer->name);
    weir_link_give_up(peer, &err);
    return;
  }
  if (asked->back > 0) {
    bytes = weir_alloc_array(process->alloc, asked->back, 1);
    if (bytes == NULL) {
      weir_fail_memory(&err, asked->back);
      weir_link_give_up(peer, &err);
      return;
    }
  }
  Weir__V1__EchoReply body = WEIR__V1__ECHO_REPLY__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.number = asked->number;
  body.data.data = bytes;
  body.data.len = asked->back;
  m.body_case = WEIR__V1__CONTROL__BODY_ECHO_REPLY;
  m.echo_reply = &body;
  weir_link_send(peer, 0, &m);
  weir_free(process->alloc, bytes);
}

bool weir_observed_answer(const weir_observed_process *process, weir_peer *peer,
                          const Weir__V1__Control *m) {
  weir_error err = WEIR_ERROR_INIT;
  switch (m->body_case) {
    case WEIR__V1__CONTROL__BODY_ASK_STATE:
      tell(process, peer, m->ask_state->number, false, NULL);
      return false;
    case WEIR__V1__CONTROL__BODY_ECHO:
      echo(process, peer, m->echo);
      return false;
    case WEIR__V1__CONTROL__BODY_STOP_TASK:
      return stop(process, peer, m->stop_task);
    default:
      weir_fail(&err, WEIR_W7011, NULL,
                "%s sends message %d, which asks nothing", peer->name,
                (int)m->body_case);
      weir_link_give_up(peer, &err);
      return false;
  }
}
