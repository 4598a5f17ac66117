/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NET_MESSAGES_H_
#define TESTS_NET_MESSAGES_H_

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/net/wire.h"

/* Messages of every kind, filled from the descriptors: each field gets a value
 * other than its default, a repeated one gets three. For tests and seeds; the
 * memory is never freed but with the arena. */

static void fill_message(weir_arena *arena, ProtobufCMessage *message,
                         uint32_t *seed);

static uint32_t fill_next(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

static void *fill_array(weir_arena *arena, size_t count, size_t bytes) {
  void *memory = weir_arena_array(arena, count, bytes);
  assert(memory != NULL);
  return memory;
}

/* Writes one value of |field| to |dst|. */
static inline void fill_value(weir_arena *arena,
                              const ProtobufCFieldDescriptor *field, void *dst,
                              uint32_t *seed) {
  switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE: {
      const ProtobufCMessageDescriptor *d = field->descriptor;
      ProtobufCMessage *m = fill_array(arena, 1, d->sizeof_message);
      protobuf_c_message_init(d, m);
      fill_message(arena, m, seed);
      *(ProtobufCMessage **)dst = m;
      break;
    }
    case PROTOBUF_C_TYPE_STRING:
      *(char **)dst = (char *)"\xc3\xa4z5";
      break;
    case PROTOBUF_C_TYPE_BYTES: {
      ProtobufCBinaryData data = {4, fill_array(arena, 4, 1)};
      for (int i = 0; i < 4; i++) data.data[i] = (uint8_t)fill_next(seed);
      *(ProtobufCBinaryData *)dst = data;
      break;
    }
    case PROTOBUF_C_TYPE_BOOL:
      *(protobuf_c_boolean *)dst = 1;
      break;
    case PROTOBUF_C_TYPE_ENUM:
      *(int *)dst = 1 + (int)(fill_next(seed) % 3);
      break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_INT64:
      *(uint64_t *)dst =
          1 + ((uint64_t)fill_next(seed) << 24 ^ fill_next(seed));
      break;
    default:
      *(uint32_t *)dst = 1 + fill_next(seed) % 100000;
  }
}

static inline size_t fill_bytes_of(const ProtobufCFieldDescriptor *field) {
  switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
    case PROTOBUF_C_TYPE_STRING:
      return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
      return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_INT64:
      return 8;
    default:
      return 4;
  }
}

/* Fills all fields but those of a oneof. The schema has no circles. */
static void fill_message(weir_arena *arena, ProtobufCMessage *message,
                         uint32_t *seed) {
  const ProtobufCMessageDescriptor *d = message->descriptor;
  for (unsigned i = 0; i < d->n_fields; i++) {
    const ProtobufCFieldDescriptor *f = &d->fields[i];
    char *at = (char *)message + f->offset;
    if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) continue;
    if (f->label != PROTOBUF_C_LABEL_REPEATED) {
      fill_value(arena, f, at, seed);
      continue;
    }
    char *items = fill_array(arena, 3, fill_bytes_of(f));
    for (size_t k = 0; k < 3; k++)
      fill_value(arena, f, items + k * fill_bytes_of(f), seed);
    *(size_t *)((char *)message + f->quantifier_offset) = 3;
    *(void **)at = items;
  }
}

/* A Control with the body number |body|, a field of the oneof. */
static inline Weir__V1__Control *message_of(weir_arena *arena, uint32_t body) {
  Weir__V1__Control *c = fill_array(arena, 1, sizeof *c);
  const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(
      &weir__v1__control__descriptor, body);
  uint32_t seed = body;
  weir__v1__control__init(c);
  assert(f != NULL);
  c->epoch = 5;
  c->body_case = (Weir__V1__Control__BodyCase)body;
  fill_value(arena, f, (char *)c + f->offset, &seed);
  return c;
}

/* Whether a body has that number. */
static inline bool has_body(uint32_t body) {
  return protobuf_c_message_descriptor_get_field(&weir__v1__control__descriptor,
                                                 body) != NULL;
}

/* The number of a Control's last body; the first is 3. */
static inline uint32_t last_body(void) {
  const ProtobufCMessageDescriptor *d = &weir__v1__control__descriptor;
  return d->fields[d->n_fields - 1].id;
}

#endif
