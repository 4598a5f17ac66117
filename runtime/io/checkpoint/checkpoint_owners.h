/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_OWNERS_H_
#define WEIR_IO_CHECKPOINT_OWNERS_H_

#include "runtime/base/env.h"
#include "runtime/base/sv.h"

/* Owners: other processes that hold the tensors of a save, as they were at one
 * moment.
 *
 * A store saves them in shards, each of one owner's tensors. An owner that sees
 * the folder writes its shard there itself, under the temporary name, and tells
 * the CRC32C of each tensor; the bytes of any other come to the store in
 * pieces, and the store writes them. The store alone renames, removes, and
 * writes the manifest.
 *
 * An owner knows that it sees the same folder by a file in it, of a name that
 * both sides know and with bytes that were drawn for this save. Paths alone
 * would not do: a disk of the same name may stand in each machine.
 *
 *   owners->vt->owner(owners, i)           each entry, when the save is asked
 *   owners->vt->write(owners, place, orders, n)  all shards at once
 *   owners->vt->read(owners, i, ...)       what no owner wrote
 *   owners->vt->release(owners)            it is saved, or given up
 *
 * All calls block, on any thread, one at a time. */

#define WEIR_CHECKPOINT_NONCE ".weir-nonce.tmp"

enum {
  WEIR_CHECKPOINT_NONCE_BYTES = 32,
  WEIR_CHECKPOINT_COMMON_BYTES = 4096 /* of a path, at most */
};

/* A folder as an owner may find it: by a file that was drawn for a save, or by
 * the manifest that is read. */
typedef struct weir_checkpoint_common {
  const char *path; /* absolute, without links */
  uint8_t nonce[WEIR_CHECKPOINT_NONCE_BYTES];
  const char *manifest; /* whose hash |nonce| is; NULL: WEIR_CHECKPOINT_NONCE
                           holds it */
} weir_checkpoint_common;

/* A shard that its owner may write. All is lent for the call. */
typedef struct weir_checkpoint_order {
  uint32_t owner;
  const char *file;        /* the name to be made, which must be new */
  weir_sv run_id;          /* into its header */
  const uint32_t *entries; /* places of its tensors in the save */
  size_t count;
  /* Filled. The file may be there also after a failure. */
  bool written; /* false: the owner does not see the folder */
  uint64_t bytes;
  uint32_t crc;   /* of the file */
  uint32_t *crcs; /* of each tensor's bytes; the caller's memory */
} weir_checkpoint_order;

typedef struct weir_checkpoint_owners weir_checkpoint_owners;

typedef struct weir_checkpoint_owners_vtable {
  /* The number of the owner of entry |i| of the save. */
  uint32_t (*owner)(const weir_checkpoint_owners *owners, size_t i);
  /* Has all shards written, at once, by those that see the folder; all have
   * ended when it returns. Errors: an owner's, with its name; it is lost. */
  weir_status (*write)(weir_checkpoint_owners *owners,
                       const weir_checkpoint_common *place,
                       weir_checkpoint_order *orders, size_t count,
                       weir_error *err);
  /* Gets |bytes| bytes of entry |i| from |offset| on. */
  weir_status (*read)(weir_checkpoint_owners *owners, size_t i, uint64_t offset,
                      void *dst, size_t bytes, weir_error *err);
  void (*release)(weir_checkpoint_owners *owners);
} weir_checkpoint_owners_vtable;

/* Every implementation starts with this. */
struct weir_checkpoint_owners {
  const weir_checkpoint_owners_vtable *vt;
};

#endif
