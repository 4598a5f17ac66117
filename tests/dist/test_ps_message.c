/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/mix.h"
#include "runtime/dist/psnet/ps_message.h"
#include "tests/check.h"

/* Messages of parameter servers on the wire: each number comes as it went, and
 * what is unsound is refused, or harms nobody. */

static const weir_ps_config kConfig = {.mode = WEIR_PS_SYNC,
                                       .servers = 2,
                                       .workers = 5,
                                       .aggregate = 4,
                                       .lease_steps = 3};

/* Packs |m| with |sizes|; the frame is the caller's. */
static weir_bytes pack(const weir_ps_message *m, const uint64_t *sizes,
                       size_t count, uint64_t transfer) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_allocator *alloc = weir_allocator_system();
  weir_ps_frame frame;
  weir_bytes bytes;
  Weir__V1__Control control = WEIR__V1__CONTROL__INIT;
  assert_ok(weir_ps_message_encode(alloc, m, &frame, &err), &err);
  frame.body.transfer = transfer;
  frame.body.sizes = (uint64_t *)sizes;
  frame.body.n_sizes = count;
  control.body_case = WEIR__V1__CONTROL__BODY_PS_MESSAGE;
  control.ps_message = &frame.body;
  assert_ok(weir_wire_pack(alloc, &control, &bytes, &err), &err);
  weir_ps_frame_release(&frame);
  return bytes;
}

static weir_status unpack(const weir_allocator *alloc, weir_bytes bytes,
                          weir_ps_parcel **out, weir_error *err) {
  const weir_net_frame frame = {&bytes, 1, bytes.size, NULL, NULL};
  weir_wire_message message;
  *out = NULL;
  WEIR_TRY(weir_wire_unpack(weir_allocator_system(), &frame, &message, err));
  weir_status s = WEIR_OK;
  if (message.control->body_case == WEIR__V1__CONTROL__BODY_PS_MESSAGE)
    s = weir_ps_message_decode(alloc, message.control->ps_message, &kConfig,
                               "worker:1", out, err);
  weir_wire_message_release(&message);
  return s;
}

static uint64_t some(uint64_t *seed) {
  static const uint64_t kEdges[] = {0, 1, WEIR_PS_NONE, UINT64_C(1) << 63};
  uint32_t which = weir_mix_below(seed, 8);
  return which < 4 ? kEdges[which] : weir_mix_next(seed) >> which * 7;
}

static weir_ps_range some_range(uint64_t *seed) {
  return (weir_ps_range){some(seed), some(seed), (uint32_t)some(seed),
                         (uint32_t)some(seed)};
}

/* A message with the number |kind| and others at random, without pointers. */
static weir_ps_message some_message(uint32_t kind, uint64_t *seed) {
  return (weir_ps_message){.kind = (weir_ps_kind)kind,
                           .epoch = some(seed),
                           .life = some(seed),
                           .generation = some(seed),
                           .worker = (uint32_t)some(seed),
                           .incarnation = some(seed),
                           .seq = some(seed),
                           .lease = some(seed),
                           .done = some(seed),
                           .run = some(seed),
                           .step = some(seed),
                           .k = (uint32_t)some(seed),
                           .version = some(seed),
                           .lr_version = some(seed),
                           .clock = some(seed),
                           .staleness = some(seed),
                           .request = some(seed),
                           .verdict = (weir_ps_verdict)weir_mix_below(seed, 3),
                           .newer = weir_mix_below(seed, 2) == 1,
                           .ok = weir_mix_below(seed, 2) == 1,
                           .range = some_range(seed)};
}

enum { WORDS = 24 };

static void words_of(const weir_ps_message *m, uint64_t words[WORDS]) {
  const uint64_t all[WORDS] = {
      m->kind,        m->epoch,     m->life,          m->generation, m->worker,
      m->incarnation, m->seq,       m->lease,         m->done,       m->run,
      m->step,        m->k,         m->version,       m->lr_version, m->clock,
      m->staleness,   m->request,   m->verdict,       m->newer,      m->ok,
      m->range.first, m->range.end, m->range.k_first, m->range.k_end};
  /* A new field is to stand here too. */
  _Static_assert(sizeof(weir_ps_message) == 208, "a new field");
  memcpy(words, all, sizeof all); /* |note|: by its user */
}

static void assert_same(const weir_ps_message *a, const weir_ps_message *b) {
  uint64_t x[WORDS], y[WORDS];
  words_of(a, x);
  words_of(b, y);
  assert_memory_equal(x, y, sizeof x);
}

static void numbers_come_as_they_went(void **state) {
  (void)state;
  uint64_t seed = 5;
  weir_error err = WEIR_ERROR_INIT;
  const uint64_t sizes[] = {0, 7, UINT64_C(1) << 40};
  for (uint32_t i = 0; i < 20 * WEIR_PS_KIND_COUNT; i++) {
    weir_ps_message m = some_message(i % WEIR_PS_KIND_COUNT, &seed);
    weir_ps_op op = {.kind = (weir_ps_op_kind)(i % (WEIR_PS_OP_OVER + 1)),
                     .worker = i,
                     .lease = some(&seed),
                     .run = some(&seed),
                     .limit = some(&seed),
                     .partial = some(&seed),
                     .range = some_range(&seed),
                     .failed = i % 2 == 0};
    weir_ps_parcel *p;
    if (i % 3 == 0) m.op = &op;
    if (m.kind == WEIR_PS_KV) m.note = (weir_sv){"a\0b", i % 4};
    weir_bytes bytes = pack(&m, sizes, i % 4, i % 4 > 0 ? i : 0);
    assert_ok(unpack(weir_allocator_system(), bytes, &p, &err), &err);
    assert_same(&m, &p->m);
    assert_true(weir_sv_equal(m.note, p->m.note));
    assert_null(p->m.data);
    assert_null(p->m.ledger);
    assert_int_equal(p->m.op != NULL, m.op != NULL);
    if (m.op != NULL) {
      assert_int_equal(p->op.kind, op.kind);
      assert_int_equal(p->op.worker, op.worker);
      assert_int_equal(p->op.lease, op.lease);
      assert_int_equal(p->op.run, op.run);
      assert_int_equal(p->op.limit, op.limit);
      assert_int_equal(p->op.partial, op.partial);
      assert_int_equal(p->op.failed, op.failed);
      assert_memory_equal(&p->op.range, &op.range, sizeof op.range);
    }
    assert_int_equal(p->transfer, i % 4 > 0 ? i : 0);
    assert_int_equal(p->pieces, i % 4);
    assert_memory_equal(p->sizes, sizes, i % 4 * sizeof sizes[0]);
    weir_ps_parcel_release(p);
    weir_wire_free(weir_allocator_system(), bytes);
  }
}

/* ---- Ledgers */

enum { MOST = 16384 };

/* A ledger with |count| ranges in the pool, and as many leases. */
typedef struct paper {
  weir_ps_ledger ledger;
  weir_ps_member members[WEIR_PS_WORKERS];
  weir_ps_range pool[MOST];
  weir_ps_lease leases[MOST];
} paper;

static paper *make_paper(uint32_t workers, size_t count) {
  paper *p = calloc(1, sizeof *p);
  p->ledger = (weir_ps_ledger){.config = kConfig,
                               .epoch = 1,
                               .life = 2,
                               .generation = 3,
                               .cursor = UINT64_C(1) << 63,
                               .limit = WEIR_PS_NONE,
                               .base = 4,
                               .over = true,
                               .failed = true,
                               .next_lease = WEIR_PS_NONE,
                               .next_incarnation = WEIR_PS_NONE,
                               .partial = 5,
                               .earlier = 6,
                               .members = p->members,
                               .pool = p->pool,
                               .leases = p->leases,
                               .pool_count = count,
                               .lease_count = count};
  p->ledger.config.workers = workers;
  for (uint32_t i = 0; i < workers; i++)
    p->members[i] = (weir_ps_member){(weir_ps_member_state)(i % 3),
                                     WEIR_PS_NONE - 1 - i, i};
  for (size_t i = 0; i < count; i++) {
    const uint64_t first = (UINT64_C(1) << 62) + i;
    p->pool[i] = (weir_ps_range){first, first + 1, 2, 4};
    p->leases[i] = (weir_ps_lease){first,
                                   (uint32_t)i % workers,
                                   WEIR_PS_NONE - 1 - i,
                                   {first, first + 2, 0, 3}};
  }
  return p;
}

static void ledgers_come_as_they_went(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_parcel *p;
  weir_ps_ledger *copy = NULL;
  for (size_t count = 0; count < 300; count += 99) {
    paper *of = make_paper(kConfig.workers, count);
    const weir_ps_message m = {.kind = WEIR_PS_GRANTED, .ledger = &of->ledger};
    weir_bytes bytes = pack(&m, NULL, 0, 0);
    assert_ok(unpack(weir_allocator_system(), bytes, &p, &err), &err);
    const weir_ps_ledger *a = &of->ledger, *b = p->m.ledger;
    assert_memory_equal(&a->config, &b->config, sizeof a->config);
    assert_int_equal(b->epoch, 1);
    assert_int_equal(b->life, 2);
    assert_int_equal(b->generation, 3);
    assert_int_equal(b->cursor, a->cursor);
    assert_int_equal(b->limit, a->limit);
    assert_int_equal(b->base, 4);
    assert_true(b->over && b->failed);
    assert_int_equal(b->next_lease, a->next_lease);
    assert_int_equal(b->next_incarnation, a->next_incarnation);
    assert_int_equal(b->partial, 5);
    assert_int_equal(b->earlier, 6);
    for (uint32_t i = 0; i < kConfig.workers; i++) {
      assert_int_equal(a->members[i].state, b->members[i].state);
      assert_int_equal(a->members[i].incarnation, b->members[i].incarnation);
      assert_int_equal(a->members[i].runs, b->members[i].runs);
    }
    assert_int_equal(b->pool_count, count);
    assert_int_equal(b->lease_count, count);
    for (size_t i = 0; i < count; i++) {
      assert_memory_equal(&a->pool[i], &b->pool[i], sizeof a->pool[i]);
      assert_int_equal(a->leases[i].id, b->leases[i].id);
      assert_int_equal(a->leases[i].worker, b->leases[i].worker);
      assert_int_equal(a->leases[i].incarnation, b->leases[i].incarnation);
      assert_memory_equal(&a->leases[i].range, &b->leases[i].range,
                          sizeof a->pool[i]);
    }
    assert_ok(weir_ps_ledger_create(weir_allocator_system(), &kConfig, 9, &copy,
                                    &err),
              &err);
    assert_ok(weir_ps_ledger_copy(copy, b, &err), &err);
    weir_ps_ledger_release(copy);
    weir_ps_parcel_release(p);
    weir_wire_free(weir_allocator_system(), bytes);
    free(of);
  }
}

/* What the limits of fields let through fits a frame. */
static void the_largest_ledger_fits_a_frame(void **state) {
  (void)state;
  paper *of = make_paper(WEIR_PS_WORKERS, MOST);
  const weir_ps_message m = {.kind = WEIR_PS_GRANTED, .ledger = &of->ledger};
  weir_bytes bytes = pack(&m, NULL, 0, 0);
  assert_in_range(bytes.size, 1 << 20, WEIR_WIRE_FRAME_BYTES);
  weir_wire_free(weir_allocator_system(), bytes);
  free(of);
}

/* ---- Unsound */

static void refuse(Weir__V1__PsMessage *body, const char *words) {
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_parcel *p;
  assert_error(weir_ps_message_decode(weir_allocator_system(), body, &kConfig,
                                      "worker:1", &p, &err),
               &err, "W7011");
  if (strncmp(err.message, "worker:1 sends ", 15) != 0 ||
      strstr(err.message, words) == NULL)
    fail_msg("%s: not \"%s\"", err.message, words);
  assert_null(p);
}

static void unsound_numbers_are_refused(void **state) {
  (void)state;
  paper *of = make_paper(kConfig.workers, 1);
  weir_ps_op op = {.kind = WEIR_PS_OP_OVER};
  const weir_ps_message m = {.ledger = &of->ledger, .op = &op};
  weir_error err = WEIR_ERROR_INIT;
  uint64_t sizes[] = {UINT64_C(1) << 62, UINT64_C(1) << 62};
  weir_ps_frame f;
  assert_ok(weir_ps_message_encode(weir_allocator_system(), &m, &f, &err),
            &err);
  f.body.kind = WEIR_PS_KIND_COUNT;
  refuse(&f.body, "whose kind is 42:");
  f.body.kind = WEIR_PS_PUSHED;
  f.body.note = (ProtobufCBinaryData){1, (uint8_t *)"x"};
  refuse(&f.body, "whose note's size is 1:");
  f.body.note.len = 0;
  f.body.verdict = 3;
  refuse(&f.body, "whose verdict is 3:");
  f.body.verdict = 0;
  f.op.kind = WEIR_PS_OP_OVER + 1;
  refuse(&f.body, "whose op is 8:");
  f.op.kind = 0;
  f.ledger.mode = WEIR_PS_ASYNC;
  refuse(&f.body, "whose ledger's mode is 0:");
  f.ledger.mode = WEIR_PS_SYNC;
  f.ledger.aggregate = 5;
  refuse(&f.body, "whose ledger's aggregate is 5:");
  f.ledger.aggregate = 4;
  f.ledger.n_members = 4;
  refuse(&f.body, "whose ledger's members is 4:");
  f.ledger.n_members = 5;
  f.ledger.members[2]->state = 3;
  refuse(&f.body, "whose ledger's member is 3:");
  f.ledger.members[2]->state = 0;
  f.body.sizes = sizes;
  f.body.n_sizes = 2;
  refuse(&f.body, "whose number of values is 2:");
  f.body.transfer = 1;
  refuse(&f.body, "whose value's size is 4611686018427387904:");
  weir_ps_frame_release(&f);
  free(of);
}

/* Bytes that were changed on the way, under a good checksum: they are refused,
 * or are a message whose ledger is refused or taken. */
static void changed_bytes_harm_nobody(void **state) {
  (void)state;
  uint64_t seed = 11;
  uint32_t taken = 0, refused = 0;
  paper *of = make_paper(kConfig.workers, 2);
  const uint64_t sizes[] = {1, 300};
  const weir_ps_op op = {.kind = WEIR_PS_OP_LEASE, .range = {1, 2, 3, 4}};
  weir_ps_message m = some_message(WEIR_PS_GRANTED, &seed);
  m.ledger = &of->ledger;
  m.op = &op;
  weir_bytes bytes = pack(&m, sizes, 2, 9);
  for (int round = 0; round < 20000; round++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_ps_parcel *p;
    weir_ps_ledger *copy = NULL;
    size_t size = bytes.size - weir_mix_below(&seed, 2);
    uint8_t *other = malloc(size);
    memcpy(other, bytes.data, size);
    for (uint32_t n = weir_mix_below(&seed, 3); n < 3; n++)
      other[5 + weir_mix_below(&seed, (uint32_t)size - 5)] =
          (uint8_t)weir_mix_next(&seed);
    uint32_t crc = weir_crc32c(0, other + 5, size - 5);
    for (int i = 0; i < 4; i++) other[1 + i] = (uint8_t)(crc >> 8 * i);
    weir_status s =
        unpack(weir_allocator_system(), (weir_bytes){other, size}, &p, &err);
    free(other);
    if (s != WEIR_OK) {
      assert_true(strcmp(err.id, "W7010") == 0 || strcmp(err.id, "W7011") == 0);
      assert_null(p);
      refused++;
    }
    if (p == NULL) continue;
    taken++;
    if (p->m.ledger != NULL) {
      assert_ok(weir_ps_ledger_create(weir_allocator_system(), &kConfig, 9,
                                      &copy, &err),
                &err);
      if (weir_ps_ledger_copy(copy, p->m.ledger, &err) != WEIR_OK)
        assert_string_equal(err.id, "W7091");
      weir_ps_ledger_release(copy);
    }
    weir_ps_parcel_release(p);
  }
  assert_true(taken > 100 && refused > 100);
  weir_wire_free(weir_allocator_system(), bytes);
  free(of);
}

static void without_memory_nothing_is_left(void **state) {
  (void)state;
  weir_counted_allocator memory;
  paper *of = make_paper(kConfig.workers, 300);
  const uint64_t sizes[] = {1, 300};
  const weir_ps_message m = {.ledger = &of->ledger};
  weir_bytes bytes = pack(&m, sizes, 2, 9);
  weir_status s = WEIR_RESOURCE_EXHAUSTED, t = s;
  for (uint64_t k = 1; s != WEIR_OK || t != WEIR_OK; k++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_ps_parcel *p;
    weir_ps_frame f;
    weir_counted_allocator_init(&memory, NULL);
    memory.fail_at = k;
    s = unpack(&memory.base, bytes, &p, &err);
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
    weir_ps_parcel_release(p);
    weir_counted_allocator_init(&memory, NULL);
    memory.fail_at = k;
    t = weir_ps_message_encode(&memory.base, &m, &f, &err);
    if (t != WEIR_OK) assert_string_equal(err.id, "W6001");
    weir_ps_frame_release(&f);
    assert_int_equal(atomic_load(&memory.live_bytes), 0);
  }
  weir_wire_free(weir_allocator_system(), bytes);
  free(of);
}

/* The numbers on the wire are those of the enum: they stay. */
static void kinds_keep_their_numbers(void **state) {
  (void)state;
  static const char *const kNames[] = {
      "CLAIM",   "GRANTED",  "RECORD",   "RECORDED", "COMMITTED", "GENERATION",
      "SAVE",    "TAKEN",    "SAVED",    "EPOCH",    "STATE",     "REFUSED",
      "RESTORE", "RESTORED", "FENCE",    "FENCED",   "JOIN",      "WELCOME",
      "WANT",    "LEASE",    "PROGRESS", "LEAVE",    "GONE",      "BYE",
      "FAILED",  "OVER",     "PULL",     "PULLED",   "PUSH",      "PUSHED",
      "ASK",     "MARK",     "REST",     "SPARE",    "TAKE",      "READY",
      "COMMIT",  "NORM",     "FETCH",    "FETCHED",  "REPORT",    "KV"};
  enum { COUNT = sizeof kNames / sizeof kNames[0] };
  assert_int_equal(WEIR_PS_KIND_COUNT, COUNT);
  for (int i = 0; i < COUNT; i++)
    assert_string_equal(weir_ps_kind_name((weir_ps_kind)i), kNames[i]);
  assert_int_equal(WEIR_PS_BOUNDED, 2);
  assert_int_equal(WEIR_PS_AGAIN, 2);
  assert_int_equal(WEIR_PS_FENCING, 2);
  assert_int_equal(WEIR_PS_OP_OVER, 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_come_as_they_went),
      cmocka_unit_test(ledgers_come_as_they_went),
      cmocka_unit_test(the_largest_ledger_fits_a_frame),
      cmocka_unit_test(unsound_numbers_are_refused),
      cmocka_unit_test(changed_bytes_harm_nobody),
      cmocka_unit_test(without_memory_nothing_is_left),
      cmocka_unit_test(kinds_keep_their_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
