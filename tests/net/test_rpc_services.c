/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/base/bytes/proto.h"
#include "runtime/net/rpc/services.h"
#include "tests/check.h"

/* Reflection and health, as bytes; a stock client asks them in
 * tests/cli/test_serve.py. */

typedef weir_status (*service_fn)(weir_bytes request, weir_strbuf *answer,
                                  weir_error *err);

static weir_status healthy(weir_bytes request, weir_strbuf *answer,
                           weir_error *err) {
  return weir_rpc_health(request, true, answer, err);
}

static weir_bytes bytes_of(const weir_strbuf *s) {
  weir_sv view = weir_strbuf_view(s);
  return (weir_bytes){(const uint8_t *)view.data, view.size};
}

/* Asks with one field of text; number 0: with nothing. */
static weir_status ask(service_fn fn, uint32_t number, const char *text,
                       weir_strbuf *answer, weir_error *err) {
  weir_strbuf request;
  weir_strbuf_init(&request, weir_allocator_system());
  weir_strbuf_init(answer, weir_allocator_system());
  if (number > 0) weir_proto_put_bytes(&request, number, weir_sv_from(text));
  weir_status s = fn(bytes_of(&request), answer, err);
  weir_strbuf_release(&request);
  return s;
}

/* The content of field |number|, of bytes; cmocka fails if there is none. */
static weir_reader field_of(weir_reader r, uint32_t number) {
  weir_proto_field f;
  while (weir_proto_next(&r, &f))
    if (f.number == number && f.wire == WEIR_PROTO_BYTES) return f.sub;
  fail_msg("there is no field %u", number);
  return r;
}

static weir_reader reader_of(const weir_strbuf *s) {
  weir_bytes b = bytes_of(s);
  return weir_reader_of(b.data, b.size);
}

static void test_services(void **state) {
  static const char *const kNames[] = {
      "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection", "weir.v1.Predict"};
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf answer;
  weir_proto_field f;
  size_t count = 0;
  (void)state;
  assert_ok(ask(weir_rpc_reflect, 7, "*", &answer, &err), &err);
  weir_reader list = field_of(reader_of(&answer), 6);
  for (; weir_proto_next(&list, &f); count++) {
    weir_reader name = field_of(f.sub, 1);
    assert_true(count < 4);
    assert_int_equal(name.size, strlen(kNames[count]));
    assert_memory_equal(name.data, kNames[count], name.size);
  }
  assert_int_equal(count, 4);
  weir_strbuf_release(&answer);
}

/* By its own name, a service's, a message's, a method's and an enum's within
 * a message's. */
static void test_files(void **state) {
  static const struct {
    uint32_t by;
    const char *name, *file;
  } kRows[] = {{3, "weir/v1/predict.proto", "weir/v1/predict.proto"},
               {4, "weir.v1.Predict", "weir/v1/predict.proto"},
               {4, "weir.v1.Predict.Describe", "weir/v1/predict.proto"},
               {4, "weir.v1.NamedTensor", "weir/v1/predict.proto"},
               {4, "weir.v1.DType", "weir/v1/predict.proto"},
               {4, "grpc.health.v1.HealthCheckResponse.ServingStatus",
                "grpc/health/v1/health.proto"}};
  (void)state;
  for (size_t i = 0; i < sizeof kRows / sizeof *kRows; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_strbuf answer;
    assert_ok(ask(weir_rpc_reflect, kRows[i].by, kRows[i].name, &answer, &err),
              &err);
    weir_reader file = field_of(field_of(reader_of(&answer), 4), 1);
    weir_reader name = field_of(file, 1);
    assert_int_equal(name.size, strlen(kRows[i].file));
    assert_memory_equal(name.data, kRows[i].file, name.size);
    /* Clients match answers to requests by this. */
    weir_reader original = field_of(reader_of(&answer), 2);
    assert_int_equal(original.size, strlen(kRows[i].name) + 2);
    weir_strbuf_release(&answer);
  }
}

static void test_not_found(void **state) {
  static const struct {
    uint32_t by;
    const char *name;
    uint64_t code;
  } kRows[] = {{3, "weir/v1/task.proto", 5},
               {4, "weir.v1.Control", 5},
               {4, "", 5},
               {5, "", 5},
               {6, "weir.v1.Predict", 5},
               {0, "", 3}};
  (void)state;
  for (size_t i = 0; i < sizeof kRows / sizeof *kRows; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_strbuf answer;
    weir_proto_field f;
    assert_ok(ask(weir_rpc_reflect, kRows[i].by, kRows[i].name, &answer, &err),
              &err);
    weir_reader failure = field_of(reader_of(&answer), 7);
    assert_true(weir_proto_next(&failure, &f));
    assert_int_equal(f.value, kRows[i].code);
    weir_strbuf_release(&answer);
  }
}

static void test_health(void **state) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf answer;
  (void)state;
  for (int named = 0; named < 2; named++) {
    assert_ok(ask(healthy, named ? 1 : 0, "weir.v1.Predict", &answer, &err),
              &err);
    assert_memory_equal(weir_strbuf_view(&answer).data, "\x08\x01", 2);
    weir_strbuf_release(&answer);
  }
  weir_strbuf_init(&answer, weir_allocator_system());
  assert_ok(weir_rpc_health((weir_bytes){NULL, 0}, false, &answer, &err), &err);
  assert_memory_equal(weir_strbuf_view(&answer).data, "\x08\x02", 2);
  weir_strbuf_release(&answer);
  assert_error(ask(healthy, 1, "weir.v1.Nothing", &answer, &err), &err,
               "W7076");
  assert_error(ask(healthy, 1, "weir.v1.NamedTensor", &answer, &err), &err,
               "W7076");
  assert_error(ask(healthy, 1, "\xff", &answer, &err), &err, "W7075");
}

/* Any bytes are answered or refused; a cut field is refused. */
static void test_bad_bytes(void **state) {
  static uint8_t large[5000];
  static const uint8_t kCut[] = {0x3a, 5, 'a'};
  service_fn fns[] = {weir_rpc_reflect, healthy};
  (void)state;
  for (int k = 0; k < 2; k++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_strbuf answer;
    weir_strbuf_init(&answer, weir_allocator_system());
    assert_error(fns[k]((weir_bytes){kCut, sizeof kCut}, &answer, &err), &err,
                 "W7075");
    assert_error(fns[k]((weir_bytes){large, sizeof large}, &answer, &err), &err,
                 "W7075");
    for (int a = 0; a < 256; a++)
      for (int b = 0; b < 256; b++) {
        uint8_t two[] = {(uint8_t)a, (uint8_t)b};
        (void)fns[k]((weir_bytes){two, 2}, &answer, &err);
        weir_strbuf_clear(&answer);
      }
    weir_strbuf_release(&answer);
  }
}

/* Each allocation fails once, and from then on. */
static void test_memory(void **state) {
  static const uint8_t kRequest[] = {0x3a, 1, '*'};
  (void)state;
  for (int for_ever = 0; for_ever < 2; for_ever++)
    for (uint64_t k = 1;; k++) {
      weir_counted_allocator memory;
      weir_error err = WEIR_ERROR_INIT;
      weir_strbuf answer;
      weir_counted_allocator_init(&memory, NULL);
      memory.fail_at = k;
      memory.fail_forever = for_ever;
      weir_strbuf_init(&answer, &memory.base);
      weir_status s = weir_rpc_reflect((weir_bytes){kRequest, sizeof kRequest},
                                       &answer, &err);
      weir_strbuf_release(&answer);
      assert_int_equal(atomic_load(&memory.live_blocks), 0);
      if (s == WEIR_OK) break;
      assert_string_equal(err.id, "W6001");
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_services),  cmocka_unit_test(test_files),
      cmocka_unit_test(test_not_found), cmocka_unit_test(test_health),
      cmocka_unit_test(test_bad_bytes), cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
