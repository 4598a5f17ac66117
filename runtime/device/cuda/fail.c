/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/fail.h"

#include <stdarg.h>
#include <stdio.h>

weir_status weir_cuda_fail(const weir_module_host *host, weir_error *err,
                           const char *id, const char *fmt, ...) {
  char text[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  return host->fail(err, id, text);
}
