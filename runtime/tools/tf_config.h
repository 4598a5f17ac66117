/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_TF_CONFIG_H_
#define WEIR_TOOLS_TF_CONFIG_H_

#include "runtime/base/alloc.h"
#include "runtime/tools/tools.h"

/* weir_tools_tf_config_read with memory of |alloc|, which is lent for the
 * config's life. */
weir_status weir_tf_config_read(const weir_allocator *alloc, const char *text,
                                weir_tools_tf_config **out, weir_error *err);

#endif
