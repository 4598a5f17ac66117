/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_ENV_SYSTEM_H_
#define WEIR_BASE_ENV_SYSTEM_H_

#include "runtime/base/env.h"

/* The real environment of a process. */

/* The process's own memory, files and clock. Static, immutable. */
const weir_env *weir_env_system(void);

/* Bytes of main memory that this process has now; 0: not known. Any thread. */
uint64_t weir_system_memory_bytes(void);

#endif
