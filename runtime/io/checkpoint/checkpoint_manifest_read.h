/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CHECKPOINT_MANIFEST_READ_H_
#define WEIR_IO_CHECKPOINT_MANIFEST_READ_H_

#include "runtime/base/env.h"
#include "runtime/base/sv.h"

typedef struct weir_manifest weir_manifest;
struct weir_checkpoint_folder;

/* Reads a manifest. */

/* Reads |text| into an initialised |m|. |file| is for messages. Errors: W4041
 * (damaged), W4044 (of a newer format), W6001. */
weir_status weir_manifest_parse(weir_sv text, const char *file,
                                weir_manifest *m, weir_error *err);

/* Reads plain file |name| of folder |dir|. Errors: those, and of
 * weir_fs_folders.read. */
weir_status weir_manifest_read(const weir_env *env,
                               const struct weir_checkpoint_folder *dir,
                               const char *name, weir_manifest *m,
                               weir_error *err);

#endif
