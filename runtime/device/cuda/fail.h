/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_FAIL_H_
#define WEIR_DEVICE_CUDA_FAIL_H_

#include "runtime/base/module.h"

/* Errors of the module. */

/* Fills |err| for |id| ("W6004") with a text, and returns its status. */
weir_status weir_cuda_fail(const weir_module_host *host, weir_error *err,
                           const char *id, const char *fmt, ...)
    WEIR_PRINTF(4, 5);

#endif
