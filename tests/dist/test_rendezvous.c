/* SPDX-License-Identifier: Apache-2.0
 *
 * The rendezvous alone, over a wire in memory. */
#include "runtime/dist/channel/ends.h"
#include "runtime/dist/channel/rendezvous.h"

#include "tests/dist/two_ends.h"

enum { kMany = 40, kLarge = 100000 };

static const weir_slot kEdge = {WEIR__V1__VALUE_KIND__EDGE, 3, 1};
static const weir_slot kBlob = {WEIR__V1__VALUE_KIND__BLOB, 9, 0};

/* Options with which a value of 100 kB has many chunks. */
static const weir_rendezvous_options kFine = {.credit = 16 << 10,
                                              .chunk = 1 << 10};

static uint8_t *made(size_t bytes, uint64_t seed) {
  uint8_t *data = malloc(bytes + 1);
  for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)weir_mix_next(&seed);
  return data;
}

static const size_t kSizes[] = {0,    1,    8,     1000,  8191,  8192,
                                8193, 9000, 16384, 65537, kLarge};
enum { kSizeCount = sizeof kSizes / sizeof kSizes[0] };

/* Every size, either side first, in many orders of arrival. */
static void values_arrive(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    uint64_t order = seed;
    two_ends t;
    two_call sent[kSizeCount], got[kSizeCount];
    uint8_t *src[kSizeCount], *dst[kSizeCount];
    two_begin(&t, weir_allocator_system(),
              seed % 2 ? kFine : (weir_rendezvous_options){0});
    for (uint32_t i = 0; i < kSizeCount; i++) {
      src[i] = made(kSizes[i], seed + i);
      dst[i] = malloc(kSizes[i] + 1);
    }
    for (int half = 0; half < 2; half++) {
      for (uint32_t i = 0; i < kSizeCount; i++) {
        weir_slot slot = {i % 3, i, seed};
        if ((int)((seed >> i % 7 & 1)) == half)
          weir_rendezvous_send(t.side[0].r, 1, &slot,
                               (weir_bytes){src[i], kSizes[i]},
                               two_done(&sent[i]));
        else
          weir_rendezvous_recv(t.side[1].r, 0, &slot, dst[i], kSizes[i],
                               two_done(&got[i]));
        if (weir_mix_below(&order, 4) == 0) two_pump(&t);
        if (weir_mix_below(&order, 4) == 0) two_deliver(&t, 0, false);
      }
    }
    two_settle(&t, &order);
    for (uint32_t i = 0; i < kSizeCount; i++) {
      assert_int_equal(sent[i].told, 1);
      assert_int_equal(sent[i].status, WEIR_OK);
      assert_int_equal(got[i].told, 1);
      assert_int_equal(got[i].status, WEIR_OK);
      assert_memory_equal(src[i], dst[i], kSizes[i]);
      free(src[i]);
      free(dst[i]);
    }
    two_end(&t);
  }
}

/* Small values of one step go together; a full batch goes by itself. */
static void small_values_go_together(void **state) {
  (void)state;
  two_ends t;
  two_call sent[1000], got[1000];
  static float dst[1000];
  uint64_t order = 1;
  two_begin(&t, weir_allocator_system(), (weir_rendezvous_options){0});
  for (uint32_t i = 0; i < 1000; i++) {
    weir_slot slot = {0, i, 1};
    float value = (float)i;
    weir_rendezvous_send(t.side[0].r, 1, &slot,
                         (weir_bytes){(uint8_t *)&value, 4},
                         two_done(&sent[i]));
    weir_rendezvous_recv(t.side[1].r, 0, &slot, &dst[i], 4, two_done(&got[i]));
  }
  assert_true(weir_rendezvous_collects(t.side[0].r));
  two_settle(&t, &order);
  assert_int_equal(t.side[0].control_frames, 1);
  assert_int_equal(t.side[1].control_frames, 0);
  for (uint32_t i = 0; i < 1000; i++) {
    assert_int_equal(got[i].told, 1);
    assert_true(dst[i] == (float)i);
  }
  static uint8_t data[8192];
  for (uint32_t i = 0; i < 10; i++) {
    weir_slot slot = {0, i, 2};
    weir_rendezvous_send(t.side[0].r, 1, &slot, (weir_bytes){data, 8192},
                         two_done(&sent[i]));
  }
  weir_rendezvous_pump(t.side[0].r, &t.side[0].out); /* without a flush */
  assert_true(t.side[0].control_frames >= 2);
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W5005, NULL, "over");
  two_settle(&t, &order);
  weir_rendezvous_drop(t.side[1].r, 2, &why); /* nobody received them */
  two_end(&t);
}

/* A second to the last step allocates nothing. */
static void a_steady_step_allocates_nothing(void **state) {
  (void)state;
  weir_counted_allocator counted;
  weir_counted_allocator_init(&counted, NULL);
  two_ends t;
  two_call sent[kMany], got[kMany];
  uint8_t *src = made(kLarge, 1), *dst = malloc(kLarge * kMany);
  uint64_t order = 1, calls = 0;
  two_begin(&t, &counted.base, kFine);
  for (uint64_t step = 1; step <= 20; step++) {
    for (uint32_t i = 0; i < kMany; i++) {
      weir_slot slot = {0, i, step};
      size_t bytes = i % 4 == 0 ? kLarge : 100 * i;
      weir_rendezvous_send(t.side[0].r, 1, &slot, (weir_bytes){src, bytes},
                           two_done(&sent[i]));
    }
    two_pump(&t);
    while (two_deliver(&t, 0, false)) { /* small ones come early */
    }
    for (uint32_t i = 0; i < kMany; i++) {
      weir_slot slot = {0, i, step};
      size_t bytes = i % 4 == 0 ? kLarge : 100 * i;
      weir_rendezvous_recv(t.side[1].r, 0, &slot, dst + i * kLarge, bytes,
                           two_done(&got[i]));
    }
    two_settle(&t, &order);
    for (uint32_t i = 0; i < kMany; i++) assert_int_equal(got[i].told, 1);
    assert_true(weir_rendezvous_is_empty(t.side[0].r));
    assert_true(weir_rendezvous_is_empty(t.side[1].r));
    if (step == 8) calls = atomic_load(&counted.calls);
  }
  assert_int_equal(atomic_load(&counted.calls), calls);
  two_end(&t);
  assert_int_equal(atomic_load(&counted.live_blocks), 0);
  free(src);
  free(dst);
}

static size_t consumed;
static void consume(void *self, size_t offset, const void *data, size_t size) {
  assert_int_equal(offset, consumed);
  memcpy((uint8_t *)self + offset, data, size);
  consumed += size;
}

static void pieces_are_consumed(void **state) {
  (void)state;
  for (int early = 0; early < 2; early++) {
    for (size_t i = 0; i < kSizeCount; i++) {
      two_ends t;
      two_call sent, got;
      uint64_t order = i;
      uint8_t *src = made(kSizes[i], i), *dst = malloc(kSizes[i] + 1);
      weir_rendezvous_sink sink = {consume, dst};
      consumed = 0;
      two_begin(&t, weir_allocator_system(), kFine);
      weir_rendezvous_send(t.side[0].r, 1, &kEdge, (weir_bytes){src, kSizes[i]},
                           two_done(&sent));
      if (early) two_settle(&t, &order);
      weir_rendezvous_recv_pieces(t.side[1].r, 0, &kEdge, kSizes[i], &sink,
                                  two_done(&got));
      two_settle(&t, &order);
      assert_int_equal(got.told, 1);
      assert_int_equal(got.status, WEIR_OK);
      assert_int_equal(consumed, kSizes[i]);
      assert_memory_equal(src, dst, kSizes[i]);
      two_end(&t);
      free(src);
      free(dst);
    }
  }
}

/* A receiver that does not know the size. */
static void owned_values(void **state) {
  (void)state;
  for (int early = 0; early < 2; early++) {
    for (size_t i = 0; i < kSizeCount; i++) {
      weir_counted_allocator counted;
      weir_counted_allocator_init(&counted, NULL);
      two_ends t;
      two_call sent, got;
      uint64_t order = i;
      weir_bytes out;
      uint8_t *src = made(kSizes[i], i);
      two_begin(&t, &counted.base, kFine);
      weir_rendezvous_send(t.side[0].r, 1, &kBlob, (weir_bytes){src, kSizes[i]},
                           two_done(&sent));
      if (early) two_settle(&t, &order);
      weir_rendezvous_recv_owned(t.side[1].r, 0, &kBlob, kLarge, &out,
                                 two_done(&got));
      two_settle(&t, &order);
      assert_int_equal(got.status, WEIR_OK);
      assert_int_equal(out.size, kSizes[i]);
      assert_memory_equal(src, out.data, kSizes[i]);
      weir_free(&counted.base, (void *)out.data);
      /* more than is taken */
      weir_slot other = kBlob;
      other.id++;
      uint8_t *more = made(kLarge + 1, 1);
      weir_rendezvous_send(t.side[0].r, 1, &other,
                           (weir_bytes){more, kLarge + 1}, two_done(&sent));
      weir_rendezvous_recv_owned(t.side[1].r, 0, &other, kLarge, &out,
                                 two_done(&got));
      two_settle(&t, &order);
      assert_string_equal(got.id, "W7012");
      assert_int_equal(sent.told, 0);
      weir_error why = WEIR_ERROR_INIT;
      weir_fail(&why, WEIR_W7001, NULL, "gone");
      weir_rendezvous_abort(t.side[0].r, &why);
      two_end(&t);
      assert_int_equal(sent.told, 1);
      assert_int_equal(atomic_load(&counted.live_blocks), 0);
      free(src);
      free(more);
    }
  }
}

/* No more bytes are under way than the credit, and values take turns. */
static void credit_bounds_and_turns(void **state) {
  (void)state;
  two_ends t;
  two_call sent[4], got[4];
  uint8_t *src = made(kLarge, 1), *dst = malloc(4 * kLarge);
  uint64_t order = 3;
  two_begin(&t, weir_allocator_system(), kFine);
  for (uint32_t i = 0; i < 4; i++) {
    weir_slot slot = {0, i, 1};
    weir_rendezvous_send(t.side[0].r, 1, &slot, (weir_bytes){src, kLarge},
                         two_done(&sent[i]));
    weir_rendezvous_recv(t.side[1].r, 0, &slot, dst + i * kLarge, kLarge,
                         two_done(&got[i]));
  }
  two_pump(&t);
  while (two_deliver(&t, 1, false)) { /* Ready */
  }
  two_pump(&t);
  assert_int_equal(t.side[0].bulk_frames, 16); /* 16 KiB in chunks of 1 KiB */
  weir_rendezvous_wait waits[8];
  assert_int_equal(weir_rendezvous_pending(t.side[0].r, waits, 8), 4);
  for (int i = 0; i < 4; i++) assert_int_equal(waits[i].bytes, 4096);
  two_pump(&t);
  assert_int_equal(t.side[0].bulk_frames, 16);
  two_settle(&t, &order);
  for (uint32_t i = 0; i < 4; i++) {
    assert_int_equal(got[i].status, WEIR_OK);
    assert_memory_equal(src, dst + i * kLarge, kLarge);
  }
  two_end(&t);
  free(src);
  free(dst);
}

static void errors_travel(void **state) {
  (void)state;
  for (int early = 0; early < 2; early++) {
    for (size_t bytes = 4; bytes <= kLarge; bytes += kLarge - 4) {
      two_ends t;
      two_call got;
      uint64_t order = 1;
      uint8_t *dst = malloc(bytes);
      weir_error why = WEIR_ERROR_INIT;
      weir_fail(&why, WEIR_W5003, NULL, "division by zero in node x");
      two_begin(&t, weir_allocator_system(), kFine);
      if (early) weir_rendezvous_send_error(t.side[0].r, 1, &kEdge, &why);
      if (early) two_settle(&t, &order);
      weir_rendezvous_recv(t.side[1].r, 0, &kEdge, dst, bytes, two_done(&got));
      if (!early) two_settle(&t, &order);
      if (!early) weir_rendezvous_send_error(t.side[0].r, 1, &kEdge, &why);
      two_settle(&t, &order);
      assert_string_equal(got.id, "W5003");
      assert_non_null(strstr(got.message, "node x"));
      two_end(&t);
      free(dst);
    }
  }
}

/* A step is dropped at any time by one side, then by the other: all calls end,
 * late frames are ignored, the credit comes back, the next step is whole. */
static void dropped_steps(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    two_ends t;
    two_call sent[8], got[8];
    uint64_t order = seed;
    uint8_t *src = made(kLarge, 1), *dst = malloc(8 * kLarge);
    weir_error why = WEIR_ERROR_INIT;
    weir_fail(&why, WEIR_W5006, NULL, "too late");
    two_begin(&t, weir_allocator_system(), kFine);
    for (uint64_t step = 1; step <= 2; step++) {
      for (uint32_t i = 0; i < 8; i++) {
        weir_slot slot = {i % 3, i, step};
        size_t bytes = i % 2 ? kLarge : 50;
        weir_rendezvous_send(t.side[0].r, 1, &slot, (weir_bytes){src, bytes},
                             two_done(&sent[i]));
        weir_rendezvous_recv(t.side[1].r, 0, &slot, dst + i * kLarge, bytes,
                             two_done(&got[i]));
      }
      uint32_t moves = weir_mix_below(&order, 60);
      for (uint32_t k = 0; step == 1 && k < moves; k++) {
        two_pump(&t);
        two_deliver(&t, (int)weir_mix_below(&order, 2),
                    weir_mix_below(&order, 2) != 0);
      }
      int first = (int)(seed & 1);
      if (step == 1) weir_rendezvous_drop(t.side[first].r, 1, &why);
      if (step == 1 && seed % 3 == 0) two_settle(&t, &order);
      if (step == 1) weir_rendezvous_drop(t.side[!first].r, 1, &why);
      two_settle(&t, &order);
      for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(sent[i].told, 1);
        assert_int_equal(got[i].told, 1);
        if (step == 1) continue;
        assert_int_equal(got[i].status, WEIR_OK);
        assert_memory_equal(src, dst + i * kLarge, i % 2 ? kLarge : 50);
      }
      assert_true(weir_rendezvous_is_empty(t.side[0].r));
      assert_true(weir_rendezvous_is_empty(t.side[1].r));
    }
    two_call late;
    weir_rendezvous_recv(t.side[1].r, 0, &kEdge, dst, 50, two_done(&late));
    two_pump(&t);
    assert_string_equal(late.id, "W5006");
    two_end(&t);
    free(src);
    free(dst);
  }
}

/* A peer is lost at any time: everything with it ends. */
static void lost_peers(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    two_ends t;
    two_call sent[8], got[8], other;
    uint64_t order = seed;
    uint8_t *src = made(kLarge, 1), *dst = malloc(8 * kLarge);
    weir_error why = WEIR_ERROR_INIT;
    weir_fail(&why, WEIR_W7001, NULL, "worker:1 is lost");
    two_begin(&t, weir_allocator_system(), kFine);
    weir_slot fetch = {WEIR__V1__VALUE_KIND__FETCH, 0, 1};
    weir_rendezvous_recv(t.side[0].r, WEIR_PEER_DRIVER, &fetch, dst, 4,
                         two_done(&other));
    for (uint32_t i = 0; i < 8; i++) {
      weir_slot slot = {0, i, 1};
      size_t bytes = i % 2 ? kLarge : 50;
      weir_rendezvous_send(t.side[0].r, 1, &slot, (weir_bytes){src, bytes},
                           two_done(&sent[i]));
      if (i < 6)
        weir_rendezvous_recv(t.side[1].r, 0, &slot, dst + i * kLarge, bytes,
                             two_done(&got[i]));
    }
    uint32_t moves = weir_mix_below(&order, 60);
    for (uint32_t k = 0; k < moves; k++) {
      two_pump(&t);
      two_deliver(&t, (int)weir_mix_below(&order, 2),
                  weir_mix_below(&order, 2) != 0);
    }
    if (seed % 2) t.refuse = true; /* found out by sending */
    weir_rendezvous_lost(t.side[0].r, 1, &why);
    weir_rendezvous_lost(t.side[1].r, 0, &why);
    two_lose(&t);
    two_pump(&t);
    for (uint32_t i = 0; i < 8; i++) {
      assert_int_equal(sent[i].told, 1);
      if (i < 6) assert_int_equal(got[i].told, 1);
    }
    assert_int_equal(other.told, 0);
    assert_true(weir_rendezvous_is_empty(t.side[1].r));
    two_call late;
    weir_rendezvous_send(t.side[0].r, 1, &kEdge, (weir_bytes){src, 4},
                         two_done(&late));
    two_pump(&t);
    assert_string_equal(late.id, "W7001");
    weir_rendezvous_abort(t.side[0].r, &why);
    two_pump(&t);
    assert_int_equal(other.told, 1);
    two_end(&t);
    free(src);
    free(dst);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_arrive),
      cmocka_unit_test(small_values_go_together),
      cmocka_unit_test(a_steady_step_allocates_nothing),
      cmocka_unit_test(pieces_are_consumed),
      cmocka_unit_test(owned_values),
      cmocka_unit_test(credit_bounds_and_turns),
      cmocka_unit_test(errors_travel),
      cmocka_unit_test(dropped_steps),
      cmocka_unit_test(lost_peers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
