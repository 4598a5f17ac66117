/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of the simulator.
 *
 * A connection has two lanes, one to each side. A frame waits at its sender
 * until the window has room, leaves, and arrives at a time that is drawn when
 * it leaves and never before the frame in front of it. So the first frame of a
 * lane is the only one that can arrive next, and the next event of the network
 * is the least over all sides: no queue of events is kept, and a cut, a pause
 * or a heal needs to change none. A scan costs some ns a side; tests have
 * hundreds. */
#include "runtime/net/sim_lanes.h"

#include <assert.h>
#include <stdio.h>

#include "runtime/base/mix.h"

/* ---- Chance and time */

bool weir_sim_chance(weir_net_sim *sim, uint32_t ppm) {
  return ppm > 0 && weir_mix_below(&sim->random, 1000000) < ppm;
}

int64_t weir_sim_within(weir_net_sim *sim, int64_t most_ns) {
  assert(most_ns > 0);
  return 1 + (int64_t)(weir_mix_next(&sim->random) % (uint64_t)most_ns);
}

int64_t weir_sim_arrival(weir_net_sim *sim) {
  int64_t least = sim->options.delay_min_ns, most = sim->options.delay_max_ns;
  return sim->now_ns + least + weir_sim_within(sim, most - least + 1);
}

/* ---- Processes and links */

weir_sim_process *weir_sim_process_of(weir_net_sim *sim, uint32_t process) {
  while (sim->processes.count <= process)
    if (!weir_vec_push(sim->env.alloc, &sim->processes, (weir_sim_process){0}))
      return NULL;
  return &sim->processes.items[process];
}

bool weir_sim_link_of(weir_net_sim *sim, uint32_t from, uint32_t to,
                      size_t *out_link) {
  for (size_t i = 0; i < sim->links.count; i++)
    if (sim->links.items[i].from == from && sim->links.items[i].to == to) {
      *out_link = i;
      return true;
    }
  *out_link = sim->links.count;
  return weir_vec_push(sim->env.alloc, &sim->links,
                       (weir_sim_link){.from = from, .to = to});
}

static bool is_cut(const weir_net_sim *sim, const weir_sim_side *s) {
  return sim->links.items[s->link].cut;
}

/* ---- Frames leave */

static bool has_room(const weir_net_sim *sim, const weir_sim_side *s) {
  return s->coming_bytes == 0 ||
         s->coming_bytes + s->queued.head->size <= sim->options.window_bytes;
}

/* Draws when |parcel|, which leaves now, arrives. */
static void draw_due(weir_net_sim *sim, weir_sim_side *s,
                     weir_net_parcel *parcel) {
  uint64_t rate = sim->links.items[s->link].bytes_per_second;
  if (rate > 0) sim->counts[WEIR_NET_FAULT_SLOW]++;
  if (rate == 0) rate = sim->options.bytes_per_second;
  if (s->busy_ns < sim->now_ns) s->busy_ns = sim->now_ns;
  if (rate > 0)
    s->busy_ns += (int64_t)((double)parcel->size * 1e9 / (double)rate);
  int64_t due = s->busy_ns + (weir_sim_arrival(sim) - sim->now_ns);
  if (weir_sim_chance(sim, sim->options.stall_ppm)) {
    sim->counts[WEIR_NET_FAULT_STALL]++;
    due += weir_sim_within(sim, sim->options.stall_ns);
  }
  if (due <= s->last_ns) due = s->last_ns + 1;
  parcel->due_ns = s->last_ns = due;
}

/* The connection breaks: each side notices in its own time. */
static void end_both(weir_net_sim *sim, weir_sim_side *s) {
  weir_sim_side *o = weir_sim_other(s);
  const int64_t notice = sim->options.notice_ns;
  const char *text = "the connection was reset";
  weir_sim_end(s, sim->now_ns + weir_sim_within(sim, notice), WEIR_CLOSED_RESET,
               text);
  weir_sim_end(o, sim->now_ns + weir_sim_within(sim, notice), WEIR_CLOSED_RESET,
               text);
}

static void leave(weir_net_sim *sim, weir_sim_side *s,
                  weir_net_parcel *parcel) {
  draw_due(sim, s, parcel);
  parcel->order = ++sim->order;
  parcel->marked = weir_sim_chance(sim, sim->options.late_reset_ppm);
  s->coming_bytes += parcel->size;
  weir_net_parcels_push(&s->coming, parcel);
  /* Half of the frames are let go when they leave, half when they arrive. */
  if (weir_sim_chance(sim, 500000) &&
      weir_net_parcel_open(parcel, sim->env.alloc, &sim->random, NULL) ==
          WEIR_OK)
    weir_net_parcel_let_go(parcel);
}

void weir_sim_depart(weir_net_sim *sim, weir_sim_side *s) {
  bool paused = sim->processes.items[weir_sim_other(s)->process].paused;
  while (s->open && !paused && !s->lost && s->queued.head != NULL &&
         has_room(sim, s)) {
    weir_net_parcel *parcel = weir_net_parcels_pop(&s->queued);
    s->queued_bytes -= parcel->size;
    if (weir_sim_chance(sim, sim->options.loss_ppm)) {
      sim->counts[WEIR_NET_FAULT_LOSS]++;
      s->lost = true;
      end_both(sim, s);
      weir_net_parcel_free_all(parcel);
    } else {
      leave(sim, s, parcel);
    }
  }
  if (!s->closing || s->lost || s->queued.head != NULL) return;
  int64_t at = weir_sim_arrival(sim);
  if (s->close_ns == WEIR_SIM_NEVER) s->close_ns = at;
  if (s->close_ns <= s->last_ns) s->close_ns = s->last_ns + 1;
}

/* ---- Ends */

void weir_sim_end(weir_sim_side *s, int64_t at_ns, weir_close_reason why,
                  const char *text) {
  if (at_ns >= s->end_ns) return;
  s->told = true;
  s->end_ns = at_ns;
  s->end_why = why;
  s->end_text = text;
}

void weir_sim_lane_drop(weir_sim_side *s, weir_net_parcels *grave) {
  weir_net_parcels kept = {0};
  bool whole = true;
  for (weir_net_parcel *p; (p = weir_net_parcels_pop(&s->coming)) != NULL;) {
    whole = whole && p->count == 0; /* its sender has got it back */
    if (!whole) s->coming_bytes -= p->size;
    weir_net_parcels_push(whole ? &kept : grave, p);
  }
  for (weir_net_parcel *p; (p = weir_net_parcels_pop(&s->queued)) != NULL;) {
    whole = false;
    weir_net_parcels_push(grave, p);
  }
  s->coming = kept;
  if (kept.head == NULL) s->coming.head = NULL;
  s->queued_bytes = 0;
  s->sender = NULL;
  s->lost = true;
  if (!whole) s->closing = false, s->close_ns = WEIR_SIM_NEVER;
}

static void detach(weir_sim_side *s) {
  weir_sim_transport *t = s->owner;
  size_t i = 0;
  while (t->sides.items[i] != s) i++;
  memmove(&t->sides.items[i], &t->sides.items[i + 1],
          (--t->sides.count - i) * sizeof s);
  s->owner = NULL;
}

static weir_net_parcel *all_of(weir_sim_side *s) {
  weir_net_parcels all = s->coming;
  for (weir_net_parcel *p; (p = weir_net_parcels_pop(&s->queued)) != NULL;)
    weir_net_parcels_push(&all, p);
  s->coming.head = NULL;
  s->coming_bytes = s->queued_bytes = 0;
  return all.head;
}

void weir_sim_part(weir_net_sim *sim, weir_sim_side *s, bool flows) {
  weir_sim_side *o = weir_sim_other(s);
  detach(s);
  /* A listener that never saw the connection need not see its end. */
  if (o->owner != NULL && !o->connected && o->incoming) detach(o);
  weir_net_parcel *unseen = all_of(s), *unsent = NULL;
  if (o->owner == NULL) {
    unsent = all_of(o);
    weir_free(sim->env.alloc, s->both);
  } else if (flows && s->connected) {
    o->closing = true;
    weir_sim_depart(sim, o);
  } else {
    weir_net_parcels dropped = {0};
    weir_sim_lane_drop(o, &dropped);
    unsent = dropped.head;
  }
  weir_net_parcel_free_all(unseen);
  weir_net_parcel_free_all(unsent);
  weir_sim_tell_orphans(sim);
}

/* A side elsewhere whose lane holds frames of |t|, which may have closed the
 * connection; NULL: there is none. */
static weir_sim_side *fed_by(const weir_sim_transport *t) {
  for (weir_sim_transport *u = t->sim->transports; u != NULL; u = u->next)
    for (size_t i = 0; i < u->sides.count; i++)
      if (u->sides.items[i]->sender == t) return u->sides.items[i];
  return NULL;
}

void weir_sim_stop(weir_sim_transport *t, weir_net_parcels *grave) {
  t->dead = true;
  t->ports.count = 0;
  for (weir_sim_side *s = fed_by(t); s != NULL; s = fed_by(t))
    weir_sim_lane_drop(s, grave);
  while (t->sides.count > 0)
    weir_sim_part(t->sim, t->sides.items[t->sides.count - 1], false);
  weir_sim_tell_orphans(t->sim);
}

static void tell_orphan(weir_net_sim *sim, weir_sim_side *s) {
  const weir_sim_side *o = weir_sim_other(s);
  if (o->owner != NULL || s->closing || s->told || is_cut(sim, s) ||
      sim->processes.items[o->process].gone)
    return;
  weir_sim_end(
      s, weir_sim_arrival(sim),
      s->connected ? WEIR_CLOSED_RESET : WEIR_CLOSED_UNREACHABLE,
      s->connected ? "the connection was reset" : "the connection was refused");
}

void weir_sim_tell_orphans(weir_net_sim *sim) {
  for (weir_sim_transport *t = sim->transports; t != NULL; t = t->next)
    for (size_t i = 0; i < t->sides.count; i++)
      tell_orphan(sim, t->sides.items[i]);
}

/* ---- Events */

int64_t weir_sim_due(const weir_net_sim *sim, const weir_sim_side *s) {
  int64_t next = s->close_ns;
  if (sim->processes.items[s->process].paused) return WEIR_SIM_NEVER;
  if (s->coming.head != NULL) next = s->coming.head->due_ns;
  if (!s->connected) next = s->connect_ns;
  if (is_cut(sim, s)) next = WEIR_SIM_NEVER;
  return next < s->end_ns ? next : s->end_ns;
}

static weir_status give_connected(weir_net_sim *sim, weir_sim_side *s) {
  const weir_transport_handler to = s->owner->base.handler;
  weir_sim_side *o = weir_sim_other(s);
  weir_connection id = s->id;
  bool incoming = s->incoming;
  char peer[WEIR_NET_ADDRESS_BYTES];
  memcpy(peer, s->peer, sizeof peer);
  s->connected = true;
  if (incoming) {
    o->connect_ns = weir_sim_arrival(sim);
  } else {
    s->end_ns = WEIR_SIM_NEVER; /* the attempt's */
    s->told = false;
  }
  o->open = true;
  weir_sim_depart(sim, o);
  weir_sim_tell_orphans(sim);
  to.on_connected(to.self, id, weir_sv_from(peer), incoming);
  return WEIR_OK;
}

static weir_status give_end(weir_net_sim *sim, weir_sim_side *s,
                            weir_close_reason why, const char *text) {
  const weir_transport_handler to = s->owner->base.handler;
  weir_connection id = s->id;
  if (!s->connected && weir_sim_other(s)->connected)
    sim->counts[WEIR_NET_FAULT_HALF_OPEN]++;
  weir_sim_part(sim, s, false);
  to.on_closed(to.self, id, why, weir_sv_from(text));
  return WEIR_OK;
}

/* A frame has arrived: its effects on the link and its connection. */
static void arrive(weir_net_sim *sim, weir_sim_side *s,
                   const weir_net_parcel *parcel) {
  weir_sim_link *link = &sim->links.items[s->link];
  if (parcel->order < link->newest) sim->counts[WEIR_NET_FAULT_OVERTAKE]++;
  if (parcel->order > link->newest) link->newest = parcel->order;
  s->coming_bytes -= parcel->size;
  if (!parcel->marked) return;
  sim->counts[WEIR_NET_FAULT_LATE_RESET]++;
  end_both(sim, s);
}

static weir_status give_frame(weir_net_sim *sim, weir_sim_side *s,
                              weir_error *err) {
  const weir_transport_handler to = s->owner->base.handler;
  weir_connection id = s->id;
  weir_net_parcel *parcel = s->coming.head;
  if (parcel->size > s->owner->base.options.max_frame_bytes) {
    if (!is_cut(sim, weir_sim_other(s)))
      weir_sim_end(weir_sim_other(s), weir_sim_arrival(sim),
                   WEIR_CLOSED_REFUSED, "the frame is above the peer's limit");
    return give_end(sim, s, WEIR_CLOSED_REFUSED, "a frame is above the limit");
  }
  WEIR_TRY(weir_net_parcel_open(parcel, sim->env.alloc, &sim->random, err));
  weir_net_parcels_pop(&s->coming);
  arrive(sim, s, parcel);
  weir_sim_depart(sim, s);
  weir_net_parcel_let_go(parcel);
  to.on_frame(to.self, id, parcel->frame);
  weir_net_parcel_free(parcel);
  return WEIR_OK;
}

weir_status weir_sim_deliver(weir_net_sim *sim, weir_sim_side *s,
                             weir_error *err) {
  int64_t due = weir_sim_due(sim, s);
  assert(due != WEIR_SIM_NEVER);
  if (sim->now_ns < due) sim->now_ns = due;
  if (due == s->end_ns) return give_end(sim, s, s->end_why, s->end_text);
  if (!s->connected) return give_connected(sim, s);
  if (s->coming.head != NULL) return give_frame(sim, s, err);
  return give_end(sim, s, WEIR_CLOSED_BY_PEER, "");
}
