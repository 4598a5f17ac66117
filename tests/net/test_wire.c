/* SPDX-License-Identifier: Apache-2.0
 *
 * Control messages: each kind there and back, cut anywhere, damaged anywhere;
 * and messages with a good checksum that are wrong inside. */
#include "runtime/net/wire.h"

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/bytes/proto.h"
#include "runtime/net/wire_check.h"
#include "runtime/net/wire_error.h"
#include "tests/check.h"
#include "tests/net/messages.h"

static weir_net_frame frame_of(const weir_bytes *pieces, size_t count) {
  weir_net_frame frame = {.pieces = pieces, .count = count};
  for (size_t i = 0; i < count; i++) frame.size += pieces[i].size;
  return frame;
}

static weir_status unpack(weir_bytes bytes, weir_wire_message *out,
                          weir_error *err) {
  weir_net_frame frame = frame_of(&bytes, 1);
  return weir_wire_unpack(weir_allocator_system(), &frame, out, err);
}

static bool same_bytes(weir_bytes a, weir_bytes b) {
  return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* ---- There and back */

static void each_message_comes_back(void **state) {
  (void)state;
  const weir_allocator *alloc = weir_allocator_system();
  weir_error err = WEIR_ERROR_INIT;
  for (uint32_t body = 3; body <= last_body(); body++) {
    if (!has_body(body)) continue;
    weir_arena arena;
    weir_arena_init(&arena, alloc);
    weir_bytes frame, again;
    weir_wire_message message;
    assert_ok(weir_wire_pack(alloc, message_of(&arena, body), &frame, &err),
              &err);
    assert_ok(unpack(frame, &message, &err), &err);
    assert_int_equal(message.control->body_case, body);
    assert_int_equal(message.control->epoch, 5);
    assert_ok(weir_wire_pack(alloc, message.control, &again, &err), &err);
    assert_true(same_bytes(frame, again));
    weir_wire_message_release(&message);
    weir_wire_free(alloc, again);
    weir_wire_free(alloc, frame);
    weir_arena_release(&arena);
  }
  weir_wire_message_release(NULL);
}

/* Cut into two pieces at each byte, and into pieces of one byte. */
static void pieces_are_cut_anywhere(void **state) {
  (void)state;
  const weir_allocator *alloc = weir_allocator_system();
  weir_error err = WEIR_ERROR_INIT;
  weir_arena arena;
  weir_arena_init(&arena, alloc);
  weir_bytes frame, pieces[4096];
  assert_ok(weir_wire_pack(
                alloc, message_of(&arena, WEIR__V1__CONTROL__BODY_STEP_REPLY),
                &frame, &err),
            &err);
  assert_true(frame.size > 100 && frame.size < 4096);
  for (size_t cut = 0; cut <= frame.size + 1; cut++) {
    size_t count = cut > frame.size ? frame.size : 2;
    pieces[0] = (weir_bytes){frame.data, cut};
    pieces[1] = (weir_bytes){frame.data + cut, frame.size - cut};
    for (size_t i = 0; cut > frame.size && i < count; i++)
      pieces[i] = (weir_bytes){frame.data + i, 1};
    weir_net_frame cut_up = frame_of(pieces, count);
    weir_wire_message message;
    assert_ok(weir_wire_unpack(alloc, &cut_up, &message, &err), &err);
    assert_int_equal(message.control->step_reply->n_fetches, 3);
    weir_wire_message_release(&message);
  }
  weir_wire_free(alloc, frame);
  weir_arena_release(&arena);
}

static void damage_is_found(void **state) {
  (void)state;
  const weir_allocator *alloc = weir_allocator_system();
  weir_error err = WEIR_ERROR_INIT;
  weir_wire_message message;
  weir_arena arena;
  weir_arena_init(&arena, alloc);
  weir_bytes frame;
  assert_ok(weir_wire_pack(alloc,
                           message_of(&arena, WEIR__V1__CONTROL__BODY_REGISTER),
                           &frame, &err),
            &err);
  for (size_t size = 0; size < frame.size; size++) {
    uint8_t *copy = malloc(size + 1); /* sanitizers see reads past its end */
    memcpy(copy, frame.data, size);
    assert_error(unpack((weir_bytes){copy, size}, &message, &err), &err,
                 "W7010");
    assert_null(message.control);
    free(copy);
  }
  for (size_t bit = 0; bit < 8 * frame.size; bit++) {
    uint8_t *at = (uint8_t *)frame.data + bit / 8;
    *at ^= (uint8_t)(1u << bit % 8);
    assert_error(unpack(frame, &message, &err), &err, "W7010");
    *at ^= (uint8_t)(1u << bit % 8);
  }
  assert_error(unpack((weir_bytes){0}, &message, &err), &err, "W7010");
  weir_bytes long_one = {frame.data, WEIR_WIRE_FRAME_BYTES + 1};
  assert_error(unpack(long_one, &message, &err), &err, "W7010");
  weir_wire_free(alloc, frame);
  weir_arena_release(&arena);
}

/* ---- Wrong inside */

/* Unpacks a Control of these bytes, with a good checksum before them. */
static weir_status unpack_body(weir_strbuf *body, weir_wire_message *out,
                               weir_error *err) {
  weir_sv view = weir_strbuf_view(body);
  uint8_t *bytes = malloc(5 + view.size);
  uint32_t crc = weir_crc32c(0, view.data, view.size);
  bytes[0] = 0x0d;
  for (int i = 0; i < 4; i++) bytes[1 + i] = (uint8_t)(crc >> 8 * i);
  if (view.size > 0) memcpy(bytes + 5, view.data, view.size);
  weir_status s = unpack((weir_bytes){bytes, 5 + view.size}, out, err);
  free(bytes);
  weir_strbuf_release(body);
  return s;
}

/* As that, of a Control with |inner| as body |number|. */
static weir_status unpack_in(uint32_t number, weir_strbuf *inner,
                             weir_wire_message *out, weir_error *err) {
  weir_strbuf body;
  weir_strbuf_init(&body, weir_allocator_system());
  weir_proto_put_bytes(&body, number, weir_strbuf_view(inner));
  weir_strbuf_release(inner);
  return unpack_body(&body, out, err);
}

static weir_strbuf text_of(void) {
  weir_strbuf b;
  weir_strbuf_init(&b, weir_allocator_system());
  return b;
}

#define assert_refused(expr, err, words)                   \
  do {                                                     \
    assert_error(expr, err, "W7010");                      \
    if (strstr((err)->message, words) == NULL)             \
      fail_msg("%s is not in: %s", words, (err)->message); \
  } while (0)

/* RegisterReply.error.message */
static weir_status unpack_text(weir_sv text, weir_wire_message *m,
                               weir_error *err) {
  weir_strbuf error = text_of(), reply = text_of();
  weir_proto_put_bytes(&error, 2, text);
  weir_proto_put_bytes(&reply, 2, weir_strbuf_view(&error));
  weir_strbuf_release(&error);
  return unpack_in(12, &reply, m, err);
}

static void texts_are_checked(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_wire_message m;
  static char long_text[1026];
  memset(long_text, 'x', 1025);
  assert_ok(unpack_text(WEIR_SV_LIT("gr\xc3\xbc\xc3\x9f"), &m, &err), &err);
  assert_string_equal(m.control->register_reply->error->message,
                      "gr\xc3\xbc\xc3\x9f");
  weir_wire_message_release(&m);
  assert_refused(unpack_text((weir_sv){"a\0b", 3}, &m, &err), &err,
                 "Error.message: the text holds a NUL");
  assert_refused(unpack_text(WEIR_SV_LIT("\xc3("), &m, &err), &err,
                 "not UTF-8");
  assert_refused(unpack_text((weir_sv){long_text, 1025}, &m, &err), &err,
                 "too long");
  assert_ok(unpack_text((weir_sv){long_text, 1024}, &m, &err), &err);
  weir_wire_message_release(&m);
}

static void bodies_are_one(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_wire_message m;
  weir_strbuf b = text_of();
  assert_refused(unpack_body(&b, &m, &err), &err, "no body");
  b = text_of();
  weir_proto_put_int(&b, 2, 9);
  assert_refused(unpack_body(&b, &m, &err), &err, "no body");
  b = text_of();
  weir_proto_put_bytes(&b, 5, WEIR_SV_LIT(""));
  weir_proto_put_bytes(&b, 6, WEIR_SV_LIT(""));
  assert_refused(unpack_body(&b, &m, &err), &err, "a second body");
  b = text_of();
  weir_proto_put_bytes(&b, 5, WEIR_SV_LIT(""));
  weir_proto_put_bytes(&b, 5, WEIR_SV_LIT(""));
  assert_refused(unpack_body(&b, &m, &err), &err, "stands twice");
}

static void fields_have_limits(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_wire_message m;
  weir_strbuf b = text_of(); /* Values of 65,537 empty values */
  for (int i = 0; i < 65537; i++) weir_proto_put_bytes(&b, 1, WEIR_SV_LIT(""));
  assert_refused(unpack_in(18, &b, &m, &err), &err, "too many values");
  b = text_of();
  for (int i = 0; i < 65536; i++) weir_proto_put_bytes(&b, 1, WEIR_SV_LIT(""));
  assert_ok(unpack_in(18, &b, &m, &err), &err);
  assert_int_equal(m.control->values->n_values, 65536);
  assert_true(m.arena.used_bytes <= WEIR_WIRE_MEMORY_BYTES);
  weir_wire_message_release(&m);
  b = text_of(); /* VariableGet.nodes, packed, then one by one */
  weir_strbuf packed = text_of();
  for (int i = 0; i < 65536; i++) weir_proto_put_packed_varint(&packed, 1);
  weir_proto_put_bytes(&b, 2, weir_strbuf_view(&packed));
  weir_strbuf_release(&packed);
  weir_proto_put_int(&b, 2, 1);
  assert_refused(unpack_in(21, &b, &m, &err), &err, "too many values");
  b = text_of();
  weir_proto_put_bytes(&b, 2, WEIR_SV_LIT("\xff"));
  assert_refused(unpack_in(21, &b, &m, &err), &err, "packed values are cut");
  b = text_of(); /* Ping.number as bytes */
  weir_proto_put_bytes(&b, 1, WEIR_SV_LIT("x"));
  assert_refused(unpack_in(5, &b, &m, &err), &err, "Ping.number: another type");
  b = text_of(); /* TellFate.fate */
  weir_proto_put_int(&b, 2, 4);
  assert_refused(unpack_in(25, &b, &m, &err), &err, "no such value");
  b = text_of();
  weir_proto_put_int(&b, 2, -1);
  assert_refused(unpack_in(25, &b, &m, &err), &err, "no such value");
}

static void unknown_fields_are_passed_over(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_wire_message m;
  weir_strbuf b = text_of();
  weir_proto_put_int(&b, 1, 77);
  for (int i = 0; i < 16; i++)
    weir_proto_put_bytes(&b, 1000, WEIR_SV_LIT("later"));
  assert_ok(unpack_in(5, &b, &m, &err), &err);
  assert_int_equal(m.control->ping->number, 77);
  weir_wire_message_release(&m);
  b = text_of();
  for (int i = 0; i < 17; i++) weir_proto_put_int(&b, 1000, 1);
  assert_refused(unpack_in(5, &b, &m, &err), &err, "too many unknown fields");
}

/* A message that a peer would refuse does not leave. */
static void senders_keep_the_limits(void **state) {
  (void)state;
  const weir_allocator *alloc = weir_allocator_system();
  weir_error err = WEIR_ERROR_INIT;
  weir_bytes frame;
  static uint8_t data[WEIR_WIRE_VALUE_BYTES + 1];
  Weir__V1__Value value = WEIR__V1__VALUE__INIT, *list[300];
  Weir__V1__Values values = WEIR__V1__VALUES__INIT;
  Weir__V1__Control control = WEIR__V1__CONTROL__INIT;
  for (int i = 0; i < 300; i++) list[i] = &value;
  control.body_case = WEIR__V1__CONTROL__BODY_VALUES;
  control.values = &values;
  values.values = list;
  values.n_values = 1;
  value.data = (ProtobufCBinaryData){sizeof data, data};
  assert_error(weir_wire_pack(alloc, &control, &frame, &err), &err, "W7012");
  assert_null(frame.data);
  value.data.len--;
  assert_ok(weir_wire_pack(alloc, &control, &frame, &err), &err);
  weir_wire_free(alloc, frame);
  values.n_values = 300;
  assert_error(weir_wire_pack(alloc, &control, &frame, &err), &err, "W7012");
  control.body_case = WEIR__V1__CONTROL__BODY__NOT_SET;
  assert_error(weir_wire_pack(alloc, &control, &frame, &err), &err, "W7012");
}

/* Every field that can grow has a row; rows of others there are none. */
static void each_field_has_its_limit(void **state) {
  (void)state;
  const ProtobufCMessageDescriptor *seen[64] = {&weir__v1__control__descriptor};
  size_t count = 1, fields = 0;
  for (size_t i = 0; i < count; i++) {
    for (unsigned k = 0; k < seen[i]->n_fields; k++) {
      const ProtobufCFieldDescriptor *f = &seen[i]->fields[k];
      bool text =
          f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_BYTES;
      bool many = f->label == PROTOBUF_C_LABEL_REPEATED;
      uint32_t bytes, most;
      bool row = weir_wire_limit(seen[i], f->id, &bytes, &most);
      if (row != (text || many) || (bytes > 0) != text || (most > 0) != many)
        fail_msg("%s.%s: no limit, or one too many", seen[i]->short_name,
                 f->name);
      fields += row;
      if (f->type != PROTOBUF_C_TYPE_MESSAGE) continue;
      size_t at = 0;
      while (at < count && seen[at] != f->descriptor) at++;
      assert_true(at < 64);
      if (at == count) seen[count++] = f->descriptor;
    }
  }
  assert_true(count > 30 && fields > 20);
}

/* ---- Errors, memory */

static void errors_travel(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT, back = WEIR_ERROR_INIT;
  Weir__V1__Error e;
  weir_mark at = {"a.weir.yaml", 3, 7, 3, 9};
  weir_fail(&err, WEIR_W5004, &at, "a NaN, \xc3\xa4");
  weir_hint(&err, "look at %s", "loss");
  weir_error_set_node(&err, "loss", 4);
  weir_wire_error_put(&err, &e);
  assert_true(weir_wire_error_is(&e));
  assert_int_equal(weir_wire_error_get(&e, &back), err.code);
  assert_string_equal(back.id, "W5004");
  assert_string_equal(back.message, err.message);
  assert_string_equal(back.hint, "look at loss");
  assert_string_equal(back.node, "loss");
  assert_string_equal(back.file, "a.weir.yaml");
  assert_int_equal(back.line, 3);
  assert_int_equal(back.col, 7);
  e.id = (char *)"W7999";
  assert_error(weir_wire_error_get(&e, &back), &back, "W7010");
  assert_non_null(strstr(back.message, "W7999"));
  e.id = (char *)"";
  assert_false(weir_wire_error_is(&e));
  assert_false(weir_wire_error_is(NULL));
  memcpy(err.message, "\xff", 2); /* not UTF-8: left out, not refused later */
  weir_wire_error_put(&err, &e);
  assert_string_equal(e.message, "");
}

static void no_memory(void **state) {
  (void)state;
  weir_counted_allocator counted;
  weir_arena arena;
  weir_arena_init(&arena, weir_allocator_system());
  Weir__V1__Control *control =
      message_of(&arena, WEIR__V1__CONTROL__BODY_RUN_STEP);
  bool ok = false;
  for (uint64_t k = 1; !ok; k++) {
    for (int for_ever = 0; for_ever < 2; for_ever++) {
      weir_error err = WEIR_ERROR_INIT;
      weir_wire_message m = {0};
      weir_bytes frame = {0};
      weir_counted_allocator_init(&counted, NULL);
      counted.fail_at = k;
      counted.fail_forever = for_ever != 0;
      weir_status s = weir_wire_pack(&counted.base, control, &frame, &err);
      weir_bytes halves[2] = {
          {frame.data, frame.size / 2},
          {frame.data + frame.size / 2, frame.size - frame.size / 2}};
      weir_net_frame cut = frame_of(halves, 2);
      if (s == WEIR_OK) s = weir_wire_unpack(&counted.base, &cut, &m, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      ok = s == WEIR_OK;
      weir_wire_message_release(&m);
      weir_wire_free(&counted.base, frame);
      assert_int_equal(atomic_load(&counted.live_blocks), 0);
    }
    assert_true(k < 1000);
  }
  weir_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_message_comes_back),
      cmocka_unit_test(pieces_are_cut_anywhere),
      cmocka_unit_test(damage_is_found),
      cmocka_unit_test(texts_are_checked),
      cmocka_unit_test(bodies_are_one),
      cmocka_unit_test(fields_have_limits),
      cmocka_unit_test(unknown_fields_are_passed_over),
      cmocka_unit_test(senders_keep_the_limits),
      cmocka_unit_test(each_field_has_its_limit),
      cmocka_unit_test(errors_travel),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
