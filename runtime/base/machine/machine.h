/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_MACHINE_MACHINE_H_
#define WEIR_BASE_MACHINE_MACHINE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Facts of this machine: processor, instruction sets, caches, cores.
 *
 * The one place that reads them. They are facts, no choices: what a kernel may
 * know of a machine is in its profile (kernels/profile.h), so that the tasks of
 * a graph agree on it. */

/* Instruction sets, from the oldest on. X(name, text): |text| is the spelling
 * of /proc/cpuinfo. A set counts where the system saves its registers too. */
#define WEIR_MACHINE_SETS(X)   \
  X(SSE2, "sse2")              \
  X(SSE42, "sse4_2")           \
  X(AVX, "avx")                \
  X(AVX2, "avx2")              \
  X(FMA, "fma")                \
  X(F16C, "f16c")              \
  X(AVX512F, "avx512f")        \
  X(AVX512BW, "avx512bw")      \
  X(AVX512DQ, "avx512dq")      \
  X(AVX512VL, "avx512vl")      \
  X(AVX512VNNI, "avx512_vnni") \
  X(AVX512BF16, "avx512_bf16") \
  X(AVX512FP16, "avx512_fp16") \
  X(AVXVNNI, "avx_vnni")       \
  X(AMX_TILE, "amx_tile")      \
  X(AMX_INT8, "amx_int8")      \
  X(AMX_BF16, "amx_bf16")      \
  X(NEON, "neon")

typedef enum weir_machine_set {
#define WEIR_MACHINE_SET_ROW(name, text) WEIR_MACHINE_##name,
  WEIR_MACHINE_SETS(WEIR_MACHINE_SET_ROW)
#undef WEIR_MACHINE_SET_ROW
      WEIR_MACHINE_SET_COUNT
} weir_machine_set;

enum { WEIR_MACHINE_CACHES = 3 };

typedef struct weir_cache {
  int64_t bytes; /* of data; 0: not known */
  int threads;   /* hardware threads that share it; 0: not known */
} weir_cache;

typedef struct weir_machine {
  char name[64]; /* "AMD EPYC", printable; "unknown" */
  uint32_t sets; /* a bit of each weir_machine_set */
  int threads;   /* hardware threads that this process may run on, >= 1 */
  int cores;     /* cores that these are of */
  weir_cache caches[WEIR_MACHINE_CACHES]; /* levels 1, 2 and 3 */
} weir_machine;

/* Reads all facts; a few dozen system calls, no memory. Any thread. */
void weir_machine_read(weir_machine *out);

/* All facts, with caches and cores from |folder|, which looks like
 * /sys/devices/system/cpu, for processes that may run on the first |cpus|
 * hardware threads. For tests. */
void weir_machine_read_at(const char *folder, int cpus, weir_machine *out);

static inline bool weir_machine_has(const weir_machine *m,
                                    weir_machine_set set) {
  return (m->sets >> set & 1) != 0;
}

/* The spelling of |set|, a weir_machine_set. */
const char *weir_machine_set_text(unsigned set);

#endif
