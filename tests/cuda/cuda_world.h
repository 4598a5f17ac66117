/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_CUDA_WORLD_H_
#define TESTS_CUDA_CUDA_WORLD_H_

#include "runtime/device/cuda.h"
#include "tests/check.h"
#include "tests/cuda/standin/standin.h"

/* The module, the stand-in for CUDA's library, and devices on both. */

extern weir_module_handle cuda_module;
extern const standin_control *standin;
extern char standin_folder[];

/* Loads both; a group's setup. */
int cuda_world_open(void **state);

/* Device |name->index| on the stand-in. One allocator at a time. */
weir_status cuda_world_create(const weir_allocator *alloc,
                              const weir_device_name *name, size_t limit_bytes,
                              weir_device **out_device, weir_error *err);

/* The same with the system's allocator; fails the test. */
weir_device *cuda_world_device(int32_t gpu, size_t limit_bytes);

/* Fails the test unless nothing of CUDA lives and nobody wrote to freed
 * memory. */
void cuda_world_check_clean(void);

#endif
