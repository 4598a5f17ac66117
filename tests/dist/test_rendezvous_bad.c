/* SPDX-License-Identifier: Apache-2.0
 *
 * Peers that break the protocol, peers that send anything, and no memory. */
#include "runtime/dist/channel/ends.h"
#include "tests/dist/two_ends.h"

enum { kLarge = 20000 };

static const weir_slot kEdge = {WEIR__V1__VALUE_KIND__EDGE, 3, 5};
static const weir_rendezvous_options kFine = {.credit = 16 << 10,
                                              .chunk = 1 << 10,
                                              .early_count = 8,
                                              .early_bytes = 4 << 10};
static uint8_t data[kLarge + 100], dst[kLarge];

/* One rendezvous, task 1, and a peer, task 0, that is this file. */
typedef struct bed {
  two_ends t;
  weir_error err;
  two_call got;
} bed;

static void bed_begin(bed *b, size_t bytes) {
  b->err = (weir_error)WEIR_ERROR_INIT;
  two_begin(&b->t, weir_allocator_system(), kFine);
  weir_rendezvous_recv(b->t.side[1].r, 0, &kEdge, dst, bytes,
                       two_done(&b->got));
}

/* The peer is given up: all ends, nothing is left. */
static void bed_end(bed *b) {
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W7001, NULL, "given up");
  weir_rendezvous_lost(b->t.side[1].r, 0, &why);
  two_pump(&b->t);
  assert_int_equal(b->got.told, 1);
  two_end(&b->t);
}

static weir_status give_value(bed *b, const weir_slot *slot, size_t bytes,
                              uint64_t total) {
  weir_wire_batch batch;
  weir_wire_batch_init(&batch, weir_allocator_system(),
                       WEIR__V1__CONTROL__BODY_VALUES);
  assert_true(total != 0 ? weir_wire_batch_total(&batch, slot, total)
                         : weir_wire_batch_value(&batch, slot,
                                                 (weir_bytes){data, bytes}));
  weir_status s =
      two_give_control(&b->t, 1, weir_wire_batch_frame(&batch, 7), &b->err);
  weir_wire_batch_release(&batch);
  return s;
}

static weir_status give_ready(bed *b, const weir_slot *slot) {
  weir_wire_batch batch;
  weir_wire_batch_init(&batch, weir_allocator_system(),
                       WEIR__V1__CONTROL__BODY_READY);
  assert_true(weir_wire_batch_slot(&batch, slot));
  weir_status s =
      two_give_control(&b->t, 1, weir_wire_batch_frame(&batch, 7), &b->err);
  weir_wire_batch_release(&batch);
  return s;
}

static weir_status give_chunk(bed *b, uint64_t offset, size_t size,
                              uint64_t total, uint64_t epoch) {
  static uint8_t frame[WEIR_BULK_FRAME_BYTES];
  weir_bulk bulk = {0, kEdge.id, kEdge.step, epoch, offset, total, size, 0};
  size_t n = weir_bulk_write(&bulk, NULL, false, frame);
  memset(frame + n, 7, size);
  return two_give_bulk(&b->t, 1, (weir_bytes){frame, n + size}, &b->err);
}

static weir_status give_credit(bed *b, uint64_t bytes, uint64_t epoch) {
  uint8_t frame[WEIR_BULK_HEADER_BYTES];
  weir_bulk bulk = {.epoch = epoch, .credit = bytes};
  size_t n = weir_bulk_write(&bulk, NULL, false, frame);
  return two_give_bulk(&b->t, 1, (weir_bytes){frame, n}, &b->err);
}

#define refused(b, expr, words)                              \
  do {                                                       \
    assert_error(expr, &(b)->err, "W7011");                  \
    if (strstr((b)->err.message, words) == NULL)             \
      fail_msg("%s is not in: %s", words, (b)->err.message); \
    bed_end(b);                                              \
  } while (0)

static void values_that_do_not_fit(void **state) {
  (void)state;
  bed b;
  bed_begin(&b, 40);
  refused(&b, give_value(&b, &kEdge, 41, 0), "41 bytes, 40 are wanted");
  bed_begin(&b, kLarge);
  refused(&b, give_value(&b, &kEdge, 40, 0), "came as a small one");
  bed_begin(&b, 40);
  refused(&b, give_value(&b, &kEdge, 0, kLarge), "announced");
  bed_begin(&b, kLarge);
  refused(&b, give_value(&b, &kEdge, 0, 8192), "announced with a size");
  weir_slot other = kEdge;
  other.id++;
  bed_begin(&b, 40);
  assert_ok(give_value(&b, &other, 40, 0), &b.err);
  refused(&b, give_value(&b, &other, 40, 0), "came twice");
  bed_begin(&b, 40);
  assert_ok(give_ready(&b, &other), &b.err);
  refused(&b, give_ready(&b, &other), "Ready twice");
  other.kind = WEIR__V1__VALUE_KIND__FETCH;
  bed_begin(&b, 40);
  refused(&b, give_ready(&b, &other), "before it was announced");
}

static void early_values_are_bounded(void **state) {
  (void)state;
  bed b;
  weir_slot other = kEdge;
  bed_begin(&b, 40);
  for (int i = 0; i < 8; i++) {
    other.id++;
    assert_ok(give_value(&b, &other, 4, 0), &b.err);
  }
  other.id++;
  refused(&b, give_ready(&b, &other), "nobody waits for");
  bed_begin(&b, 40);
  assert_ok(give_value(&b, &other, 4096, 0), &b.err);
  other.id++;
  refused(&b, give_value(&b, &other, 1, 0), "nobody waits for");
}

static void chunks_that_do_not_fit(void **state) {
  (void)state;
  bed b;
  bed_begin(&b, kLarge);
  refused(&b, give_chunk(&b, 1, 10, kLarge, 7), "begins at byte 1");
  bed_begin(&b, kLarge);
  refused(&b, give_chunk(&b, 0, 10, kLarge + 1, 7), "are wanted");
  bed_begin(&b, kLarge);
  assert_ok(give_chunk(&b, 0, 100, kLarge, 7), &b.err);
  assert_int_equal(dst[99], 7);
  refused(&b, give_chunk(&b, 99, 100, kLarge, 7), "begins at byte 99");
  bed_begin(&b, kLarge);
  assert_ok(give_chunk(&b, 0, kLarge, kLarge, 7), &b.err);
  refused(&b, give_chunk(&b, 0, kLarge, kLarge, 7), "without being asked");
  bed_begin(&b, 40);
  refused(&b, give_chunk(&b, 0, 40, 40, 7), "without being asked");
  bed_begin(&b, kLarge);
  assert_ok(give_chunk(&b, 0, 100, kLarge, 7), &b.err);
  refused(&b, give_value(&b, &kEdge, 40, 0), "came twice");
}

static void credit_and_epochs(void **state) {
  (void)state;
  bed b;
  uint8_t frame[WEIR_WIRE_SMALL_BYTES];
  Weir__V1__Cut cut = WEIR__V1__CUT__INIT;
  Weir__V1__Control control = WEIR__V1__CONTROL__INIT;
  control.body_case = WEIR__V1__CONTROL__BODY_CUT;
  control.cut = &cut;
  bed_begin(&b, 40);
  refused(&b, give_credit(&b, 1, 7), "credit for 1 bytes");
  bed_begin(&b, 40);
  refused(&b, give_credit(&b, UINT64_MAX, 7), "credit for 1844674407");
  control.epoch = 8;
  size_t n = weir_wire_pack_small(&control, frame);
  bed_begin(&b, 40);
  refused(&b, two_give_control(&b.t, 1, (weir_bytes){frame, n}, &b.err),
          "epoch 8");
  /* old frames are ignored: the slot stays for the new ones */
  bed_begin(&b, kLarge);
  control.epoch = 6;
  n = weir_wire_pack_small(&control, frame);
  assert_ok(two_give_control(&b.t, 1, (weir_bytes){frame, n}, &b.err), &b.err);
  assert_ok(give_credit(&b, 1, 6), &b.err);
  assert_ok(give_chunk(&b, 0, kLarge, kLarge, 6), &b.err);
  two_pump(&b.t);
  assert_int_equal(b.got.told, 0);
  assert_ok(give_chunk(&b, 0, kLarge, kLarge, 7), &b.err);
  two_pump(&b.t);
  assert_int_equal(b.got.status, WEIR_OK);
  bed_end(&b);
  bed_begin(&b, kLarge);
  refused(&b, give_chunk(&b, 0, kLarge, kLarge, 8), "epoch 8");
}

/* Leftovers of steps that have ended are freed. */
static void finished_steps(void **state) {
  (void)state;
  bed b;
  weir_slot other = {0, 9, 2},
            variable = {WEIR__V1__VALUE_KIND__VARIABLE, 9, 2};
  bed_begin(&b, 40);
  assert_ok(give_value(&b, &other, 4, 0), &b.err);
  assert_ok(give_value(&b, &variable, 4, 0), &b.err);
  weir_rendezvous_finish(b.t.side[1].r, 6);
  two_pump(&b.t);
  assert_string_equal(b.got.id, "W5005"); /* step 5 had not ended */
  assert_ok(give_value(&b, &other, 4, 0), &b.err);
  assert_ok(give_ready(&b, &other), &b.err);
  assert_false(weir_rendezvous_is_empty(b.t.side[1].r)); /* the variable */
  two_call got;
  weir_rendezvous_recv(b.t.side[1].r, 0, &variable, dst, 4, two_done(&got));
  two_pump(&b.t);
  assert_int_equal(got.status, WEIR_OK);
  assert_true(weir_rendezvous_is_empty(b.t.side[1].r));
  two_call first, again;
  weir_slot new_one = {0, 1, 9};
  weir_rendezvous_recv(b.t.side[1].r, 0, &new_one, dst, 4, two_done(&first));
  weir_rendezvous_recv(b.t.side[1].r, 0, &new_one, dst, 4, two_done(&again));
  two_pump(&b.t);
  assert_string_equal(again.id, "W9001");
  bed_end(&b);
  assert_string_equal(first.id, "W7001");
}

/* Any frames at all, over a few names, while our side calls and drops. */
static void anything_comes(void **state) {
  (void)state;
  size_t taken = 0, broke = 0;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    bed b;
    uint64_t order = seed;
    two_call calls[12];
    static uint8_t memory[12][kLarge];
    size_t count = 0;
    weir_status s = WEIR_OK;
    bed_begin(&b, kLarge);
    while (s == WEIR_OK && count < 12) {
      weir_slot slot = {weir_mix_below(&order, 5), weir_mix_below(&order, 3),
                        4 + weir_mix_below(&order, 3)};
      size_t bytes = weir_mix_below(&order, 2) ? 40 : kLarge;
      switch (weir_mix_below(&order, 8)) {
        case 0:
          weir_rendezvous_recv(b.t.side[1].r, 0, &slot, memory[count], bytes,
                               two_done(&calls[count]));
          count++;
          break;
        case 1:
          weir_rendezvous_send(b.t.side[1].r, 0, &slot,
                               (weir_bytes){data, bytes},
                               two_done(&calls[count]));
          count++;
          break;
        case 2:
          s = give_value(&b, &slot, bytes > 40 ? 41 : 40,
                         bytes > 40 ? kLarge : 0);
          break;
        case 3:
          s = give_ready(&b, &slot);
          break;
        case 4:
          s = give_chunk(&b, 1000 * weir_mix_below(&order, 3), 1000, kLarge,
                         6 + weir_mix_below(&order, 2));
          break;
        case 5:
          if (weir_mix_below(&order, 4) == 0)
            weir_rendezvous_drop(b.t.side[1].r, slot.step, &b.err);
          break;
        default:
          two_pump(&b.t);
          two_lose(&b.t);
      }
      taken += s == WEIR_OK;
    }
    broke += s != WEIR_OK;
    if (s != WEIR_OK) assert_string_equal(b.err.id, "W7011");
    weir_error why = WEIR_ERROR_INIT;
    weir_fail(&why, WEIR_W7001, NULL, "given up");
    weir_rendezvous_lost(b.t.side[1].r, 0, &why);
    two_lose(&b.t);
    two_pump(&b.t);
    for (size_t i = 0; i < count; i++) assert_int_equal(calls[i].told, 1);
    bed_end(&b);
  }
  assert_true(taken > 10000 && broke > 500);
}

/* Delivers all frames until one is refused. */
static weir_status move_all(two_ends *t, weir_error *err) {
  weir_status s = WEIR_OK;
  for (bool moved = true; moved && s == WEIR_OK;) {
    two_pump(t);
    moved = false;
    for (int i = 0; i < 4 && s == WEIR_OK; i++) {
      two_queue *q = i & 1 ? &t->side[i / 2].bulk : &t->side[i / 2].control;
      two_frame f;
      if (!two_pop(q, &f)) continue;
      moved = true;
      weir_bytes bytes = {f.data, f.size};
      s = i & 1 ? two_give_bulk(t, !(i / 2), bytes, err)
                : two_give_control(t, !(i / 2), bytes, err);
      if (f.released != NULL) f.released(f.self);
      free(f.data);
    }
  }
  return s;
}

/* Each allocation fails, once or from then on: calls end, nothing is lost. */
static void no_memory(void **state) {
  (void)state;
  bool ok = false;
  for (uint64_t k = 1; !ok; k++) {
    for (int for_ever = 0; for_ever < 2; for_ever++) {
      weir_counted_allocator counted;
      weir_counted_allocator_init(&counted, NULL);
      weir_rendezvous_options options = kFine;
      weir_error err = WEIR_ERROR_INIT;
      two_call sent[6], got[6];
      weir_bytes out = {0};
      options.tasks = 2;
      options.epoch = 7;
      two_ends t = {.alloc = &counted.base};
      weir_status s = WEIR_OK;
      for (int i = 0; i < 2; i++) {
        t.side[i].ends = &t;
        t.side[i].out = two_out(&t.side[i]);
      }
      counted.fail_at = k;
      counted.fail_forever = for_ever != 0;
      for (int i = 0; i < 2 && s == WEIR_OK; i++)
        s = weir_rendezvous_create(&counted.base, &options, &t.side[i].r, &err);
      if (s != WEIR_OK) {
        assert_string_equal(err.id, "W6001");
        weir_rendezvous_release(t.side[0].r);
        assert_int_equal(atomic_load(&counted.live_blocks), 0);
        continue;
      }
      for (uint32_t i = 0; i < 6; i++) {
        weir_slot slot = {i == 5 ? WEIR__V1__VALUE_KIND__BLOB : 0, i, 1};
        weir_bytes value = {data, i % 2 ? kLarge : 40};
        weir_rendezvous_send(t.side[0].r, 1, &slot, value, two_done(&sent[i]));
        if (i == 4) s = move_all(&t, &err); /* these come early */
      }
      for (uint32_t i = 0; i < 6; i++) {
        weir_slot slot = {i == 5 ? WEIR__V1__VALUE_KIND__BLOB : 0, i, 1};
        if (i == 5)
          weir_rendezvous_recv_owned(t.side[1].r, 0, &slot, kLarge, &out,
                                     two_done(&got[i]));
        else
          weir_rendezvous_recv(t.side[1].r, 0, &slot, dst, i % 2 ? kLarge : 40,
                               two_done(&got[i]));
      }
      if (s == WEIR_OK) s = move_all(&t, &err);
      ok = s == WEIR_OK;
      for (int i = 0; i < 6; i++)
        ok = ok && got[i].told == 1 && got[i].status == WEIR_OK;
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      bool lost = s != WEIR_OK || t.side[0].broken || t.side[1].broken;
      /* Who can still be reached learns of a value that was not sent. */
      for (int i = 0; i < 6; i++) assert_true(lost || got[i].told == 1);
      weir_fail(&err, WEIR_W7001, NULL, "given up");
      for (int i = 0; i < 2; i++) weir_rendezvous_abort(t.side[i].r, &err);
      two_end(&t);
      for (int i = 0; i < 6; i++) {
        assert_int_equal(sent[i].told, 1);
        assert_int_equal(got[i].told, 1);
      }
      weir_free(&counted.base, (void *)out.data);
      assert_int_equal(atomic_load(&counted.live_blocks), 0);
    }
    assert_true(k < 500);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_that_do_not_fit),
      cmocka_unit_test(early_values_are_bounded),
      cmocka_unit_test(chunks_that_do_not_fit),
      cmocka_unit_test(credit_and_epochs),
      cmocka_unit_test(finished_steps),
      cmocka_unit_test(anything_comes),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
