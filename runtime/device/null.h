/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_NULL_H_
#define WEIR_DEVICE_NULL_H_

#include "runtime/device/device.h"

/* A device that does nothing. */

/* A device without work: buffers have sizes and no memory, copies check their
 * bounds and move nothing. For planning, and to be copied. Errors: W6001. */
weir_status weir_device_null_create(const weir_allocator *alloc,
                                    const weir_device_name *name,
                                    size_t limit_bytes,
                                    weir_device **out_device, weir_error *err);

#endif
