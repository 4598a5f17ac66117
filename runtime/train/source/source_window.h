/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_SOURCE_WINDOW_H_
#define WEIR_TRAIN_SOURCE_WINDOW_H_

#include "runtime/train/data/data_source.h"

/* Windows of rows as examples of their own. */

/* Windows over |inner|, which is taken, also on failure. */
weir_status weir_source_window_open(const weir_source_context *context,
                                    weir_source *inner,
                                    weir_source **out_source, weir_error *err);

#endif
