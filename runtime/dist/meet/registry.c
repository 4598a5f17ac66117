/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/meet/registry.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/dist/meet/meet.h"

/* Guests stand in the order in which they came, in one list with a bound: the
 * job's numbers, and WEIR_MEET_WAITING that are too many.
 *
 * Invariant: two guests never have the same rank of a role. A rank is given in
 * two ways: to who names it, and, when the ranks held and the guests waiting
 * make up the whole role, to those that wait. The second rule alone would let a
 * scheduler that was started again deal a rank whose holder has not knocked
 * yet; with the count it cannot, for that holder is one of the count. */

typedef struct guest {
  weir_registry_guest who;
  weir_ps_role role;
  uint32_t rank;    /* WEIR_REGISTRY_NONE: it waits */
  int64_t since_ns; /* INT64_MAX: not too many; else since when it is */
} guest;

struct weir_registry {
  const weir_allocator *alloc;
  uint32_t counts[WEIR_PS_WORKER + 1];
  int64_t patience_ns;
  weir_registry_calls calls;
  guest *guests;
  uint32_t count, capacity;
};

static const char *job_of(weir_ps_role role) {
  return role == WEIR_PS_SERVER ? "server" : "worker";
}

weir_status weir_registry_create(const weir_allocator *alloc, uint32_t servers,
                                 uint32_t workers, int64_t patience_ns,
                                 const weir_registry_calls *calls,
                                 weir_registry **out, weir_error *err) {
  *out = NULL;
  if (servers == 0 || servers > WEIR_PS_SERVERS || workers == 0 ||
      workers > WEIR_PS_WORKERS)
    return weir_fail(err, WEIR_W7082, NULL,
                     "a job has 1 to %d servers and 1 to %d workers, not "
                     "%" PRIu32 " and %" PRIu32,
                     WEIR_PS_SERVERS, WEIR_PS_WORKERS, servers, workers);
  weir_registry *r = weir_alloc_array(alloc, 1, sizeof *r);
  if (r == NULL) return weir_fail_memory(err, sizeof *r);
  r->alloc = alloc;
  r->counts[WEIR_PS_SERVER] = servers;
  r->counts[WEIR_PS_WORKER] = workers;
  r->patience_ns = patience_ns;
  r->calls = *calls;
  r->capacity = servers + workers + WEIR_MEET_WAITING;
  r->guests = weir_alloc_array(alloc, r->capacity, sizeof *r->guests);
  if (r->guests == NULL) {
    weir_free(alloc, r);
    return weir_fail_memory(err, sizeof *r->guests);
  }
  *out = r;
  return WEIR_OK;
}

void weir_registry_release(weir_registry *r) {
  if (r == NULL) return;
  weir_free(r->alloc, r->guests);
  weir_free(r->alloc, r);
}

/* ---- The list */

static guest *find(const weir_registry *r, const void *key) {
  for (uint32_t i = 0; i < r->count; i++)
    if (r->guests[i].who.key == key) return &r->guests[i];
  return NULL;
}

/* Who has |rank|; NULL: it is free. */
static guest *holder_of(const weir_registry *r, weir_ps_role role,
                        uint32_t rank) {
  for (uint32_t i = 0; i < r->count; i++)
    if (r->guests[i].role == role && r->guests[i].rank == rank)
      return &r->guests[i];
  return NULL;
}

static void take_out(weir_registry *r, guest *g) {
  size_t after = (size_t)(&r->guests[r->count] - g) - 1;
  memmove(g, g + 1, after * sizeof *g);
  r->count--;
}

uint32_t weir_registry_here(const weir_registry *r, weir_ps_role role) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->count; i++) n += r->guests[i].role == role;
  return n;
}

/* ---- Words */

static void say(const weir_registry *r, const char *what, const guest *g) {
  char text[96];
  snprintf(text, sizeof text, "%s %" PRIu32 " %s", job_of(g->role), g->rank,
           what);
  r->calls.log(r->calls.self, text);
}

static void refuse(weir_registry *r, guest *g, const weir_error *why) {
  void *key = g->who.key;
  take_out(r, g);
  r->calls.refuse(r->calls.self, key, why);
}

/* ---- Ranks */

static void sit(const weir_registry *r, guest *g, uint32_t rank) {
  assert(holder_of(r, g->role, rank) == NULL);
  g->rank = rank;
  g->since_ns = INT64_MAX;
  say(r, "has registered", g);
  r->calls.seat(r->calls.self, g->who.key, rank);
}

/* Deals the free ranks of |role|, if all that are to come are there. */
static void deal(weir_registry *r, int64_t now_ns, weir_ps_role role) {
  uint32_t free = 0, rank = 0;
  if (weir_registry_here(r, role) < r->counts[role]) return;
  for (uint32_t i = 0; i < r->counts[role]; i++)
    free += holder_of(r, role, i) == NULL;
  for (uint32_t i = 0; i < r->count; i++) {
    guest *g = &r->guests[i];
    if (g->role != role || g->rank != WEIR_REGISTRY_NONE) continue;
    if (free == 0) { /* one too many, for now */
      if (g->since_ns == INT64_MAX) g->since_ns = now_ns;
      continue;
    }
    while (holder_of(r, role, rank) != NULL) rank++;
    sit(r, g, rank);
    free--;
  }
}

static bool fits(const weir_registry *r, const weir_registry_knock *k,
                 weir_error *err) {
  uint32_t servers = r->counts[WEIR_PS_SERVER];
  uint32_t workers = r->counts[WEIR_PS_WORKER];
  if (k->servers != servers || k->workers != workers)
    weir_fail(err, WEIR_W7082, NULL,
              "a %s of a job of %" PRIu32 " servers and %" PRIu32
              " workers; the scheduler's has %" PRIu32 " and %" PRIu32,
              job_of(k->role), k->servers, k->workers, servers, workers);
  else if (k->ranked && k->rank >= r->counts[k->role])
    weir_fail(err, WEIR_W7082, NULL,
              "there is no %s %" PRIu32 ": the job has %" PRIu32 ", from 0",
              job_of(k->role), k->rank, r->counts[k->role]);
  else if (r->count == r->capacity)
    weir_fail(err, WEIR_W7083, NULL,
              "%" PRIu32
              " processes have registered, which are all of the job "
              "and %d more",
              r->count, WEIR_MEET_WAITING);
  else
    return true;
  return false;
}

/* |g| names its rank. A process that comes back to find another one there has
 * been taken for dead; a new one that was told its rank takes it. */
static void claim(weir_registry *r, guest *g, const weir_registry_knock *k) {
  weir_error err = WEIR_ERROR_INIT;
  void *key = g->who.key;
  guest *other = holder_of(r, k->role, k->rank);
  bool same = other != NULL && other->who.incarnation == g->who.incarnation;
  if (other != NULL && !same)
    weir_fail(&err, WEIR_W7083, NULL,
              "another process is %s %" PRIu32 " of the job by now",
              job_of(k->role), k->rank);
  if (other != NULL && !same && k->seated) {
    refuse(r, g, &err);
    return;
  }
  if (same)
    take_out(r, other); /* its older link, which ends */
  else if (other != NULL)
    refuse(r, other, &err);
  sit(r, find(r, key), k->rank);
}

void weir_registry_knock_at(weir_registry *r, int64_t now_ns,
                            weir_registry_guest who,
                            const weir_registry_knock *k) {
  weir_error err = WEIR_ERROR_INIT;
  guest *g = find(r, who.key);
  if (g == NULL && !fits(r, k, &err)) {
    r->calls.refuse(r->calls.self, who.key, &err);
    return;
  }
  if (g == NULL) {
    g = &r->guests[r->count++];
    *g = (guest){who, k->role, WEIR_REGISTRY_NONE, INT64_MAX};
    if (k->ranked)
      claim(r, g, k);
    else
      r->calls.seat(r->calls.self, who.key, WEIR_REGISTRY_NONE);
    deal(r, now_ns, k->role);
    g = find(r, who.key);
  }
  if (g != NULL && g->role == WEIR_PS_SERVER && g->rank != WEIR_REGISTRY_NONE &&
      k->address[0] != '\0')
    r->calls.moved(r->calls.self, g->rank, k->address);
}

void weir_registry_lost(weir_registry *r, int64_t now_ns, void *key) {
  guest *g = find(r, key);
  if (g == NULL) return;
  weir_ps_role role = g->role;
  if (g->rank != WEIR_REGISTRY_NONE) say(r, "has gone", g);
  take_out(r, g);
  deal(r, now_ns, role);
}

/* Those that have been too many for long are refused. */
int64_t weir_registry_tick(weir_registry *r, int64_t now_ns) {
  int64_t next = INT64_MAX;
  for (uint32_t i = 0; i < r->count;) {
    guest *g = &r->guests[i];
    weir_error err = WEIR_ERROR_INIT;
    int64_t at =
        g->since_ns == INT64_MAX ? INT64_MAX : g->since_ns + r->patience_ns;
    if (at > now_ns) {
      if (at < next) next = at;
      i++;
      continue;
    }
    weir_fail(&err, WEIR_W7083, NULL,
              "the job has %" PRIu32 " %s%s, and all of them are there",
              r->counts[g->role], job_of(g->role),
              r->counts[g->role] == 1 ? "" : "s");
    refuse(r, g, &err);
  }
  return next;
}
