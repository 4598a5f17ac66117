/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_NPZ_WRITE_H_
#define WEIR_IO_NPZ_WRITE_H_

#include "runtime/base/strbuf.h"
#include "runtime/tensor/tensor.h"

/* Writes .npz archives. */

/* Appends an archive of |count| stored members to |out|, with no time of day
 * in it: the same tensors give the same bytes. At most 4096 members and 4 GiB
 * in all. Errors: W5009 for names or sizes that do not fit, W6001. */
weir_status weir_npz_write(const weir_sv *names, weir_tensor *const *tensors,
                           size_t count, weir_strbuf *out, weir_error *err);

#endif
