/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of a message before it is unpacked.
 *
 * protobuf-c unpacks by recursion, keeps a text only up to its first NUL, takes
 * any bytes for text and any number for an enum, and makes a struct of a
 * hundred bytes out of two. So the bytes are walked first, by the descriptors
 * that it generated: a message that passes here unpacks in bounded memory.
 *
 * The walk keeps a stack of messages within messages. Its depth is bounded by
 * the schema, in which no message contains itself (a test reads it); beyond
 * kDepth the bytes are refused. For each level it counts how often each field
 * came: once at most for a single one, |count| of its row for a repeated one.
 * Time is linear in the bytes. */
#include "runtime/net/wire_check.h"

#include <assert.h>

#include "runtime/base/bytes/proto.h"
#include "runtime/base/utf8.h"
#include "runtime/tensor/shape.h"

enum { kDepth = 8, kFields = 64, kUnknown = 16, kItems = 65536 };

typedef struct limit_row {
  const ProtobufCMessageDescriptor *message;
  uint32_t field, bytes, count;
} limit_row;

/* Each field that is text or bytes (its bytes) or repeated (its count). Those
 * of a value stand first: they are looked for most. */
static const limit_row kLimits[] = {
    {&weir__v1__value__descriptor, 4, WEIR_WIRE_VALUE_BYTES, 0}, /* data */
    {&weir__v1__values__descriptor, 1, 0, kItems},               /* values */
    {&weir__v1__error__descriptor, 1, 7, 0},                     /* id */
    {&weir__v1__error__descriptor, 2, 1024, 0},                  /* message */
    {&weir__v1__error__descriptor, 3, 512, 0},                   /* hint */
    {&weir__v1__error__descriptor, 4, 256, 0},                   /* node */
    {&weir__v1__error__descriptor, 5, 512, 0},                   /* file */
    {&weir__v1__task__descriptor, 1, 128, 0},                    /* job */
    {&weir__v1__hello__descriptor, 3, 128, 0},                   /* build */
    {&weir__v1__hello__descriptor, 5, 16, 0},                    /* job_id */
    {&weir__v1__hello__descriptor, 10, WEIR_NET_ADDRESS_BYTES - 1, 0},
    {&weir__v1__begin__descriptor, 1, 0, 1024}, /* tasks */
    {&weir__v1__begin__descriptor, 2, WEIR_NET_ADDRESS_BYTES - 1, 1024},
    {&weir__v1__begin__descriptor, 5, WEIR_WIRE_SHARE_BYTES - 1, 0}, /* share */
    {&weir__v1__blob_want__descriptor, 1, 64, 0},                    /* hash */
    {&weir__v1__shape__descriptor, 1, 0, WEIR_MAX_RANK},             /* dims */
    {&weir__v1__register__descriptor, 2, 64, 0},             /* bundle */
    {&weir__v1__register__descriptor, 3, 64, 0},             /* plan */
    {&weir__v1__register__descriptor, 7, 0, kItems},         /* feeds */
    {&weir__v1__register__descriptor, 8, 0, kItems},         /* fetches */
    {&weir__v1__register__descriptor, 9, 0, kItems},         /* targets */
    {&weir__v1__run_step__descriptor, 7, 0, kItems},         /* feeds */
    {&weir__v1__step_reply__descriptor, 3, 0, 1024},         /* failures */
    {&weir__v1__step_reply__descriptor, 4, 0, kItems},       /* fetches */
    {&weir__v1__ready__descriptor, 1, 0, kItems},            /* slots */
    {&weir__v1__variable_get__descriptor, 2, 0, kItems},     /* nodes */
    {&weir__v1__variable_set__descriptor, 2, 0, kItems},     /* nodes */
    {&weir__v1__checkpoint_hold__descriptor, 3, 0, kItems},  /* nodes */
    {&weir__v1__checkpoint_folder__descriptor, 1, 4095, 0},  /* path */
    {&weir__v1__checkpoint_folder__descriptor, 2, 64, 0},    /* nonce */
    {&weir__v1__checkpoint_folder__descriptor, 3, 128, 0},   /* manifest */
    {&weir__v1__checkpoint_write__descriptor, 4, 128, 0},    /* file */
    {&weir__v1__checkpoint_write__descriptor, 5, 4096, 0},   /* run_id */
    {&weir__v1__checkpoint_write__descriptor, 6, 0, kItems}, /* nodes */
    {&weir__v1__checkpoint_read__descriptor, 4, 128, 4096},  /* files */
    {&weir__v1__checkpoint_read__descriptor, 5, 0, kItems},  /* rows */
    {&weir__v1__checkpoint_reply__descriptor, 6, 0, kItems}, /* crcs */
    {&weir__v1__checkpoint_reply__descriptor, 7, 0, 64},     /* warnings */
    {&weir__v1__wait__descriptor, 6, 256, 0},                /* node */
    {&weir__v1__tell_pending__descriptor, 2, 0, 4096},       /* waits */
    {&weir__v1__tell_state__descriptor, 5, WEIR_NET_ADDRESS_BYTES - 1, 0},
    {&weir__v1__tell_state__descriptor, 10, 0, 64},  /* held */
    {&weir__v1__tell_state__descriptor, 13, 128, 0}, /* version */
    {&weir__v1__tell_state__descriptor, 14, WEIR_WIRE_SHARE_BYTES - 1, 0},
    {&weir__v1__tell_state__descriptor, 15, WEIR_NET_ADDRESS_BYTES - 1, 16},
    {&weir__v1__echo__descriptor, 2, WEIR_WIRE_ECHO_BYTES, 0},       /* data */
    {&weir__v1__echo_reply__descriptor, 2, WEIR_WIRE_ECHO_BYTES, 0}, /* data */
    {&weir__v1__ps_ledger__descriptor, 14, 0, 1024},    /* members */
    {&weir__v1__ps_ledger__descriptor, 15, 0, 16384},   /* pool */
    {&weir__v1__ps_ledger__descriptor, 16, 0, 16384},   /* leases */
    {&weir__v1__ps_message__descriptor, 25, 0, kItems}, /* sizes */
    {&weir__v1__ps_message__descriptor, 26, WEIR_WIRE_PS_BYTES, kItems},
    {&weir__v1__ps_message__descriptor, 27, 4096, 0}, /* note */
    {&weir__v1__meet_knock__descriptor, 7, WEIR_NET_ADDRESS_BYTES - 1, 0},
    {&weir__v1__meet_seat__descriptor, 4, WEIR_NET_ADDRESS_BYTES - 1, 0},
    {&weir__v1__meet_seat__descriptor, 5, WEIR_NET_ADDRESS_BYTES - 1, 64},
    {&weir__v1__bulk__descriptor, 15, 0, 0}, /* never here */
};

bool weir_wire_limit(const ProtobufCMessageDescriptor *message, uint32_t field,
                     uint32_t *out_bytes, uint32_t *out_count) {
  *out_bytes = *out_count = 0;
  for (size_t i = 0; i < sizeof kLimits / sizeof kLimits[0]; i++) {
    if (kLimits[i].message != message || kLimits[i].field != field) continue;
    *out_bytes = kLimits[i].bytes;
    *out_count = kLimits[i].count;
    return true;
  }
  return false;
}

/* A message that is being walked. */
typedef struct level {
  const ProtobufCMessageDescriptor *message;
  weir_reader r;
  uint32_t unknown, bodies; /* |bodies|: fields of the oneof */
  uint32_t count[kFields];  /* by index in the descriptor */
} level;

typedef struct walk {
  level levels[kDepth];
  uint32_t depth; /* levels in use */
  weir_error_id id;
  weir_error *err;
} walk;

static weir_status refuse(const walk *w, const ProtobufCFieldDescriptor *field,
                          const char *why) {
  const char *message = "Control";
  if (w->depth > 0) message = w->levels[w->depth - 1].message->short_name;
  return weir_fail(w->err, w->id, NULL, "%s%s%s: %s", message,
                   field != NULL ? "." : "", field != NULL ? field->name : "",
                   why);
}

static weir_status enter(walk *w, const ProtobufCMessageDescriptor *message,
                         weir_reader r) {
  if (w->depth == kDepth || message->n_fields > kFields)
    return refuse(w, NULL, "messages within messages are nested too deep");
  w->levels[w->depth] = (level){.message = message, .r = r};
  w->depth++;
  return WEIR_OK;
}

static weir_proto_wire wire_of(ProtobufCType type) {
  switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
      return WEIR_PROTO_FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
      return WEIR_PROTO_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
      return WEIR_PROTO_BYTES;
    default:
      return WEIR_PROTO_VARINT;
  }
}

static weir_status check_text(const walk *w,
                              const ProtobufCFieldDescriptor *field,
                              weir_reader text) {
  if (text.size == 0) return WEIR_OK;
  if (memchr(text.data, 0, text.size) != NULL)
    return refuse(w, field, "the text holds a NUL");
  if (!weir_utf8_valid((weir_sv){(const char *)text.data, text.size}, NULL))
    return refuse(w, field, "the text is not UTF-8");
  return WEIR_OK;
}

/* Adds to the values of |field|: one for a single field, as many as its row
 * allows for a repeated one. */
static weir_status count_up(walk *w, const ProtobufCFieldDescriptor *field,
                            size_t more) {
  level *l = &w->levels[w->depth - 1];
  uint32_t *count = &l->count[field - l->message->fields];
  uint32_t bytes, most = 1;
  if (field->label == PROTOBUF_C_LABEL_REPEATED)
    weir_wire_limit(l->message, field->id, &bytes, &most);
  if (more > most - *count)
    return refuse(w, field, most == 1 ? "stands twice" : "too many values");
  *count += (uint32_t)more;
  return WEIR_OK;
}

/* Several numbers in one field of bytes. */
static weir_status check_packed(walk *w, const ProtobufCFieldDescriptor *field,
                                weir_reader r) {
  size_t count = 0;
  while (weir_reader_left(&r) > 0) {
    if (wire_of(field->type) == WEIR_PROTO_VARINT)
      (void)weir_proto_varint(&r);
    else
      weir_reader_skip(&r, wire_of(field->type) == WEIR_PROTO_FIXED32 ? 4 : 8);
    count++;
  }
  if (r.failed) return refuse(w, field, "packed values are cut");
  return count_up(w, field, count);
}

static weir_status check_bytes(walk *w, const ProtobufCFieldDescriptor *field,
                               weir_reader sub) {
  uint32_t most, count;
  weir_wire_limit(w->levels[w->depth - 1].message, field->id, &most, &count);
  if (sub.size > most) return refuse(w, field, "too long");
  return field->type == PROTOBUF_C_TYPE_STRING ? check_text(w, field, sub)
                                               : WEIR_OK;
}

static weir_status check_field(walk *w, const ProtobufCFieldDescriptor *field,
                               const weir_proto_field *f) {
  level *l = &w->levels[w->depth - 1];
  if (f->wire != wire_of(field->type)) {
    if (f->wire == WEIR_PROTO_BYTES &&
        field->label == PROTOBUF_C_LABEL_REPEATED)
      return check_packed(w, field, f->sub);
    return refuse(w, field, "another type");
  }
  WEIR_TRY(count_up(w, field, 1));
  if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 && l->bodies++ > 0)
    return refuse(w, field, "a second body");
  if (field->type == PROTOBUF_C_TYPE_MESSAGE)
    return enter(w, field->descriptor, f->sub);
  if (field->type == PROTOBUF_C_TYPE_ENUM &&
      (f->value > INT32_MAX || protobuf_c_enum_descriptor_get_value(
                                   field->descriptor, (int)f->value) == NULL))
    return refuse(w, field, "no such value");
  if (f->wire == WEIR_PROTO_BYTES) return check_bytes(w, field, f->sub);
  return WEIR_OK;
}

/* The next field of the innermost message, or its end. */
static weir_status step(walk *w) {
  level *l = &w->levels[w->depth - 1];
  weir_proto_field f;
  if (weir_proto_next(&l->r, &f)) {
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(l->message, f.number);
    if (field != NULL) return check_field(w, field, &f);
    return l->unknown++ < kUnknown ? WEIR_OK
                                   : refuse(w, NULL, "too many unknown fields");
  }
  if (l->r.failed) return refuse(w, NULL, "a field is cut or unsound");
  if (w->depth == 1 && l->bodies == 0) return refuse(w, NULL, "no body");
  w->depth--;
  return WEIR_OK;
}

weir_status weir_wire_check(weir_bytes bytes, weir_error_id id,
                            weir_error *err) {
  walk w;
  w.depth = 0;
  w.id = id;
  w.err = err;
  w.levels[0].message = &weir__v1__control__descriptor;
  WEIR_TRY(enter(&w, &weir__v1__control__descriptor,
                 weir_reader_of(bytes.data, bytes.size)));
  while (w.depth > 0) WEIR_TRY(step(&w));
  return WEIR_OK;
}
