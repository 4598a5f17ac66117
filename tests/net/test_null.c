/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/null.h"
#include "runtime/net/transport.h"
#include "tests/check.h"

typedef struct seen {
  int closed;
  weir_connection last;
  weir_close_reason why;
} seen;

static void on_closed(void *self, weir_connection c, weir_close_reason why,
                      weir_sv why_text) {
  (void)why_text;
  seen *s = self;
  s->closed++;
  s->last = c;
  s->why = why;
}

static void nobody_is_there(void **state) {
  (void)state;
  weir_counted_allocator counted;
  weir_counted_allocator_init(&counted, NULL);
  weir_env env = {.alloc = &counted.base};
  weir_error err = WEIR_ERROR_INIT;
  seen s = {0};
  weir_transport_handler handler = {.self = &s, .on_closed = on_closed};
  weir_transport_options options = {0};
  weir_transport *t = NULL;
  weir_connection a = 0, b = 0;
  assert_ok(weir_transport_null_create(&env, &handler, &options, &t, &err),
            &err);
  assert_ok(t->vt->connect(t, WEIR_SV_LIT("ps:0"), &a, &err), &err);
  assert_ok(t->vt->connect(t, WEIR_SV_LIT("ps:1"), &b, &err), &err);
  assert_int_not_equal(a, b);
  t->vt->close(t, a);
  assert_int_equal(s.closed, 0); /* only poll reports */
  assert_ok(t->vt->poll(t, 0, &err), &err);
  assert_int_equal(s.closed, 1);
  assert_int_equal(s.last, b);
  assert_int_equal(s.why, WEIR_CLOSED_UNREACHABLE);
  assert_error(t->vt->send(t, b, NULL, 0, &err), &err, "W7001");
  char bound[WEIR_NET_ADDRESS_BYTES];
  assert_error(t->vt->listen(t, WEIR_SV_LIT("unix:x"), bound, &err), &err,
               "W7002");
  weir_transport_release(t);
  weir_transport_release(NULL);
  assert_int_equal(atomic_load(&counted.live_blocks), 0);
}

static void no_memory(void **state) {
  (void)state;
  weir_counted_allocator counted;
  weir_counted_allocator_init(&counted, NULL);
  weir_env env = {.alloc = &counted.base};
  weir_error err = WEIR_ERROR_INIT;
  weir_transport_handler handler = {0};
  weir_transport_options options = {0};
  weir_transport *t = NULL;
  counted.fail_at = 1;
  assert_error(weir_transport_null_create(&env, &handler, &options, &t, &err),
               &err, "W6001");
  assert_ok(weir_transport_null_create(&env, &handler, &options, &t, &err),
            &err);
  weir_connection c = 7;
  counted.fail_at = atomic_load(&counted.calls) + 1;
  assert_error(t->vt->connect(t, WEIR_SV_LIT("x"), &c, &err), &err, "W6001");
  assert_int_equal(c, 0);
  weir_transport_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nobody_is_there),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
