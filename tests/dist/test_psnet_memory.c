/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/base/env_system.h"
#include "tests/dist/psnet_world.h"

/* Nets without memory, and with options that do not fit: tests/dist/
 * psnet_world.c creates each host with allocations that fail in turn. */

static const weir_ps_task kServer0 = {WEIR_PS_SERVER, 0};
static const weir_ps_task kServer1 = {WEIR_PS_SERVER, 1};
static const weir_ps_task kWorker0 = {WEIR_PS_WORKER, 0};

/* A push with the k-th allocation of |failing| from now on failing: it arrives,
 * or the link ends and comes again; the values come back in any case. */
static bool push_with_failure(ps_world *w, ps_host *failing,
                              const size_t *sizes, int64_t k) {
  ps_host *server = w->hosts[0], *worker = w->hosts[2];
  weir_ps_message m = {.kind = WEIR_PS_PUSH, .request = (uint64_t)k};
  uint32_t came = ps_heard_count(server, PS_MESSAGE, kWorker0);
  uint32_t gone = ps_heard_count(worker, PS_LOST, kServer0);
  atomic_store(&failing->fails_after, k);
  ps_host_send(worker, kServer0, &m, sizes, 2);
  ps_await(w, worker->sent == worker->asked);
  ps_await(w, ps_heard_count(server, PS_MESSAGE, kWorker0) > came ||
                  ps_heard_count(server, PS_LOST, kWorker0) > gone);
  bool failed = atomic_exchange(&failing->fails_after, 0) <= 0;
  ps_await(w, ps_heard_count(server, PS_UP, kWorker0) ==
                  ps_heard_count(server, PS_LOST, kWorker0) + 1);
  ps_await(w, ps_heard_count(worker, PS_UP, kServer0) ==
                  ps_heard_count(worker, PS_LOST, kServer0) + 1);
  m = (weir_ps_message){.kind = WEIR_PS_MARK}; /* the link is of use */
  came = ps_heard_count(worker, PS_MESSAGE, kServer0);
  ps_host_send(server, kWorker0, &m, NULL, SIZE_MAX);
  ps_await(w, ps_heard_count(worker, PS_MESSAGE, kServer0) > came);
  return failed;
}

static void without_memory_links_end_and_come_again(void **state) {
  (void)state;
  ps_world w;
  const size_t large[] = {300000, 10}, few[] = {100, 20};
  ps_world_job(&w, 1, 1, false);
  for (int i = 0; i < 4; i++) { /* either side fails, either sizes */
    const size_t *sizes = i < 2 ? large : few;
    int64_t k = 1;
    ps_host_wants(w.hosts[0], sizes, 2);
    while (push_with_failure(&w, w.hosts[i % 2 * 2], sizes, k)) k++;
    assert_in_range(k, 3, 200); /* some of them did fail */
  }
  ps_world_close(&w);
}

static void unsound_options_are_refused(void **state) {
  (void)state;
  ps_world w;
  weir_ps_net *net = NULL;
  weir_error err = WEIR_ERROR_INIT;
  const char *servers[] = {"local:x"};
  ps_world_open(&w, 1, 1, false);
  weir_ps_net_options o = {.transports = &w.transports,
                           .self = kServer1,
                           .address = "local:",
                           .config = &w.config};
  const weir_ps_net_events events = {.self = NULL};
  assert_error(weir_ps_net_create(weir_env_system(), &o, &events, &net, &err),
               &err, "W7090");
  o.self = kServer0;
  o.address = NULL;
  assert_error(weir_ps_net_create(weir_env_system(), &o, &events, &net, &err),
               &err, "W7002");
  o.self = kWorker0;
  o.servers = servers;
  o.server_count = 1;
  assert_error(weir_ps_net_create(weir_env_system(), &o, &events, &net, &err),
               &err, "W7002");
  assert_non_null(strstr(err.message, "chief:0 has no address"));
  o.self = kServer0;
  o.address = "elsewhere:1";
  assert_error(weir_ps_net_create(weir_env_system(), &o, &events, &net, &err),
               &err, "W7002");
  weir_ps_net_release(NULL);
  ps_world_close(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_memory_links_end_and_come_again),
      cmocka_unit_test(unsound_options_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
