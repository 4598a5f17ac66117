/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_TENSOR_SET_H_
#define WEIR_IO_TENSOR_SET_H_

#include "runtime/base/vec.h"
#include "runtime/io/checkpoint/checkpoint.h"

/* All tensors of a file or checkpoint, by name: the input of conversion,
 * comparison and initial weights. Plain struct: initialise by
 * weir_tensor_set_read, release also after a failure. */

typedef struct weir_tensor_set_item {
  weir_sv name;
  weir_checkpoint_role role; /* VARIABLE where the file knows no roles */
  weir_tensor *tensor;
} weir_tensor_set_item;

typedef struct weir_tensor_set {
  const weir_env *env;
  weir_arena arena; /* of names */
  WEIR_VEC(weir_tensor_set_item) items;
  weir_checkpoint *checkpoint; /* NULL: it was a file */
} weir_tensor_set;

/* Reads |path|: a folder of checkpoints (the newest sound one, damaged ones are
 * reported to |sink|), a manifest (.json), or a file of several tensors: .npz
 * or safetensors. |env| must outlive the tensors. Errors: those of
 * weir_checkpoint_open and weir_fs.read, W4008 for another file, W4004, W4005.
 */
weir_status weir_tensor_set_read(const weir_env *env, const char *path,
                                 const weir_diag_sink *sink,
                                 weir_tensor_set *out_set, weir_error *err);
void weir_tensor_set_release(weir_tensor_set *set);

/* The item called |name|, or NULL. */
const weir_tensor_set_item *weir_tensor_set_find(const weir_tensor_set *set,
                                                 weir_sv name);

/* Renames by |count| texts "old=new", all at once, so that names can be
 * exchanged. Errors: W0002 for another form, W4010, with the nearest name, when
 * there is no tensor "old" or it is named twice, W6001. */
weir_status weir_tensor_set_rename(weir_tensor_set *set,
                                   const char *const *maps, size_t count,
                                   weir_error *err);

#endif
