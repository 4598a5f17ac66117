/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/env_system.h"
#include "runtime/dist/meet/meet_guest.h"
#include "runtime/dist/meet/meet_host.h"
#include "tests/check.h"
#include "tests/counted.h"
#include "tests/dist/local_transports.h"

/* Processes that register with a scheduler, each with its threads, over
 * transports in memory. Tests wait for what they expect, without a time. */

static const weir_ps_task kChief = {WEIR_PS_CHIEF, 0};
static const weir_ps_task kServer0 = {WEIR_PS_SERVER, 0};

enum { SERVERS = 2, WORKERS = 2, SEATS = 8 };

typedef struct seat {
  weir_ps_book *book;
  weir_meet_guest *guest;
  bool refused;
} seat;

static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t s_changed = PTHREAD_COND_INITIALIZER;

typedef struct world {
  weir_net_hub *hub;
  weir_transports transports;
  weir_ps_book *book;
  weir_meet_host *host;
  char address[WEIR_NET_ADDRESS_BYTES];
  seat seats[SEATS];
  weir_error err;
} world;

static weir_meet_options options_of(world *w, weir_ps_book *book) {
  return (weir_meet_options){
      .transports = &w->transports,
      .address = w->address[0] != '\0' ? w->address : "local:",
      .servers = SERVERS,
      .workers = WORKERS,
      .book = book};
}

static void open_scheduler(world *w) {
  assert_ok(
      weir_ps_book_create(weir_allocator_system(), SERVERS, &w->book, &w->err),
      &w->err);
  weir_meet_options o = options_of(w, w->book);
  assert_ok(weir_meet_host_create(weir_env_system(), &o, &w->host, &w->err),
            &w->err);
  snprintf(w->address, sizeof w->address, "%s",
           weir_meet_host_address(w->host));
}

static void close_scheduler(world *w) {
  weir_meet_host_release(w->host);
  weir_ps_book_release(w->book);
  w->host = NULL;
}

static void open_world(world *w) {
  memset(w, 0, sizeof *w);
  w->err = (weir_error)WEIR_ERROR_INIT;
  assert_ok(weir_net_hub_create(weir_env_system(), &w->hub, &w->err), &w->err);
  w->transports = local_transports(w->hub);
  open_scheduler(w);
}

static void on_refused(void *self) {
  seat *s = self;
  pthread_mutex_lock(&s_lock);
  s->refused = true;
  pthread_cond_broadcast(&s_changed);
  pthread_mutex_unlock(&s_lock);
}

static void start_with(world *w, size_t at, weir_meet_guest_options o) {
  seat *s = &w->seats[at];
  assert_ok(
      weir_ps_book_create(weir_allocator_system(), SERVERS, &s->book, &w->err),
      &w->err);
  o.meet = options_of(w, s->book);
  o.refused = on_refused;
  o.self = s;
  assert_ok(weir_meet_guest_create(weir_env_system(), &o, &s->guest, &w->err),
            &w->err);
}

static void start(world *w, size_t at, weir_ps_role role) {
  start_with(w, at, (weir_meet_guest_options){.role = role});
}

static void end(world *w, size_t at) {
  weir_meet_guest_release(w->seats[at].guest);
  weir_ps_book_release(w->seats[at].book);
  w->seats[at] = (seat){NULL};
}

static void close_world(world *w) {
  for (size_t i = 0; i < SEATS; i++) end(w, i);
  close_scheduler(w);
  weir_net_hub_release(w->hub);
}

static uint32_t rank_of(world *w, size_t at) {
  bool seated = false;
  uint32_t rank = UINT32_MAX;
  assert_ok(weir_meet_guest_wait(w->seats[at].guest, &seated, &rank, &w->err),
            &w->err);
  assert_true(seated);
  return rank;
}

static void on_change(void *self) {
  (void)self;
  pthread_mutex_lock(&s_lock);
  pthread_cond_broadcast(&s_changed);
  pthread_mutex_unlock(&s_lock);
}

/* Waits until |book| says that |task| is at |address|. As the net's reader. */
static void await(weir_ps_book *book, weir_ps_task task, const char *address) {
  char now[WEIR_NET_ADDRESS_BYTES];
  weir_ps_book_listen(book, WEIR_PS_READER_NET, on_change, NULL);
  for (;;) {
    /* Read before the lock: a change holds the book and then the lock. */
    weir_ps_book_get(book, task, now);
    if (strcmp(now, address) == 0) break;
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 20000000;
    if (soon.tv_nsec >= 1000000000) {
      soon.tv_nsec -= 1000000000;
      soon.tv_sec++;
    }
    pthread_mutex_lock(&s_lock);
    pthread_cond_timedwait(&s_changed, &s_lock, &soon);
    pthread_mutex_unlock(&s_lock);
  }
  weir_ps_book_listen(book, WEIR_PS_READER_NET, NULL, NULL);
}

static void start_all(world *w) {
  for (size_t i = 0; i < SERVERS; i++) start(w, i, WEIR_PS_SERVER);
  for (size_t i = 0; i < WORKERS; i++) start(w, SERVERS + i, WEIR_PS_WORKER);
}

static void all_hear_where_the_others_are(void **state) {
  (void)state;
  world w;
  open_world(&w);
  weir_ps_book_set(w.book, kChief, "chief:1");
  start_all(&w);
  uint32_t own = rank_of(&w, 0);
  assert_int_equal(own + rank_of(&w, 1), 1);
  assert_int_equal(rank_of(&w, 2) + rank_of(&w, 3), 1);
  weir_ps_task self = {WEIR_PS_SERVER, own};
  weir_ps_book_set(w.seats[0].book, self, "first:1");
  await(w.book, self, "first:1");
  for (size_t i = 1; i < 4; i++) {
    await(w.seats[i].book, kChief, "chief:1");
    await(w.seats[i].book, self, "first:1");
  }
  weir_ps_book_set(w.book, kChief, "chief:2");
  for (size_t i = 0; i < 4; i++) await(w.seats[i].book, kChief, "chief:2");
  close_world(&w);
}

static void one_that_is_started_again_takes_its_rank(void **state) {
  (void)state;
  world w;
  open_world(&w);
  start_all(&w);
  uint32_t rank = rank_of(&w, 1);
  weir_ps_task self = {WEIR_PS_SERVER, rank};
  (void)rank_of(&w, 0), (void)rank_of(&w, 2), (void)rank_of(&w, 3);
  weir_ps_book_set(w.seats[1].book, self, "old:1");
  await(w.seats[2].book, self, "old:1");
  end(&w, 1);
  start(&w, 4, WEIR_PS_SERVER);
  assert_int_equal(rank_of(&w, 4), rank);
  weir_ps_book_set(w.seats[4].book, self, "new:1");
  await(w.seats[2].book, self, "new:1");
  close_world(&w);
}

static void a_scheduler_that_is_started_again_learns_it_all(void **state) {
  (void)state;
  world w;
  open_world(&w);
  start_all(&w);
  weir_ps_task self = {WEIR_PS_SERVER, rank_of(&w, 0)};
  (void)rank_of(&w, 1), (void)rank_of(&w, 2);
  uint32_t rank = rank_of(&w, 3);
  weir_ps_book_set(w.seats[0].book, self, "first:1");
  await(w.seats[3].book, self, "first:1");
  close_scheduler(&w);
  end(&w, 3);
  start(&w, 5, WEIR_PS_WORKER); /* waits for the scheduler */
  open_scheduler(&w);
  weir_ps_book_set(w.book, kChief, "chief:2");
  assert_int_equal(rank_of(&w, 5), rank);
  await(w.book, self, "first:1");
  await(w.seats[5].book, self, "first:1");
  await(w.seats[2].book, kChief, "chief:2");
  close_world(&w);
}

static void a_rank_is_taken_from_an_older_process(void **state) {
  (void)state;
  world w;
  weir_error err = WEIR_ERROR_INIT;
  const weir_meet_guest_options o = {
      .role = WEIR_PS_WORKER, .ranked = true, .rank = 1};
  open_world(&w);
  start_with(&w, 0, o);
  assert_int_equal(rank_of(&w, 0), 1);
  start_with(&w, 1, o);
  assert_int_equal(rank_of(&w, 1), 1);
  pthread_mutex_lock(&s_lock);
  while (!w.seats[0].refused) pthread_cond_wait(&s_changed, &s_lock);
  pthread_mutex_unlock(&s_lock);
  assert_int_equal(weir_meet_guest_error(w.seats[0].guest, &err),
                   WEIR_FAILED_PRECONDITION);
  assert_string_equal(err.id, "W7083");
  assert_string_equal(err.message,
                      "another process is worker 1 of the job by now");
  assert_int_equal(weir_meet_guest_error(w.seats[1].guest, &err), WEIR_OK);
  close_world(&w);
}

static void other_counts_are_refused_with_words(void **state) {
  (void)state;
  world w;
  weir_error err = WEIR_ERROR_INIT;
  weir_meet_guest *guest = NULL;
  weir_ps_book *book = NULL;
  bool seated = true;
  uint32_t rank;
  open_world(&w);
  assert_ok(weir_ps_book_create(weir_allocator_system(), 3, &book, &err), &err);
  weir_meet_guest_options o = {.meet = options_of(&w, book),
                               .role = WEIR_PS_SERVER};
  o.meet.servers = 3;
  assert_ok(weir_meet_guest_create(weir_env_system(), &o, &guest, &err), &err);
  assert_int_equal(weir_meet_guest_wait(guest, &seated, &rank, &err),
                   WEIR_INVALID_ARGUMENT);
  assert_false(seated);
  assert_string_equal(err.id, "W7082");
  assert_non_null(strstr(err.message,
                         "a job of 3 servers and 2 workers; the "
                         "scheduler's has 2 and 2"));
  weir_meet_guest_release(guest);
  o.meet.servers = SERVERS;
  o.ranked = true;
  o.rank = 2;
  assert_int_equal(weir_meet_guest_create(weir_env_system(), &o, &guest, &err),
                   WEIR_INVALID_ARGUMENT);
  assert_null(guest);
  weir_ps_book_release(book);
  close_world(&w);
}

static void a_wait_can_be_ended(void **state) {
  (void)state;
  world w;
  bool seated = true;
  uint32_t rank;
  open_world(&w);
  start(&w, 0, WEIR_PS_SERVER);
  weir_meet_guest_stop(w.seats[0].guest);
  weir_meet_guest_stop(NULL);
  assert_ok(weir_meet_guest_wait(w.seats[0].guest, &seated, &rank, &w.err),
            &w.err);
  assert_false(seated);
  close_world(&w);
}

static void two_schedulers_do_not_share_an_address(void **state) {
  (void)state;
  world w;
  weir_meet_host *second = NULL;
  open_world(&w);
  weir_meet_options o = options_of(&w, w.book);
  weir_error err = WEIR_ERROR_INIT;
  assert_int_not_equal(
      weir_meet_host_create(weir_env_system(), &o, &second, &err), WEIR_OK);
  assert_string_equal(err.id, "W7002");
  assert_null(second);
  close_world(&w);
}

/* ---- Memory */

static weir_status make_both(const weir_env *env, world *w, weir_error *err) {
  weir_ps_book *book = NULL;
  weir_meet_host *host = NULL;
  weir_meet_guest *guest = NULL;
  weir_status s = weir_ps_book_create(env->alloc, SERVERS, &book, err);
  weir_meet_options o = options_of(w, book);
  o.address = "local:";
  if (s == WEIR_OK) s = weir_meet_host_create(env, &o, &host, err);
  weir_meet_guest_options g = {.meet = options_of(w, book),
                               .role = WEIR_PS_SERVER};
  if (s == WEIR_OK) s = weir_meet_guest_create(env, &g, &guest, err);
  weir_meet_guest_release(guest);
  weir_meet_host_release(host);
  weir_ps_book_release(book);
  return s;
}

static void nothing_is_left_when_memory_ends(void **state) {
  (void)state;
  world w;
  weir_counted_allocator memory;
  weir_env env = *weir_env_system();
  open_world(&w);
  weir_counted_allocator_init(&memory, NULL);
  env.alloc = &memory.base;
  for (memory.fail_at = 1;; memory.fail_at++) {
    weir_error err = WEIR_ERROR_INIT;
    memory.calls = 0;
    weir_status s = make_both(&env, &w, &err);
    assert_int_equal(atomic_load(&memory.live_bytes), 0);
    if (s == WEIR_OK && atomic_load(&memory.calls) < memory.fail_at) break;
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
  }
  assert_true(memory.fail_at > 8);
  close_world(&w);
}

static void a_book_notes_what_fits(void **state) {
  (void)state;
  weir_ps_book *book = NULL;
  weir_error err = WEIR_ERROR_INIT;
  char text[WEIR_NET_ADDRESS_BYTES], large[2 * WEIR_NET_ADDRESS_BYTES];
  assert_ok(weir_ps_book_create(weir_allocator_system(), 1, &book, &err), &err);
  weir_ps_book_set(book, kServer0, "a:1");
  weir_ps_book_set(book, kServer0, "");
  memset(large, 'x', sizeof large);
  large[sizeof large - 1] = '\0';
  weir_ps_book_set(book, kServer0, large);
  weir_ps_book_set(book, (weir_ps_task){WEIR_PS_SERVER, 1}, "b:1");
  weir_ps_book_set(book, (weir_ps_task){WEIR_PS_WORKER, 0}, "c:1");
  weir_ps_book_get(book, kServer0, text);
  assert_string_equal(text, "a:1");
  weir_ps_book_get(book, kChief, text);
  assert_string_equal(text, "");
  weir_ps_book_get(book, (weir_ps_task){WEIR_PS_SERVER, 1}, text);
  assert_string_equal(text, "");
  weir_ps_book_release(book);
  weir_ps_book_release(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_hear_where_the_others_are),
      cmocka_unit_test(one_that_is_started_again_takes_its_rank),
      cmocka_unit_test(a_scheduler_that_is_started_again_learns_it_all),
      cmocka_unit_test(a_rank_is_taken_from_an_older_process),
      cmocka_unit_test(other_counts_are_refused_with_words),
      cmocka_unit_test(a_wait_can_be_ended),
      cmocka_unit_test(two_schedulers_do_not_share_an_address),
      cmocka_unit_test(nothing_is_left_when_memory_ends),
      cmocka_unit_test(a_book_notes_what_fits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
