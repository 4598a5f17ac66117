/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_CUDA_WORLD_H_
#define TESTS_CUDA_CUDA_WORLD_H_

#include "runtime/device/cuda.h"
#include "tests/check.h"
#include "tests/cuda/standin/standin.h"

/* The module, CUDA's library, and devices on both.
 *
 * The library is the stand-in of the build, or that in the folder
 * WEIR_CUDA_FOLDER, where that is set: then the same tests run on a real GPU.
 * What needs the stand-in's controls is skipped there, with the reason. */

extern weir_module_handle cuda_module;
extern const standin_control *standin; /* NULL: the library is a real one */
extern char cuda_folder[];

/* Loads both; a group's setup. */
int cuda_world_open(void **state);

/* Skips the test on a real library, and prints why. */
void cuda_world_needs_standin(const char *why);

/* For a program whose every test needs the stand-in: 77, a skip for meson, with
 * |why| printed, or 0. */
int cuda_world_skip_program(const char *why);

/* What the stand-in has to say of the last launch; "" of a real one. */
const char *cuda_world_fault(void);

/* Device |name->index|, a GPU that is there: a machine may have but one. One
 * allocator at a time. */
weir_status cuda_world_create(const weir_allocator *alloc,
                              const weir_device_name *name, size_t limit_bytes,
                              weir_device **out_device, weir_error *err);

/* The same with the system's allocator; fails the test. */
weir_device *cuda_world_device(int32_t gpu, size_t limit_bytes);

/* Fails the test unless nothing of CUDA lives and nobody wrote to freed
 * memory, which only the stand-in knows. */
void cuda_world_check_clean(void);

#endif
