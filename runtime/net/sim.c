/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated network: its transports, its clock, its steps. */
#include "runtime/net/sim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "runtime/net/sim_lanes.h"

/* ---- Addresses: sim:PROCESS:PORT */

static bool number(const char **at, const char *end, uint32_t *out) {
  const char *first = *at;
  uint64_t value = 0;
  while (*at < end && **at >= '0' && **at <= '9' && value < UINT32_MAX)
    value = value * 10 + (uint64_t)(*(*at)++ - '0');
  *out = (uint32_t)value;
  return *at > first && value < UINT32_MAX;
}

static weir_status parse(weir_sv address, uint32_t *out_process,
                         uint32_t *out_port, weir_error *err) {
  const char *at = address.data, *end = address.data + address.size;
  bool ok = weir_sv_starts_with(address, "sim:");
  if (ok) at += 4;
  ok = ok && number(&at, end, out_process) && at < end && *at++ == ':';
  ok = ok && number(&at, end, out_port) && at == end;
  if (ok) return WEIR_OK;
  return weir_fail(err, WEIR_W7002, NULL,
                   "%.*s: not of the form sim:PROCESS:PORT", WEIR_SV(address));
}

static void print_address(char out[WEIR_NET_ADDRESS_BYTES], uint32_t process,
                          uint32_t port) {
  snprintf(out, WEIR_NET_ADDRESS_BYTES, "sim:%" PRIu32 ":%" PRIu32, process,
           port);
}

static weir_sim_transport *listens(const weir_net_sim *sim, uint32_t process,
                                   uint32_t port) {
  for (weir_sim_transport *t = sim->transports; t != NULL; t = t->next)
    for (size_t i = 0; t->process == process && i < t->ports.count; i++)
      if (t->ports.items[i] == port && !t->dead) return t;
  return NULL;
}

static weir_status sim_listen(weir_transport *base, weir_sv address,
                              char out_bound[WEIR_NET_ADDRESS_BYTES],
                              weir_error *err) {
  weir_sim_transport *t = (weir_sim_transport *)base;
  uint32_t process = t->process, port = 0;
  out_bound[0] = '\0';
  if (!weir_sv_is(address, "sim:"))
    WEIR_TRY(parse(address, &process, &port, err));
  if (process != t->process)
    return weir_fail(err, WEIR_W7002, NULL,
                     "%.*s: belongs to another process, this is %" PRIu32,
                     WEIR_SV(address), t->process);
  if (port != 0 && listens(t->sim, process, port) != NULL)
    return weir_fail(err, WEIR_W7002, NULL, "%.*s: taken", WEIR_SV(address));
  weir_sim_process *mine = &t->sim->processes.items[process];
  while (port == 0 || listens(t->sim, process, port) != NULL)
    port = ++mine->ports;
  if (!weir_vec_push(base->env->alloc, &t->ports, port))
    return weir_fail_memory(err, sizeof port);
  print_address(out_bound, process, port);
  return WEIR_OK;
}

/* ---- Connect, send, close */

static weir_sim_side *find(const weir_sim_transport *t, weir_connection c) {
  for (size_t i = 0; i < t->sides.count; i++)
    if (t->sides.items[i]->id == c) return t->sides.items[i];
  return NULL;
}

static void attach(weir_sim_side *s, weir_sim_transport *t) {
  s->owner = t;
  s->id = ++t->last;
  t->sides.items[t->sides.count++] = s;
}

/* Room for all that a connection to |peer|, NULL: none, takes. */
static bool reserve(weir_sim_transport *t, weir_sim_transport *peer,
                    weir_sim_pair *both, uint32_t process) {
  const weir_allocator *alloc = t->base.env->alloc;
  weir_sim_side *mine = &both->sides[0], *theirs = &both->sides[1];
  return weir_vec_reserve(alloc, &t->sides, 2) &&
         (peer == NULL || weir_vec_reserve(alloc, &peer->sides, 2)) &&
         weir_sim_process_of(t->sim, process) != NULL &&
         weir_sim_link_of(t->sim, process, t->process, &mine->link) &&
         weir_sim_link_of(t->sim, t->process, process, &theirs->link);
}

static void begin(weir_sim_side *s, weir_sim_pair *both, uint32_t process,
                  weir_sim_transport *sender) {
  s->both = both;
  s->process = process;
  s->sender = sender;
  s->connect_ns = s->close_ns = s->end_ns = WEIR_SIM_NEVER;
}

static void start(weir_sim_transport *t, weir_sim_transport *peer,
                  weir_sim_pair *both) {
  weir_net_sim *sim = t->sim;
  weir_sim_side *mine = &both->sides[0], *theirs = &both->sides[1];
  attach(mine, t);
  mine->end_ns = sim->now_ns + t->base.options.connect_ns;
  mine->end_why = WEIR_CLOSED_UNREACHABLE;
  mine->end_text = "no answer in time";
  if (peer != NULL && peer->base.options.cls != t->base.options.cls) {
    weir_sim_end(mine, weir_sim_arrival(sim), WEIR_CLOSED_REFUSED,
                 "it takes frames of the other class");
  } else if (peer != NULL) {
    attach(theirs, peer);
    theirs->incoming = true;
    theirs->connect_ns = weir_sim_arrival(sim);
    print_address(theirs->peer, t->process,
                  t->ports.count > 0 ? t->ports.items[0] : 0);
  }
  weir_sim_tell_orphans(sim); /* nobody is there: it is refused */
}

static weir_status sim_connect(weir_transport *base, weir_sv address,
                               weir_connection *out_connection,
                               weir_error *err) {
  weir_sim_transport *t = (weir_sim_transport *)base;
  weir_net_sim *sim = t->sim;
  uint32_t process, port;
  *out_connection = 0;
  WEIR_TRY(parse(address, &process, &port, err));
  if (t->dead) return weir_fail(err, WEIR_W7001, NULL, "this process is gone");
  if (process >= WEIR_SIM_PROCESSES)
    return weir_fail(err, WEIR_W7002, NULL, "%.*s: at most %d processes",
                     WEIR_SV(address), WEIR_SIM_PROCESSES);
  weir_sim_transport *peer = listens(sim, process, port);
  weir_sim_pair *both = weir_alloc_array(sim->env.alloc, 1, sizeof *both);
  if (both == NULL || !reserve(t, peer, both, process)) {
    weir_free(sim->env.alloc, both);
    return weir_fail_memory(err, sizeof *both);
  }
  if (weir_sim_chance(sim, sim->options.unreachable_ppm)) {
    sim->counts[WEIR_NET_FAULT_UNREACHABLE]++;
    peer = NULL;
  }
  begin(&both->sides[0], both, t->process, peer);
  begin(&both->sides[1], both, process, t);
  print_address(both->sides[0].peer, process, port);
  *out_connection = t->last + 1;
  start(t, peer, both);
  return WEIR_OK;
}

static weir_status sim_send(weir_transport *base, weir_connection c,
                            const weir_net_piece *pieces, size_t count,
                            weir_error *err) {
  weir_sim_transport *t = (weir_sim_transport *)base;
  weir_sim_side *mine = find(t, c);
  weir_net_parcel *parcel = NULL;
  if (mine == NULL)
    return weir_fail(err, WEIR_W7001, NULL, "connection %" PRIu64 " has ended",
                     c);
  WEIR_TRY(
      weir_net_parcel_create(base->env->alloc, pieces, count, &parcel, err));
  weir_sim_side *lane = weir_sim_other(mine);
  if (parcel->size > base->options.max_queue_bytes - lane->queued_bytes) {
    size_t size = parcel->size;
    t->sim->counts[WEIR_NET_FAULT_QUEUE_FULL]++;
    weir_net_parcel_free(parcel);
    return weir_fail(err, WEIR_W7003, NULL,
                     "%zu bytes wait for %s: no room for %zu more",
                     lane->queued_bytes, mine->peer, size);
  }
  if (lane->lost || (lane->owner == NULL && mine->connected)) {
    weir_net_parcel_free_all(parcel); /* nobody will see it */
    return WEIR_OK;
  }
  lane->queued_bytes += parcel->size;
  weir_net_parcels_push(&lane->queued, parcel);
  weir_sim_depart(t->sim, lane);
  return WEIR_OK;
}

static void sim_close(weir_transport *base, weir_connection c) {
  weir_sim_transport *t = (weir_sim_transport *)base;
  weir_sim_side *s = find(t, c);
  if (s != NULL) weir_sim_part(t->sim, s, true);
}

/* ---- Poll */

/* The side with the next event, of |only| unless NULL. */
static weir_sim_side *next_side(const weir_net_sim *sim,
                                const weir_sim_transport *only,
                                int64_t *out_due) {
  weir_sim_side *best = NULL;
  *out_due = WEIR_SIM_NEVER;
  for (weir_sim_transport *t = sim->transports; t != NULL; t = t->next) {
    if (only != NULL && only != t) continue;
    for (size_t i = 0; i < t->sides.count; i++) {
      int64_t due = weir_sim_due(sim, t->sides.items[i]);
      if (due >= *out_due) continue;
      *out_due = due;
      best = t->sides.items[i];
    }
  }
  return best;
}

/* Waits for events of this transport alone: those of others are late then. */
static weir_status sim_poll(weir_transport *base, int64_t deadline_ns,
                            weir_error *err) {
  weir_sim_transport *t = (weir_sim_transport *)base;
  weir_net_sim *sim = t->sim;
  int64_t due;
  weir_sim_side *s = next_side(sim, t, &due);
  bool waits = due > sim->now_ns && !t->woken && deadline_ns > sim->now_ns;
  t->woken = false;
  if (waits) {
    int64_t until = due < deadline_ns ? due : deadline_ns;
    if (until != INT64_MAX) sim->now_ns = until;
  }
  const int64_t now = sim->now_ns;
  while (s != NULL && due <= now) {
    WEIR_TRY(weir_sim_deliver(sim, s, err));
    s = next_side(sim, t, &due);
  }
  return WEIR_OK;
}

static void sim_wake(weir_transport *base) {
  ((weir_sim_transport *)base)->woken = true;
}

int64_t weir_net_sim_next(const weir_net_sim *sim) {
  int64_t due;
  next_side(sim, NULL, &due);
  return due;
}

weir_status weir_net_sim_step(weir_net_sim *sim, int64_t limit_ns,
                              int64_t *out_process, weir_error *err) {
  int64_t due;
  weir_sim_side *s = next_side(sim, NULL, &due);
  *out_process = -1;
  if (s == NULL || due > limit_ns) {
    if (limit_ns != INT64_MAX && limit_ns > sim->now_ns) sim->now_ns = limit_ns;
    return WEIR_OK;
  }
  *out_process = s->process;
  return weir_sim_deliver(sim, s, err);
}

/* ---- The whole */

static void sim_release(weir_transport *base) {
  weir_sim_transport *t = (weir_sim_transport *)base;
  weir_net_sim *sim = t->sim;
  weir_sim_stop(t, &t->grave);
  weir_net_parcel_free_all(t->grave.head);
  weir_sim_transport **at = &sim->transports;
  while (*at != t) at = &(*at)->next;
  *at = t->next;
  weir_vec_free(sim->env.alloc, &t->sides);
  weir_vec_free(sim->env.alloc, &t->ports);
  weir_free(sim->env.alloc, t);
}

static const weir_transport_vtable kSim = {
    .release = sim_release,
    .connect = sim_connect,
    .listen = sim_listen,
    .send = sim_send,
    .close = sim_close,
    .poll = sim_poll,
    .wake = sim_wake,
};

static int64_t now_ns(void *self) {
  return ((const weir_net_sim *)self)->now_ns;
}

weir_status weir_net_sim_create(const weir_env *env, uint64_t seed,
                                const weir_net_sim_options *options,
                                weir_net_sim **out_sim, weir_error *err) {
  *out_sim = NULL;
  weir_net_sim *sim = weir_alloc_array(env->alloc, 1, sizeof *sim);
  if (sim == NULL) return weir_fail_memory(err, sizeof *sim);
  sim->clock = (weir_clock){sim, now_ns};
  sim->env = *env;
  sim->env.clock = &sim->clock;
  sim->now_ns = 1000000000;
  sim->random = seed;
  sim->options = *options;
  weir_net_sim_options *o = &sim->options;
  if (o->delay_min_ns == 0 && o->delay_max_ns == 0)
    o->delay_min_ns = 100000, o->delay_max_ns = 1000000;
  if (o->window_bytes == 0) o->window_bytes = (size_t)1 << 20;
  if (o->stall_ns == 0) o->stall_ns = 100000000;
  if (o->notice_ns == 0) o->notice_ns = 200000000;
  assert(o->delay_min_ns <= o->delay_max_ns);
  *out_sim = sim;
  return WEIR_OK;
}

void weir_net_sim_release(weir_net_sim *sim) {
  if (sim == NULL) return;
  assert(sim->transports == NULL);
  weir_vec_free(sim->env.alloc, &sim->processes);
  weir_vec_free(sim->env.alloc, &sim->links);
  weir_free(sim->env.alloc, sim);
}

const weir_env *weir_net_sim_env(const weir_net_sim *sim) {
  return &sim->env;
}

weir_status weir_net_sim_transport(weir_net_sim *sim, uint32_t process,
                                   const weir_transport_handler *handler,
                                   const weir_transport_options *options,
                                   weir_transport **out_transport,
                                   weir_error *err) {
  *out_transport = NULL;
  assert(process < WEIR_SIM_PROCESSES);
  weir_sim_process *mine = weir_sim_process_of(sim, process);
  weir_sim_transport *t = weir_alloc_array(sim->env.alloc, 1, sizeof *t);
  if (mine == NULL || t == NULL) {
    weir_free(sim->env.alloc, t);
    return weir_fail_memory(err, sizeof *t);
  }
  weir_transport_init(&t->base, &kSim, &sim->env, handler, options);
  t->sim = sim;
  t->process = process;
  t->next = sim->transports;
  sim->transports = t;
  mine->gone = false;
  weir_sim_tell_orphans(sim);
  *out_transport = &t->base;
  return WEIR_OK;
}
