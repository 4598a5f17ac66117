/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_HOST_H_
#define WEIR_DEVICE_HOST_H_

#include "runtime/device/device.h"

/* The CPU as a device. */

/* The host, CPU |index| of its task. |limit_bytes| bounds its buffers; 0: no
 * bound. Errors: W6001. */
weir_status weir_device_host_create(const weir_allocator *alloc,
                                    const weir_device_name *name,
                                    size_t limit_bytes,
                                    weir_device **out_device, weir_error *err);

#endif
