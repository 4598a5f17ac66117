/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_WIRE_H_
#define WEIR_NET_WIRE_H_

#include "runtime/base/env.h"
#include "runtime/net/task.pb-c.h" /* generated from proto/weir/v1/task.proto */
#include "runtime/net/transport.h"

/* Control messages, to and from frames.
 *
 * A control frame is one Weir__V1__Control: a checksum, the epoch and one body.
 * This header is the door to protobuf-c: the structs of all messages come with
 * it, and nobody calls protobuf-c's functions but the files beside it.
 *
 *   Weir__V1__Ping ping = WEIR__V1__PING__INIT;
 *   Weir__V1__Control control = WEIR__V1__CONTROL__INIT;
 *   ping.number = 7;
 *   control.body_case = WEIR__V1__CONTROL__BODY_PING;
 *   control.ping = &ping;
 *   weir_bytes frame;
 *   WEIR_TRY(weir_wire_pack(env->alloc, &control, &frame, err));
 *   ... send it ...
 *   weir_wire_free(env->alloc, frame);
 *
 *   weir_wire_message message;
 *   WEIR_TRY(weir_wire_unpack(env->alloc, frame, &message, err));
 *   switch (message.control->body_case) ...
 *   weir_wire_message_release(&message);
 *
 * A frame comes from a peer that may be anybody. It is checked whole, without
 * memory of its own, before it is unpacked: the checksum; that each text is
 * UTF-8 without NUL; the limit of each field; that enums have a value of
 * theirs, that a field which stands once stands once, and that there is one
 * body. Unknown fields are passed over, a few of them. All functions are pure
 * but for memory; any thread. */

enum {
  WEIR_WIRE_FRAME_BYTES = 2 << 20,   /* of a control frame */
  WEIR_WIRE_MEMORY_BYTES = 32 << 20, /* of a message, unpacked */
  WEIR_WIRE_SHARE_BYTES = 64,        /* of a share's name, with its NUL */
  WEIR_WIRE_VALUE_BYTES = 8 << 10,   /* of a value within a control message */
  WEIR_WIRE_ECHO_BYTES = 256 << 10,  /* of Echo and of its answer */
  WEIR_WIRE_PS_BYTES = 256 << 10,    /* of values within a PsMessage */
  WEIR_WIRE_PROTOCOL = 1             /* the version of the messages */
};

/* A bit of Register.flags: this driver makes the variables of the share. */
enum { WEIR_WIRE_REGISTER_FRESH = 2 };

/* A message that came in. Its memory is its own: the frame may go. */
typedef struct weir_wire_message {
  const Weir__V1__Control *control; /* with a body; NULL after a failure */
  weir_arena arena;
} weir_wire_message;

/* Makes a frame of |control|, whose field crc32c is not looked at. The frame is
 * the caller's, to be freed by weir_wire_free. Errors: W7012 (a field or the
 * whole passes a limit that the peer would refuse), W6001. */
weir_status weir_wire_pack(const weir_allocator *alloc,
                           const Weir__V1__Control *control,
                           weir_bytes *out_frame, weir_error *err);
void weir_wire_free(const weir_allocator *alloc, weir_bytes frame);

/* Reads a frame, in one piece or many. Release |out| also after an error, which
 * leaves it empty. Errors: W7010, which says where and why, W6001. */
weir_status weir_wire_unpack(const weir_allocator *alloc,
                             const weir_net_frame *frame,
                             weir_wire_message *out, weir_error *err);
void weir_wire_message_release(weir_wire_message *message); /* NULL-safe */

#endif
