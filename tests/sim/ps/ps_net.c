/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/mix.h"
#include "tests/sim/ps/ps_world.h"

/* The world's time, events and links. */

uint32_t ps_below(ps_world *w, uint32_t limit) {
  return weir_mix_below(&w->random, limit);
}

void ps_wrong(ps_world *w, const char *fmt, ...) {
  if (!w->result->ok) return;
  w->result->ok = false;
  int n = snprintf(w->result->why, sizeof w->result->why,
                   "at %.4f s: ", (double)w->now_ns / 1e9);
  va_list args;
  va_start(args, fmt);
  vsnprintf(w->result->why + n, sizeof w->result->why - (size_t)n, fmt, args);
  va_end(args);
}

void ps_say(ps_world *w, const char *fmt, ...) {
  if (!w->verbose) return;
  printf("%10.4f ", (double)w->now_ns / 1e9);
  va_list args;
  va_start(args, fmt);
  vprintf(fmt, args);
  va_end(args);
  printf("\n");
}

/* ---- Events: a heap by time and order */

static bool before(const ps_event *a, const ps_event *b) {
  return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(ps_event *a, ps_event *b) {
  ps_event t = *a;
  *a = *b;
  *b = t;
}

void ps_push(ps_world *w, ps_event event) {
  if (event.order == 0) event.order = ++w->orders;
  if (!weir_vec_push(weir_allocator_system(), &w->heap, event)) exit(5);
  for (size_t i = w->heap.count - 1; i > 0;) {
    size_t up = (i - 1) / 2;
    if (!before(&w->heap.items[i], &w->heap.items[up])) break;
    swap(&w->heap.items[i], &w->heap.items[up]);
    i = up;
  }
}

bool ps_pop(ps_world *w, ps_event *event) {
  if (w->heap.count == 0) return false;
  *event = w->heap.items[0];
  w->heap.items[0] = w->heap.items[--w->heap.count];
  for (size_t i = 0;;) {
    size_t best = i;
    for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < w->heap.count; k++)
      if (before(&w->heap.items[k], &w->heap.items[best])) best = k;
    if (best == i) return true;
    swap(&w->heap.items[i], &w->heap.items[best]);
    i = best;
  }
}

void ps_event_free(ps_world *w, ps_event *event) {
  if (event->message != NULL && event->message->data != NULL) {
    free(event->message->data);
    w->data_live--;
  }
  free(event->message);
  weir_ps_ledger_release(event->ledger);
  event->message = NULL;
  event->ledger = NULL;
}

ps_event *ps_later(ps_world *w, uint32_t to, ps_event_kind kind,
                   uint64_t max_us) {
  /* Pushed by the caller, who adds to it. */
  static _Thread_local ps_event event;
  event = (ps_event){
      .at_ns = w->now_ns + 1000 + 1000 * (int64_t)ps_below(w, (uint32_t)max_us),
      .kind = kind,
      .to = to,
      .birth = w->processes[to].birth};
  return &event;
}

/* ---- Links */

ps_link *ps_link_of(ps_world *w, uint32_t a, uint32_t b) {
  return a < b ? &w->links[a][b] : &w->links[b][a];
}

static bool linked(uint32_t a, uint32_t b) {
  bool worker_a = a >= PS_FIRST_WORKER && a < PS_FIRST_CHIEF;
  bool worker_b = b >= PS_FIRST_WORKER && b < PS_FIRST_CHIEF;
  return a != b && !(worker_a && worker_b) &&
         !(a >= PS_FIRST_CHIEF && b >= PS_FIRST_CHIEF);
}

static int64_t some_ms(ps_world *w, uint32_t most) {
  return 1000 * (int64_t)(1 + ps_below(w, most * 1000));
}

static void connect(ps_world *w, uint32_t a, uint32_t b) {
  ps_link *l = ps_link_of(w, a, b);
  *l = (ps_link){.number = ++w->link_numbers};
  for (uint32_t side = 0; side < 2; side++) {
    ps_event up = {.at_ns = w->now_ns + some_ms(w, 20),
                   .kind = PS_UP,
                   .to = side == 0 ? a : b,
                   .from = side == 0 ? b : a,
                   .link = l->number};
    up.birth = w->processes[up.to].birth;
    l->last_ns[side] = up.at_ns; /* nothing arrives before */
    ps_push(w, up);
  }
}

void ps_link_tick(ps_world *w) {
  for (uint32_t a = 0; a < PS_PROCESSES; a++)
    for (uint32_t b = a + 1; b < PS_PROCESSES; b++) {
      ps_link *l = &w->links[a][b];
      const ps_process *pa = &w->processes[a], *pb = &w->processes[b];
      if (!linked(a, b)) continue;
      if (l->number != 0 && l->broken && !l->up[0] && !l->up[1]) l->number = 0;
      if (l->number == 0 && w->now_ns >= l->again_ns && pa->alive &&
          pb->alive && !pa->paused && !pb->paused)
        connect(w, a, b);
    }
}

void ps_link_break(ps_world *w, uint32_t a, uint32_t b, bool one_way) {
  ps_link *l = ps_link_of(w, a, b);
  if (l->number == 0 || l->broken) return;
  l->broken = true;
  l->again_ns = w->now_ns + some_ms(w, w->restless ? 50 : 2000);
  uint32_t loud = one_way ? ps_below(w, 2) : 2;
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t to = side == 0 ? (a < b ? a : b) : (a < b ? b : a);
    uint32_t from = to == a ? b : a;
    /* Messages to |side| still arrive where only the other way is silent. */
    l->silent[side] = side != loud;
    int64_t at = w->now_ns + some_ms(w, one_way       ? 3000
                                        : w->restless ? 20
                                                      : 300);
    ps_event lost = {.at_ns = at,
                     .kind = PS_LOST,
                     .to = to,
                     .from = from,
                     .birth = w->processes[to].birth,
                     .link = l->number};
    if (at < l->last_ns[side] && side == loud)
      lost.at_ns = l->last_ns[side] + 1;
    ps_push(w, lost);
  }
}

void ps_link_dead(ps_world *w, uint32_t process) {
  for (uint32_t b = 0; b < PS_PROCESSES; b++) {
    if (!linked(process, b)) continue;
    ps_link *l = ps_link_of(w, process, b);
    if (l->number == 0) continue;
    uint32_t mine = process < b ? 0 : 1;
    if (!l->broken) ps_link_break(w, process, b, ps_below(w, 3) == 0);
    l->up[mine] = false;
  }
}

static uint32_t index_of(weir_ps_task task) {
  if (task.role == WEIR_PS_SERVER) return task.index;
  if (task.role == WEIR_PS_WORKER) return PS_FIRST_WORKER + task.index;
  return PS_FIRST_CHIEF + task.index;
}

static void copy_pointers(ps_world *w, ps_event *e, const weir_ps_message *m) {
  weir_error err = WEIR_ERROR_INIT;
  if (m->op != NULL) {
    e->op = *m->op;
    e->message->op = NULL; /* set at delivery, the event moves */
  }
  if (m->ledger == NULL) return;
  if (weir_ps_ledger_create(weir_allocator_system(), &m->ledger->config, 0,
                            &e->ledger, &err) != WEIR_OK ||
      weir_ps_ledger_copy(e->ledger, m->ledger, &err) != WEIR_OK)
    ps_wrong(w, "a ledger cannot be copied: %s", err.message);
}

void ps_net_send(ps_world *w, uint32_t from, weir_ps_task to,
                 const weir_ps_message *m) {
  uint32_t dst = index_of(to);
  uint32_t side = dst < from ? 0 : 1; /* the receiver's */
  if (dst >= PS_PROCESSES || !linked(from, dst)) return;
  ps_link *l = ps_link_of(w, from, dst);
  if (l->number == 0 || !l->up[1 - side] || (l->broken && l->silent[side]))
    return;
  int64_t at = w->now_ns + 20000 + 1000 * (int64_t)ps_below(w, w->delay_us);
  if (at <= l->last_ns[side]) at = l->last_ns[side] + 1;
  l->last_ns[side] = at;
  ps_event e = {.at_ns = at,
                .kind = PS_MESSAGE,
                .to = dst,
                .from = from,
                .birth = w->processes[dst].birth,
                .link = l->number};
  e.message = malloc(sizeof *e.message);
  *e.message = *m;
  e.message->data = NULL;
  copy_pointers(w, &e, m);
  const ps_process *p = &w->processes[from];
  if (ps_has_values(m)) e.value = p->shard.value;
  if (m->kind == WEIR_PS_NORM) e.value = p->shard.share;
  if (m->kind == WEIR_PS_PUSH) {
    ps_data *data = malloc(sizeof *data);
    *data = (ps_data){p->grads[m->run % PS_RUNS], w};
    e.message->data = data;
    w->data_live++;
    if (!p->have[m->run % PS_RUNS])
      ps_wrong(w, "run %llu is sent after it was forgotten",
               (unsigned long long)m->run);
  }
  ps_push(w, e);
}

bool ps_net_arrives(ps_world *w, const ps_event *event) {
  if (event->kind != PS_MESSAGE && event->kind != PS_UP &&
      event->kind != PS_LOST)
    return true;
  ps_link *l = ps_link_of(w, event->to, event->from);
  uint32_t side = event->to < event->from ? 0 : 1;
  if (l->number != event->link) return false;
  if (event->kind == PS_UP) {
    l->up[side] = !l->broken;
    return !l->broken;
  }
  if (!l->up[side]) return false;
  if (event->kind == PS_LOST) l->up[side] = false;
  return true;
}
