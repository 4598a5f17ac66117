/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults of the simulator that a test causes. */
#include "runtime/net/sim_faults.h"

#include "runtime/base/table.h"
#include "runtime/net/sim_lanes.h"

static const char *const kNames[] = {
    [WEIR_NET_FAULT_LOSS] = "loss",
    [WEIR_NET_FAULT_LATE_RESET] = "late_reset",
    [WEIR_NET_FAULT_STALL] = "stall",
    [WEIR_NET_FAULT_OVERTAKE] = "overtake",
    [WEIR_NET_FAULT_UNREACHABLE] = "unreachable",
    [WEIR_NET_FAULT_HALF_OPEN] = "half_open",
    [WEIR_NET_FAULT_CUT] = "cut",
    [WEIR_NET_FAULT_ONE_WAY] = "one_way",
    [WEIR_NET_FAULT_HELD] = "held",
    [WEIR_NET_FAULT_GIVE_UP] = "give_up",
    [WEIR_NET_FAULT_SLOW] = "slow",
    [WEIR_NET_FAULT_QUEUE_FULL] = "queue_full",
    [WEIR_NET_FAULT_PAUSE] = "pause",
    [WEIR_NET_FAULT_KILL] = "kill",
    [WEIR_NET_FAULT_SILENT_KILL] = "silent_kill",
};
WEIR_TABLE_OF(kNames, WEIR_NET_FAULT_COUNT);

uint64_t weir_net_sim_count(const weir_net_sim *sim, weir_net_fault fault) {
  return sim->counts[fault];
}

const char *weir_net_fault_name(weir_net_fault fault) {
  return kNames[fault];
}

/* The links |from| -> |to| and back; the second is the first without |both|. */
static weir_status links(weir_net_sim *sim, uint32_t from, uint32_t to,
                         bool both, size_t out_links[2], weir_error *err) {
  if (!weir_sim_link_of(sim, from, to, &out_links[0]))
    return weir_fail_memory(err, sizeof(weir_sim_link));
  out_links[1] = out_links[0];
  if (both && !weir_sim_link_of(sim, to, from, &out_links[1]))
    return weir_fail_memory(err, sizeof(weir_sim_link));
  return WEIR_OK;
}

/* For each side at the end of a lane over |link|. */
static void each_lane(weir_net_sim *sim, size_t link,
                      void (*fn)(weir_net_sim *sim, weir_sim_side *s)) {
  for (weir_sim_transport *t = sim->transports; t != NULL; t = t->next)
    for (size_t i = 0; i < t->sides.count; i++)
      if (t->sides.items[i]->link == link) fn(sim, t->sides.items[i]);
}

/* Whether keepalives fail before the cut is healed: the sender's side cannot
 * know that they arrive, the receiver's that they were sent. */
static void give_up(weir_net_sim *sim, weir_sim_side *s) {
  weir_sim_side *sides[2] = {s, weir_sim_other(s)};
  for (int i = 0; i < 2; i++) {
    if (sides[i]->owner == NULL || !sides[i]->connected ||
        !weir_sim_chance(sim, sim->options.give_up_ppm))
      continue;
    sim->counts[WEIR_NET_FAULT_GIVE_UP]++;
    weir_sim_end(sides[i],
                 sim->now_ns + weir_sim_within(sim, sim->options.notice_ns),
                 WEIR_CLOSED_RESET, "the peer does not answer");
  }
}

weir_status weir_net_sim_cut(weir_net_sim *sim, uint32_t from, uint32_t to,
                             bool both, weir_error *err) {
  size_t at[2];
  WEIR_TRY(links(sim, from, to, both, at, err));
  bool new = !sim->links.items[at[0]].cut || !sim->links.items[at[1]].cut;
  sim->links.items[at[0]].cut = sim->links.items[at[1]].cut = true;
  if (!new) return WEIR_OK;
  sim->counts[both ? WEIR_NET_FAULT_CUT : WEIR_NET_FAULT_ONE_WAY]++;
  each_lane(sim, at[0], give_up);
  return WEIR_OK;
}

static void count_held(weir_net_sim *sim, weir_sim_side *s) {
  for (const weir_net_parcel *p = s->coming.head; p != NULL; p = p->next)
    sim->counts[WEIR_NET_FAULT_HELD] += p->due_ns < sim->now_ns;
}

weir_status weir_net_sim_heal(weir_net_sim *sim, uint32_t from, uint32_t to,
                              bool both, weir_error *err) {
  size_t at[2];
  WEIR_TRY(links(sim, from, to, both, at, err));
  for (int i = 0; i < 2; i++) {
    if (!sim->links.items[at[i]].cut) continue;
    sim->links.items[at[i]].cut = false;
    each_lane(sim, at[i], count_held);
  }
  weir_sim_tell_orphans(sim);
  return WEIR_OK;
}

weir_status weir_net_sim_slow(weir_net_sim *sim, uint32_t from, uint32_t to,
                              uint64_t bytes_per_second, weir_error *err) {
  size_t at[2];
  WEIR_TRY(links(sim, from, to, false, at, err));
  sim->links.items[at[0]].bytes_per_second = bytes_per_second;
  return WEIR_OK;
}

weir_status weir_net_sim_pause(weir_net_sim *sim, uint32_t process, bool paused,
                               weir_error *err) {
  weir_sim_process *p = weir_sim_process_of(sim, process);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  sim->counts[WEIR_NET_FAULT_PAUSE] += paused && !p->paused;
  p->paused = paused;
  if (paused) return WEIR_OK;
  for (weir_sim_transport *t = sim->transports; t != NULL; t = t->next)
    for (size_t i = 0; i < t->sides.count; i++)
      weir_sim_depart(sim, t->sides.items[i]);
  return WEIR_OK;
}

weir_status weir_net_sim_kill(weir_net_sim *sim, uint32_t process, bool silent,
                              weir_error *err) {
  weir_sim_process *p = weir_sim_process_of(sim, process);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  sim->counts[silent ? WEIR_NET_FAULT_SILENT_KILL : WEIR_NET_FAULT_KILL]++;
  p->gone = silent;
  p->paused = false;
  for (weir_sim_transport *t = sim->transports; t != NULL; t = t->next)
    if (t->process == process) weir_sim_stop(t, &t->grave);
  return WEIR_OK;
}
