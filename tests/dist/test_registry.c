/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/meet/registry.h"

#include <string.h>

#include "runtime/base/mix.h"
#include "runtime/dist/meet/meet.h"
#include "tests/check.h"
#include "tests/counted.h"

/* Who gets which rank of a job: in order, once each, after deaths of processes
 * and of the scheduler. */

enum { KEYS = 200 };

typedef struct world {
  weir_registry *registry;
  weir_error err;
  uint32_t ranks[KEYS]; /* by key; as the calls said */
  bool told[KEYS], refused[KEYS];
  char why[KEYS][256], moved[16][32];
} world;

static world s_world;

static void *key_of(size_t i) {
  return &s_world.ranks[i];
}

static size_t number_of(const void *key) {
  return (size_t)((const uint32_t *)key - s_world.ranks);
}

static void on_seat(void *self, void *key, uint32_t rank) {
  world *w = self;
  w->ranks[number_of(key)] = rank;
  w->told[number_of(key)] = true;
}

static void on_refuse(void *self, void *key, const weir_error *why) {
  world *w = self;
  size_t i = number_of(key);
  w->refused[i] = true;
  w->ranks[i] = WEIR_REGISTRY_NONE;
  snprintf(w->why[i], sizeof w->why[i], "%s %.240s", why->id, why->message);
}

static void on_moved(void *self, uint32_t server, const char *address) {
  world *w = self;
  snprintf(w->moved[server], sizeof w->moved[server], "%s", address);
}

static void on_log(void *self, const char *text) {
  (void)self, (void)text;
}

static const weir_registry_calls kCalls = {&s_world, on_seat, on_refuse,
                                           on_moved, on_log};

static void open_world(uint32_t servers, uint32_t workers) {
  world *w = &s_world;
  memset(w, 0, sizeof *w);
  w->err = (weir_error)WEIR_ERROR_INIT;
  for (int i = 0; i < KEYS; i++) w->ranks[i] = WEIR_REGISTRY_NONE;
  assert_ok(weir_registry_create(weir_allocator_system(), servers, workers, 100,
                                 &kCalls, &w->registry, &w->err),
            &w->err);
}

/* A scheduler that was started again: the processes stay what they were. */
static void restart(uint32_t servers, uint32_t workers) {
  weir_registry_release(s_world.registry);
  assert_ok(weir_registry_create(weir_allocator_system(), servers, workers, 100,
                                 &kCalls, &s_world.registry, &s_world.err),
            &s_world.err);
}

static void knock(size_t key, uint64_t incarnation,
                  const weir_registry_knock *k) {
  weir_registry_knock whole = *k;
  if (whole.address == NULL) whole.address = "";
  weir_registry_knock_at(s_world.registry, 0,
                         (weir_registry_guest){key_of(key), incarnation},
                         &whole);
}

static void plain(size_t key, weir_ps_role role, uint32_t servers,
                  uint32_t workers) {
  knock(key, key + 1,
        &(weir_registry_knock){
            .role = role, .servers = servers, .workers = workers});
}

static void ranks_are_dealt_when_all_of_a_role_are_there(void **state) {
  (void)state;
  world *w = &s_world;
  open_world(2, 2);
  plain(0, WEIR_PS_WORKER, 2, 2);
  plain(1, WEIR_PS_SERVER, 2, 2);
  assert_true(w->told[0]);
  assert_int_equal(w->ranks[0], WEIR_REGISTRY_NONE);
  assert_int_equal(weir_registry_here(w->registry, WEIR_PS_WORKER), 1);
  plain(2, WEIR_PS_WORKER, 2, 2);
  assert_int_equal(w->ranks[0], 0);
  assert_int_equal(w->ranks[2], 1);
  assert_int_equal(w->ranks[1], WEIR_REGISTRY_NONE);
  plain(3, WEIR_PS_SERVER, 2, 2);
  assert_int_equal(w->ranks[1], 0);
  assert_int_equal(w->ranks[3], 1);
  weir_registry_release(w->registry);
}

static void the_next_process_gets_the_rank_of_the_dead_one(void **state) {
  (void)state;
  world *w = &s_world;
  open_world(1, 3);
  for (size_t i = 0; i < 3; i++) plain(i, WEIR_PS_WORKER, 1, 3);
  weir_registry_lost(w->registry, 0, key_of(1));
  weir_registry_lost(w->registry, 0, key_of(1)); /* once is enough */
  plain(3, WEIR_PS_WORKER, 1, 3);
  assert_int_equal(w->ranks[3], 1);
  /* One comes before its predecessor is known to be dead. */
  plain(4, WEIR_PS_WORKER, 1, 3);
  assert_int_equal(w->ranks[4], WEIR_REGISTRY_NONE);
  assert_int_equal(weir_registry_tick(w->registry, 50), 100);
  weir_registry_lost(w->registry, 60, key_of(0));
  assert_int_equal(w->ranks[4], 0);
  assert_int_equal(weir_registry_tick(w->registry, 1000), INT64_MAX);
  weir_registry_release(w->registry);
}

static void one_too_many_is_refused_after_a_while(void **state) {
  (void)state;
  world *w = &s_world;
  open_world(1, 1);
  plain(0, WEIR_PS_SERVER, 1, 1);
  plain(1, WEIR_PS_SERVER, 1, 1);
  assert_int_equal(weir_registry_tick(w->registry, 99), 100);
  assert_false(w->refused[1]);
  assert_int_equal(weir_registry_tick(w->registry, 100), INT64_MAX);
  assert_true(w->refused[1]);
  assert_string_equal(w->why[1],
                      "W7083 the job has 1 server, and all of them are there");
  assert_int_equal(w->ranks[0], 0);
  /* Far too many at once are refused at once. */
  for (size_t i = 2; i < KEYS; i++) plain(i, WEIR_PS_WORKER, 1, 1);
  assert_false(w->refused[WEIR_MEET_WAITING]);
  assert_true(w->refused[KEYS - 1]);
  weir_registry_release(w->registry);
}

static void others_counts_and_ranks_are_refused(void **state) {
  (void)state;
  world *w = &s_world;
  open_world(1, 2);
  plain(0, WEIR_PS_WORKER, 1, 3);
  assert_string_equal(w->why[0],
                      "W7082 a worker of a job of 1 servers and 3 workers; the "
                      "scheduler's has 1 and 2");
  knock(1, 1,
        &(weir_registry_knock){.role = WEIR_PS_SERVER,
                               .servers = 1,
                               .workers = 2,
                               .ranked = true,
                               .rank = 1});
  assert_string_equal(w->why[1],
                      "W7082 there is no server 1: the job has 1, from 0");
  weir_registry_release(w->registry);
}

/* A rank that is asked for is given at once, and taken from another. */
static void a_rank_may_be_asked_for(void **state) {
  (void)state;
  world *w = &s_world;
  weir_registry_knock k = {.role = WEIR_PS_WORKER,
                           .servers = 1,
                           .workers = 3,
                           .ranked = true,
                           .rank = 2};
  open_world(1, 3);
  knock(0, 1, &k);
  assert_int_equal(w->ranks[0], 2);
  knock(1, 2, &k);
  assert_int_equal(w->ranks[1], 2);
  assert_true(w->refused[0]);
  /* The older one comes back with what it once was given: it is too late. */
  k.seated = true;
  knock(2, 1, &k);
  assert_true(w->refused[2]);
  assert_string_equal(w->why[2],
                      "W7083 another process is worker 2 of the job by now");
  /* The same process on a new link, whose old one has not ended yet. */
  knock(3, 2, &k);
  assert_int_equal(w->ranks[3], 2);
  assert_false(w->refused[1]);
  weir_registry_lost(w->registry, 0, key_of(1));
  plain(4, WEIR_PS_WORKER, 1, 3);
  plain(5, WEIR_PS_WORKER, 1, 3);
  assert_int_equal(w->ranks[4], 0);
  assert_int_equal(w->ranks[5], 1);
  weir_registry_release(w->registry);
}

/* A scheduler that was started again deals no rank that somebody has. */
static void a_new_scheduler_learns_from_those_that_knock(void **state) {
  (void)state;
  world *w = &s_world;
  weir_registry_knock k = {.role = WEIR_PS_SERVER,
                           .servers = 3,
                           .workers = 1,
                           .ranked = true,
                           .seated = true};
  open_world(3, 1);
  for (size_t i = 0; i < 3; i++) plain(i, WEIR_PS_SERVER, 3, 1);
  restart(3, 1);
  plain(3, WEIR_PS_SERVER, 3, 1); /* in place of server 1, which died too */
  assert_int_equal(w->ranks[3], WEIR_REGISTRY_NONE);
  k.rank = 2;
  k.address = "b:2";
  knock(4, 3, &k);
  assert_int_equal(w->ranks[4], 2);
  assert_string_equal(w->moved[2], "b:2");
  assert_int_equal(w->ranks[3], WEIR_REGISTRY_NONE);
  k.rank = 0;
  k.address = "a:2";
  knock(5, 1, &k);
  assert_int_equal(w->ranks[3], 1);
  knock(5, 1, &k);
  assert_int_equal(weir_registry_here(w->registry, WEIR_PS_SERVER), 3);
  weir_registry_release(w->registry);
}

enum { COUNT = 5 };

/* Processes of a random story: |away|: it lives, and has not knocked at the new
 * scheduler yet. */
typedef struct story {
  bool there[KEYS], away[KEYS];
  uint32_t alive, absent;
  size_t next;
} story;

static void comes(story *s) {
  if (s->alive == COUNT || s->next == KEYS) return;
  s->there[s->next] = true;
  s->alive++;
  plain(s->next++, WEIR_PS_WORKER, 1, COUNT);
}

static void dies(story *s, size_t i) {
  if (!s->there[i]) return;
  s->there[i] = false;
  s->alive--;
  s->absent -= s->away[i];
  s->away[i] = false;
  weir_registry_lost(s_world.registry, 0, key_of(i));
}

static void comes_back(story *s, size_t i) {
  if (!s->away[i]) return;
  bool ranked = s_world.ranks[i] != WEIR_REGISTRY_NONE;
  s->away[i] = false;
  s->absent--;
  knock(i, i + 1,
        &(weir_registry_knock){.role = WEIR_PS_WORKER,
                               .servers = 1,
                               .workers = COUNT,
                               .ranked = ranked,
                               .seated = ranked,
                               .rank = s_world.ranks[i]});
}

static void act(story *s, uint64_t x) {
  size_t first = x / 8 % KEYS;
  for (size_t k = 0; k < KEYS; k++) { /* the first that it may happen to */
    size_t i = (first + k) % KEYS;
    if (x % 8 == 5 && s->there[i]) {
      dies(s, i);
      return;
    }
    if (x % 8 > 2 && x % 8 < 5 && s->away[i]) {
      comes_back(s, i);
      return;
    }
  }
  if (x % 8 < 5) comes(s);
  if (x % 64 != 63) return;
  restart(1, COUNT);
  memcpy(s->away, s->there, sizeof s->away);
  s->absent = s->alive;
}

static void is_sound(const story *s) {
  bool taken[COUNT] = {false};
  for (size_t i = 0; i < KEYS; i++) {
    uint32_t rank = s_world.ranks[i];
    if (!s->there[i] || rank == WEIR_REGISTRY_NONE) continue;
    assert_true(rank < COUNT);
    assert_false(taken[rank]);
    assert_false(s_world.refused[i]);
    taken[rank] = true;
  }
}

/* Processes that come, die and come back, and schedulers too: no rank is given
 * twice, and when as many as the job has are there, all have one. */
static void no_rank_is_given_twice(void **state) {
  (void)state;
  enum { ROUNDS = 300, ACTS = 150 };
  uint32_t full = 0, restarted = 0;
  for (uint64_t seed = 0; seed < ROUNDS; seed++) {
    story s = {.alive = 0};
    open_world(1, COUNT);
    for (uint64_t i = 0; i < ACTS; i++) {
      act(&s, weir_mix(seed * ACTS + i));
      is_sound(&s);
      restarted += s.absent == COUNT;
      bool all = s.alive == COUNT && s.absent == 0;
      for (size_t k = 0; all && k < s.next; k++)
        if (s.there[k])
          assert_int_not_equal(s_world.ranks[k], WEIR_REGISTRY_NONE);
      full += all;
    }
    weir_registry_release(s_world.registry);
  }
  assert_true(full > ROUNDS && restarted > 20);
}

static void numbers_and_memory(void **state) {
  (void)state;
  static const uint32_t bad[][2] = {{0, 1}, {1, 0}, {65, 1}, {1, 1025}};
  for (size_t i = 0; i < 4; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_registry *r = NULL;
    assert_int_equal(weir_registry_create(weir_allocator_system(), bad[i][0],
                                          bad[i][1], 1, &kCalls, &r, &err),
                     WEIR_INVALID_ARGUMENT);
    assert_string_equal(err.id, "W7082");
  }
  weir_counted_allocator memory;
  weir_counted_allocator_init(&memory, NULL);
  for (memory.fail_at = 1;; memory.fail_at++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_registry *r = NULL;
    memory.calls = 0;
    weir_status s =
        weir_registry_create(&memory.base, 2, 2, 1, &kCalls, &r, &err);
    weir_registry_release(r);
    assert_int_equal(atomic_load(&memory.live_bytes), 0);
    if (s == WEIR_OK) break;
    assert_string_equal(err.id, "W6001");
  }
  assert_int_equal(memory.fail_at, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_are_dealt_when_all_of_a_role_are_there),
      cmocka_unit_test(the_next_process_gets_the_rank_of_the_dead_one),
      cmocka_unit_test(one_too_many_is_refused_after_a_while),
      cmocka_unit_test(others_counts_and_ranks_are_refused),
      cmocka_unit_test(a_rank_may_be_asked_for),
      cmocka_unit_test(a_new_scheduler_learns_from_those_that_knock),
      cmocka_unit_test(no_rank_is_given_twice),
      cmocka_unit_test(numbers_and_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
