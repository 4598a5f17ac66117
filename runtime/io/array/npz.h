/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_NPZ_H_
#define WEIR_IO_NPZ_H_

#include "runtime/base/env.h"
#include "runtime/base/strbuf.h"
#include "runtime/tensor/tensor.h"

/* .npz: a zip archive of .npy files.
 *
 * The central directory is read and checked against each member's own header
 * when the archive is opened: names that could leave a folder, names that occur
 * twice, members that overlap, encryption and methods other than stored and
 * deflate are refused, and so is a member above 1 MiB that claims to be more
 * than 1000 times its compressed bytes. CRCs are checked when a member is read.
 * Source: PKWARE's APPNOTE 6.3.10, sections 4.3 and 4.5.3 (zip64). */
typedef struct weir_npz weir_npz;

enum { WEIR_NPZ_MEMBERS = 4096 }; /* the most that are read */

/* The first bytes of the file are those of this format. */
bool weir_npz_is(weir_bytes bytes);

/* Opens |bytes|, all of a file, borrowed with |file| (its name in messages)
 * until release. The handle is for one thread at a time. Errors: W4004, W6001.
 */
weir_status weir_npz_open(const weir_allocator *alloc, weir_bytes bytes,
                          const char *file, weir_npz **out_npz,
                          weir_error *err);
void weir_npz_release(weir_npz *npz); /* NULL-safe */

/* Members in the order of the directory; a name lacks its ".npy" and is lent
 * until release. |self| is a weir_npz, for weir_nearest_name. */
size_t weir_npz_count(const weir_npz *npz);
weir_sv weir_npz_name(const void *self, size_t i);

/* Reads member |i|. Errors: W4003, W4004, W4007, W6001. */
weir_status weir_npz_read(const weir_npz *npz, size_t i,
                          weir_tensor **out_tensor, weir_error *err);

/* True for a name that a member may have, with its ".npy": UTF-8 without
 * control characters, backslashes, "..", or a leading slash. */
bool weir_npz_name_is_sound(weir_sv name);

#endif
