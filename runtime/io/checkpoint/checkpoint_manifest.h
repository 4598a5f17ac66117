/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_MANIFEST_H_
#define WEIR_IO_CHECKPOINT_MANIFEST_H_

#include "runtime/base/strbuf.h"
#include "runtime/io/checkpoint/checkpoint.h"

typedef struct weir_manifest weir_manifest;

/* The manifest of a generation. */

/* An empty manifest; release frees its contents. */
void weir_manifest_init(weir_manifest *m, const weir_allocator *alloc);

void weir_manifest_release(weir_manifest *m);

/* Appends the manifest's text, its CRC in the last line. Errors: W6001. */
weir_status weir_manifest_write(const weir_manifest *m, weir_strbuf *out,
                                weir_error *err);

/* "variable", "slot", "state". */
const char *weir_checkpoint_role_name(weir_checkpoint_role role);

#endif
