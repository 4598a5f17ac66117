/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_PROFILE_H_
#define WEIR_KERNELS_PROFILE_H_

#include <stdint.h>

#include "runtime/base/status.h"

/* Kernel profiles.
 *
 * A profile is one number for everything about a machine that decides kernels,
 * layouts and so the bits of results: the family of processors, the instruction
 * set, oneDNN's version and the instruction set that oneDNN may use. Two
 * processes with the same profile compute the same bits from the same graph.
 * Processes of different machines take the profile that both can run. Caches
 * are not in it: they decide sizes of blocks that change no bits
 * (cpu/caches.h).
 *
 *   bits  0-7   instruction set: 1 any machine of the family; of x86-64 2 AVX2,
 *               3 AVX-512; of AArch64 2 NEON
 *   bits  8-15  that of oneDNN, likewise
 *   bits 16-23  family: 1 x86-64, 2 others, 3 AArch64
 *   bits 24-47  oneDNN's version: major, minor, patch
 *   bits 48-63  changes of weir's own rules
 *
 * 0 is no profile: "this machine's best" where one is asked for. */

/* The best one that this process can run. */
uint64_t weir_profile_best(void);
/* The |i|-th one, best first, oneDNN as it is; 0 past the last. */
uint64_t weir_profile_at(int i);
/* The best that machines of |a| and of |b| both run; 0: there is none. */
uint64_t weir_profile_common(uint64_t a, uint64_t b);

/* Its instruction set: 0 to 3. */
static inline int weir_profile_level(uint64_t profile) {
  return (int)(profile & 0xff);
}

/* Makes sure that this process can run |profile|: limits oneDNN to its
 * instruction set, for good and for the whole process, which must be done
 * before the first call of oneDNN; so the first profile below the machine's
 * best holds from then on. 0: nothing to do. Errors: W0005. */
weir_status weir_profile_use(uint64_t profile, weir_error *err);

/* The profile of the best one's machine with instruction set "generic",
 * "avx2", "avx512" or "neon", for oneDNN too. Errors: W0002 (no such set),
 * W0005 (the machine lacks it). */
weir_status weir_profile_named(const char *name, uint64_t *out_profile,
                               weir_error *err);

enum { WEIR_PROFILE_TEXT = 64 };
/* "x86-64 avx512, oneDNN 2.6.3 avx512". */
const char *weir_profile_text(uint64_t profile, char text[WEIR_PROFILE_TEXT]);

#endif
