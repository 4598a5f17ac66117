/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/dist/kv_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t below(kv_world *w, uint32_t n) {
  return weir_mix_below(&w->random, n);
}

/* ---- Frames */

/* Through the form of the wire, as they go. */
static void put(kv_way *way, const weir_kv_message *m) {
  weir_strbuf note;
  weir_kv_message *copy = calloc(1, sizeof *copy);
  weir_strbuf_init(&note, weir_allocator_system());
  weir_kv_encode(m, &note);
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_kv_decode(weir_strbuf_view(&note), "x", copy, &err), &err);
  weir_strbuf_release(&note);
  assert_true(way->count < KV_QUEUE);
  way->frames[(way->first + way->count++) % KV_QUEUE] = copy;
}

static weir_kv_message *take(kv_way *way) {
  weir_kv_message *m = way->frames[way->first];
  way->first = (way->first + 1) % KV_QUEUE;
  way->count--;
  return m;
}

static void empty(kv_way *way) {
  while (way->count > 0) free(take(way));
}

/* ---- Calls of the machines */

static void member_send(void *self, uint32_t server, const weir_kv_message *m,
                        weir_kv_op *op) {
  const kv_end *end = self;
  kv_world *w = end->world;
  kv_link *link = &w->links[end->index][server];
  (void)op;
  if (!link->up_here || link->cut) return;
  put(&link->out, m);
  if (w->repeat_frames && m->kind == WEIR_KV_PUSH && below(w, 8) == 0) {
    put(&link->out, m);
    w->repeats++;
  }
}

static void member_done(void *self, weir_kv_op *op) {
  kv_op *it = op->owner;
  (void)self;
  assert_false(it->done);
  it->done = true;
}

static void member_drop(void *self, void *data) {
  (void)self, (void)data;
}

static void member_give_up(void *self, uint32_t server, const weir_error *why) {
  const kv_end *end = self;
  (void)why;
  end->world->given_up++;
  end->world->links[end->index][server].cut = true;
}

static void server_send(void *self, uint32_t member, weir_kv_message *m) {
  const kv_end *end = self;
  kv_link *link = &end->world->links[member][end->index];
  if (link->up_there && !link->cut) put(&link->in, m);
}

static void server_work(void *self, weir_kv_job *job) {
  const kv_end *end = self;
  kv_world *w = end->world;
  assert_true(w->job_count[end->index] < KV_QUEUE);
  w->jobs[end->index][w->job_count[end->index]++] = job;
}

static void server_drop(void *self, void *data) {
  (void)self, (void)data;
}

static void server_give_up(void *self, uint32_t member, const weir_error *why) {
  const kv_end *end = self;
  (void)why;
  end->world->given_up++;
  end->world->links[member][end->index].cut = true;
}

/* ---- Work */

static void do_job(kv_world *w, uint32_t server) {
  weir_kv_job *job = w->jobs[server][0];
  const weir_kv_message *m = &job->message;
  int key = m->name[0] - 'a';
  memmove(w->jobs[server], w->jobs[server] + 1,
          --w->job_count[server] * sizeof(void *));
  job->reply.newer = true;
  if (m->kind == WEIR_KV_PUSH && w->refuse_odd && m->first % 2 == 1) {
    weir_error err = WEIR_ERROR_INIT;
    weir_status s = weir_fail(&err, WEIR_W7113, NULL, "it is odd");
    weir_kv_set_error(&job->reply, s, &err);
  } else if (m->kind != WEIR_KV_PULL) {
    uint64_t *last = &w->order[server][key][job->member];
    assert_true((uint64_t)m->first > *last); /* in order, and once */
    *last = (uint64_t)m->first;
    w->sums[server][key] += m->count;
    w->versions[server][key]++;
    w->applied++;
  }
  job->reply.version = w->versions[server][key];
  job->reply.count = w->sums[server][key];
  weir_kv_keeper_worked(w->keepers[server], job);
}

/* ---- Life */

static void make_server(kv_world *w, uint32_t i) {
  const weir_kv_keeper_options options = {.members = w->members,
                                          .life = weir_mix_next(&w->random) | 1,
                                          .lost_after_ns = 1000};
  const weir_kv_keeper_calls calls = {&w->server_ends[i], server_send,
                                      server_work, server_drop, server_give_up};
  w->server_ends[i] = (kv_end){w, i};
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_kv_keeper_create(&w->memory.base, &options, &calls,
                                  &w->keepers[i], &err),
            &err);
}

static void make_member(kv_world *w, uint32_t i) {
  const weir_kv_client_options options = {
      .servers = w->servers,
      .incarnation = weir_mix_next(&w->random) | 1,
      .window_bytes = 1000};
  const weir_kv_client_calls calls = {&w->member_ends[i], member_send,
                                      member_done, member_drop, member_give_up};
  w->member_ends[i] = (kv_end){w, i};
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_kv_client_create(&w->memory.base, &options, &calls,
                                  &w->clients[i], &err),
            &err);
}

void kv_open(kv_world *w, uint32_t servers, uint32_t members, uint64_t seed) {
  memset(w, 0, sizeof *w);
  weir_counted_allocator_init(&w->memory, weir_allocator_system());
  w->random = seed;
  w->servers = servers;
  w->members = members;
  for (uint32_t i = 0; i < servers; i++) make_server(w, i);
  for (uint32_t i = 0; i < members; i++) make_member(w, i);
}

static void end_member(kv_world *w, uint32_t i) {
  weir_error why = WEIR_ERROR_INIT;
  if (w->clients[i] == NULL) return;
  weir_fail(&why, WEIR_W7118, NULL, "closed");
  weir_kv_client_end(w->clients[i], &why);
  weir_kv_client_release(w->clients[i]);
  w->clients[i] = NULL;
}

void kv_close(kv_world *w) {
  for (uint32_t i = 0; i < w->members; i++) end_member(w, i);
  for (uint32_t i = 0; i < w->servers; i++)
    weir_kv_keeper_release(w->keepers[i]);
  for (uint32_t i = 0; i < w->members; i++)
    for (uint32_t k = 0; k < w->servers; k++) {
      empty(&w->links[i][k].out);
      empty(&w->links[i][k].in);
    }
  assert_int_equal(w->memory.live_bytes, 0);
}

void kv_cut(kv_world *w, uint32_t member, uint32_t server) {
  kv_link *link = &w->links[member][server];
  if (link->up_here || link->up_there) {
    link->cut = true;
    w->cuts++;
  }
}

static void hear_there(kv_world *w, uint32_t member, uint32_t server) {
  kv_link *link = &w->links[member][server];
  if (!link->up_there) return;
  link->up_there = false;
  weir_kv_keeper_down(w->keepers[server], member, w->now_ns);
}

void kv_kill_member(kv_world *w, uint32_t member) {
  if (w->clients[member] == NULL) return;
  for (uint32_t k = 0; k < w->servers; k++) {
    kv_link *link = &w->links[member][k];
    link->up_here = false;
    link->closed = true;
    empty(&link->out);
    empty(&link->in);
    hear_there(w, member, k);
    link->cut = false;
  }
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W7118, NULL, "killed");
  weir_kv_client_end(w->clients[member], &why); /* its ops; nothing leaves */
  weir_kv_client_release(w->clients[member]);
  w->clients[member] = NULL;
}

void kv_restart_member(kv_world *w, uint32_t member) {
  kv_kill_member(w, member);
  for (uint32_t k = 0; k < w->servers; k++) w->links[member][k].closed = false;
  make_member(w, member);
}

void kv_restart_server(kv_world *w, uint32_t server) {
  for (uint32_t i = 0; i < w->members; i++) {
    kv_link *link = &w->links[i][server];
    empty(&link->out);
    empty(&link->in);
    link->up_there = false;
    if (link->up_here) {
      link->up_here = false;
      weir_kv_client_down(w->clients[i], server);
    }
    link->cut = false;
  }
  w->job_count[server] = 0;
  weir_kv_keeper_release(w->keepers[server]);
  memset(w->sums[server], 0, sizeof w->sums[server]);
  memset(w->versions[server], 0, sizeof w->versions[server]);
  memset(w->order[server], 0, sizeof w->order[server]);
  make_server(w, server);
}

/* ---- Events */

/* Something of one link: it ends at one side, comes up, or moves a frame. */
static bool turn_link(kv_world *w, uint32_t i, uint32_t k) {
  kv_link *link = &w->links[i][k];
  if (link->cut) {
    empty(&link->out);
    empty(&link->in);
    bool here = below(w, 2) == 0 || !link->up_there;
    if (here && link->up_here) {
      link->up_here = false;
      weir_kv_client_down(w->clients[i], k);
    } else {
      hear_there(w, i, k);
    }
    link->cut = link->up_here || link->up_there;
    return true;
  }
  if (link->closed) return false;
  if (!link->up_here && !link->up_there) {
    link->up_there = true;
    weir_kv_keeper_up(w->keepers[k], i);
    link->up_here = true;
    weir_kv_client_up(w->clients[i], k);
    return true;
  }
  kv_way *way = below(w, 2) == 0 && link->out.count > 0 ? &link->out
                : link->in.count > 0                    ? &link->in
                                                        : &link->out;
  if (way->count == 0) return false;
  weir_kv_message *m = take(way);
  if (way == &link->out)
    weir_kv_keeper_message(w->keepers[k], i, m);
  else
    weir_kv_client_message(w->clients[i], k, m);
  free(m);
  return true;
}

bool kv_turn(kv_world *w) {
  uint32_t links = w->members * w->servers, all = links + w->servers;
  uint32_t at = below(w, all);
  for (uint32_t n = 0; n < all; n++, at = (at + 1) % all) {
    if (at >= links) {
      if (w->job_count[at - links] == 0) continue;
      do_job(w, at - links);
      return true;
    }
    if (turn_link(w, at / w->servers, at % w->servers)) return true;
  }
  return false;
}

void kv_settle(kv_world *w) {
  while (kv_turn(w)) {
  }
}

void kv_pass_time(kv_world *w, int64_t ns) {
  w->now_ns += ns;
  for (uint32_t i = 0; i < w->servers; i++)
    (void)weir_kv_keeper_step(w->keepers[i], w->now_ns);
}

/* ---- Ops */

static void init_op(uint32_t member, uint32_t server, weir_kv_kind kind,
                    kv_op *op) {
  memset(op, 0, sizeof *op);
  op->member = member;
  op->op.server = server;
  op->op.owner = op;
  op->op.err = (weir_error)WEIR_ERROR_INIT;
  op->op.message.kind = kind;
}

void kv_push(kv_world *w, uint32_t member, uint32_t server, char key,
             int32_t priority, uint64_t value, kv_op *op) {
  static int64_t numbers; /* by which the order is told */
  init_op(member, server, WEIR_KV_PUSH, op);
  op->op.priority = priority;
  op->op.bytes = 10;
  op->op.message.count = value;
  op->op.message.first = ++numbers;
  op->op.message.name[0] = key;
  weir_kv_client_submit(w->clients[member], &op->op);
}

void kv_pull(kv_world *w, uint32_t member, uint32_t server, char key,
             kv_op *op) {
  init_op(member, server, WEIR_KV_PULL, op);
  op->op.message.name[0] = key;
  weir_kv_client_submit(w->clients[member], &op->op);
}

void kv_enter(kv_world *w, uint32_t member, const char *name, uint32_t group,
              kv_op *op) {
  init_op(member, 0, WEIR_KV_ENTER, op);
  snprintf(op->op.message.name, sizeof op->op.message.name, "%s", name);
  op->op.message.set.bits[0] = group;
  weir_kv_client_submit(w->clients[member], &op->op);
}
