/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/kv/barrier.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/size.h"

/* Barriers count members.
 *
 * A round is a name with the set of members that it waits for and the set of
 * those who are here. A member's entry that comes again, after its link came
 * back, finds the member here already, or its ticket among those that passed or
 * broke, so it releases nobody early. A round that is over is freed: names that
 * are never used again leave nothing behind.
 *
 * A member that is lost or has left breaks the rounds that wait for it, for all
 * who are in them; its name goes with the error. */

static bool is_full(const weir_kv_barrier *b) {
  for (int i = 0; i < WEIR_KV_SET_WORDS; i++)
    if (b->wanted.bits[i] & ~b->here.bits[i]) return false;
  return true;
}

static void set_broken(weir_kv_message *reply, const char *name,
                       uint32_t culprit, bool left) {
  weir_error err = WEIR_ERROR_INIT;
  weir_status status = weir_fail(&err, WEIR_W7115, NULL,
                                 "barrier `%.64s`: worker:%" PRIu32 " %s", name,
                                 culprit, left ? "has left" : "is lost");
  weir_kv_set_error(reply, status, &err);
}

/* Ticket |ticket| of |member| has its answer, which is kept as a bit. */
static void settle(weir_kv_keeper *s, uint32_t member, uint64_t ticket,
                   const char *name, uint32_t culprit) {
  weir_kv_member *it = &s->members[member];
  uint64_t bit = UINT64_C(1) << (it->tickets - ticket);
  weir_kv_message reply = {.kind = WEIR_KV_PASSED, .ticket = ticket};
  if (culprit < s->options.members) {
    it->broken |= bit;
    it->culprit = culprit;
    set_broken(&reply, name, culprit, s->members[culprit].left);
  } else {
    it->passed |= bit;
  }
  weir_kv_keeper_answer(s, member, &reply);
}

static void end_round(weir_kv_keeper *s, weir_kv_barrier *b, uint32_t culprit) {
  weir_kv_barrier **at = &s->barriers;
  while (*at != b) at = &(*at)->next;
  *at = b->next;
  s->counts.barriers++;
  for (uint32_t i = 0; i < s->options.members; i++)
    if (weir_kv_set_has(&b->here, i))
      settle(s, i, b->tickets[i], b->name, culprit);
  weir_free(s->alloc, b);
}

static weir_kv_barrier *find(const weir_kv_keeper *s, const char *name) {
  weir_kv_barrier *b = s->barriers;
  while (b != NULL && strcmp(b->name, name) != 0) b = b->next;
  return b;
}

static weir_kv_barrier *begin_round(weir_kv_keeper *s,
                                    const weir_kv_message *m) {
  size_t bytes;
  if (!weir_size_mul(s->options.members, sizeof(uint64_t), &bytes) ||
      !weir_size_add(bytes, sizeof(weir_kv_barrier), &bytes))
    return NULL;
  weir_kv_barrier *b = weir_alloc_array(s->alloc, 1, bytes);
  if (b == NULL) return NULL;
  snprintf(b->name, sizeof b->name, "%s", m->name);
  b->wanted = m->set;
  b->next = s->barriers;
  s->barriers = b;
  return b;
}

static void refuse(weir_kv_keeper *s, uint32_t member, const weir_kv_message *m,
                   const char *why) {
  weir_error err = WEIR_ERROR_INIT;
  weir_kv_message reply = {.kind = WEIR_KV_PASSED, .ticket = m->ticket};
  weir_status status =
      weir_fail(&err, WEIR_W7115, NULL, "barrier `%.64s`: %s", m->name, why);
  weir_kv_set_error(&reply, status, &err);
  weir_kv_keeper_answer(s, member, &reply);
}

/* A ticket that has its answer gets it again. */
static bool answer_again(weir_kv_keeper *s, uint32_t member,
                         const weir_kv_message *m) {
  const weir_kv_member *it = &s->members[member];
  uint64_t bit = UINT64_C(1) << (it->tickets - m->ticket);
  weir_kv_message reply = {.kind = WEIR_KV_PASSED, .ticket = m->ticket};
  if (!((it->passed | it->broken) & bit)) return false;
  if (it->broken & bit)
    set_broken(&reply, m->name, it->culprit, s->members[it->culprit].left);
  weir_kv_keeper_answer(s, member, &reply);
  return true;
}

/* Counts the ticket; false: it is too old, or far ahead. */
static bool take_ticket(weir_kv_member *it, uint64_t ticket) {
  if (ticket > it->tickets) {
    uint64_t by = ticket - it->tickets;
    it->passed = by < WEIR_KV_WINDOW ? it->passed << by : 0;
    it->broken = by < WEIR_KV_WINDOW ? it->broken << by : 0;
    it->tickets = ticket;
  }
  return it->tickets - ticket < WEIR_KV_WINDOW;
}

/* The first of |wanted| that is gone; members: none. */
static uint32_t gone(const weir_kv_keeper *s, const weir_kv_set *wanted) {
  uint32_t i = 0;
  while (i < s->options.members &&
         !(weir_kv_set_has(wanted, i) &&
           (s->members[i].lost || s->members[i].left)))
    i++;
  return i;
}

static bool set_fits(const weir_kv_keeper *s, const weir_kv_set *set) {
  for (uint32_t i = s->options.members; i < WEIR_KV_MEMBERS; i++)
    if (weir_kv_set_has(set, i)) return false;
  return true;
}

static void come(weir_kv_keeper *s, uint32_t member, const weir_kv_message *m) {
  uint32_t culprit = gone(s, &m->set);
  weir_kv_barrier *b = find(s, m->name);
  if (b == NULL && culprit == s->options.members) {
    b = begin_round(s, m);
    if (b == NULL) {
      refuse(s, member, m, "its server has no memory for it");
      return;
    }
  }
  if (culprit < s->options.members)
    settle(s, member, m->ticket, m->name, culprit);
  else if (memcmp(&b->wanted, &m->set, sizeof m->set) != 0)
    refuse(s, member, m, "others wait in it with another group of members");
  else if (weir_kv_set_has(&b->here, member) && b->tickets[member] != m->ticket)
    refuse(s, member, m, "this member waits in it already");
  else {
    weir_kv_set_put(&b->here, member, true);
    b->tickets[member] = m->ticket;
    if (is_full(b)) end_round(s, b, s->options.members);
  }
}

void weir_kv_barrier_enter(weir_kv_keeper *s, uint32_t member,
                           const weir_kv_message *m) {
  if (!take_ticket(&s->members[member], m->ticket))
    refuse(s, member, m, "too many entries of this member are under way");
  else if (answer_again(s, member, m))
    return;
  else if (!weir_kv_set_has(&m->set, member) || !set_fits(s, &m->set))
    refuse(s, member, m, "this member, or one of the group, is none of it");
  else
    come(s, member, m);
}

static bool is_empty(const weir_kv_barrier *b) {
  for (int i = 0; i < WEIR_KV_SET_WORDS; i++)
    if (b->here.bits[i] != 0) return false;
  return true;
}

void weir_kv_barrier_forget(weir_kv_keeper *s, uint32_t member) {
  for (weir_kv_barrier *next, *b = s->barriers; b != NULL; b = next) {
    next = b->next;
    weir_kv_set_put(&b->here, member, false);
    if (is_empty(b)) end_round(s, b, s->options.members);
  }
}

void weir_kv_barrier_break(weir_kv_keeper *s, uint32_t member) {
  for (weir_kv_barrier *next, *b = s->barriers; b != NULL; b = next) {
    next = b->next;
    if (weir_kv_set_has(&b->wanted, member)) end_round(s, b, member);
  }
}

void weir_kv_barrier_release(weir_kv_keeper *s) {
  for (weir_kv_barrier *next; s->barriers != NULL; s->barriers = next) {
    next = s->barriers->next;
    weir_free(s->alloc, s->barriers);
  }
}
