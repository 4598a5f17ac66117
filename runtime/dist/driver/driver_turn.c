/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/driver/driver_internal.h"

/* The turn of a driver that shares its tasks' variables with others.
 *
 * A turn that is given back ends when all commits of it are confirmed: then no
 * task has a step of it that waits for its decision, and the next driver finds
 * the new values everywhere. So the tasks need no locks among sessions. A
 * session that ends well waits for that too, for a while; one that fails does
 * not, and the home finds out for itself (task_turn.c). */

enum { END_AT_ONCE = 16 };

static void send_ask(weir_driver *d, uint32_t home, bool writes) {
  Weir__V1__Turn body = WEIR__V1__TURN__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.number = d->turn.sent = d->turn.number;
  body.writes = writes;
  m.body_case = WEIR__V1__CONTROL__BODY_TURN;
  m.turn = &body;
  d->turn.home = home;
  d->turn.state = WEIR_TURN_ASKED;
  weir_driver_send(d, home, &m);
}

static void send_end(weir_driver *d) {
  Weir__V1__TurnEnd body = WEIR__V1__TURN_END__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.number = d->turn.sent;
  body.made = d->turn.made;
  m.body_case = WEIR__V1__CONTROL__BODY_TURN_END;
  m.turn_end = &body;
  d->turn.state = WEIR_TURN_NONE;
  weir_driver_send(d, d->turn.home, &m);
}

weir_status weir_driver_turn_ask(weir_driver *d, int64_t now_ns, uint32_t home,
                                 bool writes, uint64_t *out_number,
                                 weir_error *err) {
  weir_driver_turns *t = &d->turn;
  d->now_ns = now_ns;
  if (d->state != WEIR_DRIVER_READY || d->share[0] == '\0' ||
      home >= d->count || t->next_asked ||
      (t->state != WEIR_TURN_NONE && t->state != WEIR_TURN_ENDING))
    return weir_fail(err, WEIR_W7011, NULL,
                     "a turn is asked for in a share, one at a time");
  *out_number = ++t->number;
  if (t->state == WEIR_TURN_NONE) {
    send_ask(d, home, writes);
  } else {
    t->next_asked = true;
    t->next_writes = writes;
    t->next_home = home;
  }
  return WEIR_OK;
}

void weir_driver_turn_kept(weir_driver *d) {
  weir_driver_turns *t = &d->turn;
  if (t->state != WEIR_TURN_ENDING) return;
  send_end(d);
  if (!t->next_asked) return;
  t->next_asked = false;
  send_ask(d, t->next_home, t->next_writes);
}

void weir_driver_turn_end(weir_driver *d, int64_t now_ns, bool made) {
  const int64_t patience = INT64_C(10000000000);
  weir_driver_turns *t = &d->turn;
  d->now_ns = now_ns;
  if (t->next_asked) { /* not even sent */
    t->next_asked = false;
    return;
  }
  if (d->state >= WEIR_DRIVER_FAILED ||
      (t->state != WEIR_TURN_ASKED && t->state != WEIR_TURN_HELD))
    return;
  t->made = made;
  t->state = WEIR_TURN_ENDING;
  t->until_ns = now_ns + patience;
  if (d->unsure == NULL || (d->options.plant & END_AT_ONCE) != 0)
    weir_driver_turn_kept(d);
}

void weir_driver_turn_reply(weir_driver *d, uint32_t place,
                            const Weir__V1__TurnReply *reply) {
  weir_driver_turns *t = &d->turn;
  if (t->state != WEIR_TURN_ASKED || place != t->home ||
      reply->number != t->sent)
    return; /* given back before it came */
  t->state = WEIR_TURN_HELD;
  weir_driver_turn turn = {t->number, reply->fresh, reply->drivers};
  if (d->calls.turned != NULL) d->calls.turned(d->calls.self, &turn, NULL);
}

void weir_driver_turn_fail(weir_driver *d, const weir_error *why) {
  weir_driver_turns *t = &d->turn;
  bool waits = t->state == WEIR_TURN_ASKED || t->next_asked;
  weir_driver_turn turn = {.number = t->number};
  t->state = WEIR_TURN_NONE;
  t->next_asked = false;
  if (waits && d->calls.turned != NULL)
    d->calls.turned(d->calls.self, &turn, why);
}

int64_t weir_driver_turn_wait(const weir_driver *d) {
  if (d->turn.state != WEIR_TURN_ENDING || d->state != WEIR_DRIVER_READY)
    return 0;
  return d->turn.until_ns;
}
