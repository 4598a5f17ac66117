/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/kv/keeper.h"

#include <assert.h>
#include <inttypes.h>

#include "runtime/base/size.h"
#include "runtime/dist/kv/barrier.h"

/* Marks and order; see keeper.h.
 *
 * The refused changes are bits beside the mark. A member has at most
 * WEIR_KV_WINDOW changes without an answer, so the bit of one that it may still
 * ask about has not been shifted out. */

weir_status weir_kv_keeper_create(const weir_allocator *alloc,
                                  const weir_kv_keeper_options *options,
                                  const weir_kv_keeper_calls *calls,
                                  weir_kv_keeper **out_server,
                                  weir_error *err) {
  size_t bytes;
  *out_server = NULL;
  if (options->members < 1 || options->members > WEIR_KV_MEMBERS ||
      options->life == 0)
    return weir_fail(err, WEIR_W7090, NULL,
                     "a server of keys with %" PRIu32
                     " members, 1 to %d are expected",
                     options->members, WEIR_KV_MEMBERS);
  if (!weir_size_mul(options->members, sizeof(weir_kv_member), &bytes) ||
      !weir_size_add(bytes, sizeof(weir_kv_keeper), &bytes))
    return weir_fail_memory(err, SIZE_MAX);
  weir_kv_keeper *s = weir_alloc_array(alloc, 1, bytes);
  if (s == NULL) return weir_fail_memory(err, bytes);
  s->alloc = alloc;
  s->options = *options;
  s->calls = *calls;
  for (uint32_t i = 0; i < options->members; i++)
    s->members[i].down_ns = INT64_MAX;
  *out_server = s;
  return WEIR_OK;
}

static void free_job(weir_kv_keeper *s, weir_kv_job *job) {
  if (job->prev != NULL)
    job->prev->next = job->next;
  else
    s->jobs = job->next;
  if (job->next != NULL) job->next->prev = job->prev;
  if (job->message.data != NULL)
    s->calls.drop(s->calls.self, job->message.data);
  if (job->reply.data != NULL) s->calls.drop(s->calls.self, job->reply.data);
  weir_free(s->alloc, job);
}

void weir_kv_keeper_release(weir_kv_keeper *s) {
  if (s == NULL) return;
  while (s->jobs != NULL) free_job(s, s->jobs);
  weir_kv_barrier_release(s);
  weir_free(s->alloc, s);
}

weir_kv_keeper_counts weir_kv_keeper_count(const weir_kv_keeper *s) {
  return s->counts;
}

void weir_kv_keeper_answer(weir_kv_keeper *s, uint32_t member,
                           weir_kv_message *m) {
  const weir_kv_member *to = &s->members[member];
  m->incarnation = to->incarnation;
  m->life = s->options.life;
  if (to->joined)
    s->calls.send(s->calls.self, member, m);
  else if (m->data != NULL)
    s->calls.drop(s->calls.self, m->data);
}

static void broken(weir_kv_keeper *s, uint32_t member, const weir_kv_message *m,
                   const char *why) {
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, WEIR_W7011, NULL,
            "worker:%" PRIu32 " sends %s %" PRIu64 " with mark %" PRIu64 ": %s",
            member, weir_kv_kind_name(m->kind), m->seq,
            s->members[member].accepted, why);
  if (m->data != NULL) s->calls.drop(s->calls.self, m->data);
  s->calls.give_up(s->calls.self, member, &err);
}

/* ---- Joining */

/* Nothing of |member| is at work: its mark is final, it may join. */
static void join(weir_kv_keeper *s, uint32_t member) {
  weir_kv_member *it = &s->members[member];
  if (it->joins == 0 || it->pending > 0 || !it->up) return;
  if (it->joins != it->incarnation) {
    weir_kv_barrier_forget(s, member);
    it->incarnation = it->joins;
    it->accepted = it->mark = it->refused = 0;
    it->tickets = it->passed = it->broken = 0;
  }
  assert(it->accepted == it->mark);
  it->joins = 0;
  it->joined = it->known = true;
  it->left = it->lost = false;
  weir_kv_message reply = {
      .kind = WEIR_KV_JOINED, .seq = it->mark, .mask = it->refused};
  weir_kv_keeper_answer(s, member, &reply);
}

static void on_join(weir_kv_keeper *s, uint32_t member,
                    const weir_kv_message *m) {
  weir_kv_member *it = &s->members[member];
  if (it->joined || m->incarnation == 0) {
    broken(s, member, m, "it has joined already, or is nobody");
    return;
  }
  it->joins = m->incarnation;
  join(s, member);
}

void weir_kv_keeper_up(weir_kv_keeper *s, uint32_t member) {
  weir_kv_member *it = &s->members[member];
  it->up = true;
  it->joined = false;
  it->joins = 0;
  it->link++;
  it->down_ns = INT64_MAX;
}

void weir_kv_keeper_down(weir_kv_keeper *s, uint32_t member, int64_t now_ns) {
  weir_kv_member *it = &s->members[member];
  it->up = it->joined = false;
  it->joins = 0;
  if (it->known) it->down_ns = now_ns;
}

static void on_leave(weir_kv_keeper *s, uint32_t member) {
  weir_kv_member *it = &s->members[member];
  it->known = false;
  it->left = true;
  weir_kv_barrier_break(s, member);
}

int64_t weir_kv_keeper_step(weir_kv_keeper *s, int64_t now_ns) {
  int64_t next = INT64_MAX;
  for (uint32_t i = 0; i < s->options.members; i++) {
    weir_kv_member *it = &s->members[i];
    if (it->down_ns == INT64_MAX || it->lost || !it->known) continue;
    if (now_ns - it->down_ns >= s->options.lost_after_ns) {
      it->lost = true;
      weir_kv_barrier_break(s, i);
    } else if (it->down_ns + s->options.lost_after_ns < next) {
      next = it->down_ns + s->options.lost_after_ns;
    }
  }
  return next;
}

/* ---- Work */

static bool is_change(weir_kv_kind kind) {
  return kind == WEIR_KV_DECLARE || kind == WEIR_KV_PUSH ||
         kind == WEIR_KV_PUSH_PULL;
}

static void give(weir_kv_keeper *s, uint32_t member, const weir_kv_message *m) {
  weir_kv_member *it = &s->members[member];
  size_t bytes;
  weir_kv_job *job = NULL;
  if (weir_size_add(sizeof *job, s->options.job_bytes, &bytes))
    job = weir_alloc_array(s->alloc, 1, bytes);
  if (job == NULL) { /* the link comes back, and brings it again */
    broken(s, member, m, "there is no memory for it");
    return;
  }
  job->member = member;
  job->link = it->link;
  job->message = *m;
  job->owner = job + 1;
  job->next = s->jobs;
  if (s->jobs != NULL) s->jobs->prev = job;
  s->jobs = job;
  it->pending++;
  if (is_change(m->kind)) it->accepted++;
  s->calls.work(s->calls.self, job);
}

static void on_change(weir_kv_keeper *s, uint32_t member,
                      const weir_kv_message *m) {
  const weir_kv_member *it = &s->members[member];
  if (m->seq == it->accepted + 1) {
    give(s, member, m);
  } else if (m->seq > it->accepted) {
    broken(s, member, m, "one before it is missing");
  } else { /* it has its answer, by DONE or by JOINED */
    s->counts.duplicates++;
    if (m->data != NULL) s->calls.drop(s->calls.self, m->data);
  }
}

void weir_kv_keeper_message(weir_kv_keeper *s, uint32_t member,
                            const weir_kv_message *m) {
  const weir_kv_member *it = &s->members[member];
  if (m->kind == WEIR_KV_JOIN)
    on_join(s, member, m);
  else if (!it->joined || m->incarnation != it->incarnation)
    broken(s, member, m, "it has not joined");
  else if (is_change(m->kind))
    on_change(s, member, m);
  else if (m->kind == WEIR_KV_PULL)
    give(s, member, m);
  else if (m->kind == WEIR_KV_ENTER)
    weir_kv_barrier_enter(s, member, m);
  else if (m->kind == WEIR_KV_LEAVE)
    on_leave(s, member);
  else
    broken(s, member, m, "members send no such thing");
}

static void mark(weir_kv_keeper *s, weir_kv_member *it,
                 const weir_kv_job *job) {
  bool refused = job->reply.status != WEIR_OK;
  assert(job->message.seq == it->mark + 1);
  it->mark++;
  it->refused = it->refused << 1 | refused;
  if (refused)
    s->counts.refused++;
  else
    s->counts.applied++;
}

void weir_kv_keeper_worked(weir_kv_keeper *s, weir_kv_job *job) {
  weir_kv_member *it = &s->members[job->member];
  uint32_t member = job->member;
  assert(it->pending > 0);
  it->pending--;
  if (is_change(job->message.kind))
    mark(s, it, job);
  else
    s->counts.pulled++;
  job->reply.kind = WEIR_KV_DONE;
  job->reply.seq = job->message.seq;
  job->reply.request = job->message.request;
  if (job->link == it->link && it->joined) {
    weir_kv_keeper_answer(s, member, &job->reply);
    job->reply.data = NULL;
  }
  free_job(s, job);
  join(s, member);
}
