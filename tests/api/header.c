/* SPDX-License-Identifier: Apache-2.0
 * Compiled as C99 and as C++17. */
#include "runtime/dlpack.h"
#include "runtime/weir.h"

int weir_header_compiles(void);
int weir_header_compiles(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_feed feed = WEIR_FEED("x", NULL);
  weir_fetch fetch = WEIR_FETCH("y");
  weir_run_opts opts;
  opts.struct_size = sizeof opts;
  return (int)(err.struct_size + feed.struct_size + fetch.struct_size +
               opts.struct_size);
}
