/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_WIRE_CHECK_H_
#define WEIR_NET_WIRE_CHECK_H_

#include "runtime/net/wire.h"

/* The check of a message before it is unpacked. */

/* Checks the bytes of a Control. Pure; no memory, no recursion; time is linear
 * in the bytes. Errors: |id|, with the message, field and reason. */
weir_status weir_wire_check(weir_bytes bytes, weir_error_id id,
                            weir_error *err);

/* The limit of field |field| of |message|: bytes of a text or of bytes, and of
 * how many values. False when the table has no row for it. */
bool weir_wire_limit(const ProtobufCMessageDescriptor *message, uint32_t field,
                     uint32_t *out_bytes, uint32_t *out_count);

#endif
