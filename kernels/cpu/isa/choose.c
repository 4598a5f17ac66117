/* SPDX-License-Identifier: Apache-2.0 */
/* The only file of this folder that is compiled once, without any instruction
 * set's flags: it must run on every machine, to ask which sets there are. */
#include "kernels/cpu/isa/choose.h"

#include <string.h>

#include "kernels/cpu/isa/isa.h"
#include "kernels/profile.h"

extern const weir_isa weir_generic_isa;
#if defined(__x86_64__)
extern const weir_isa weir_avx2_isa, weir_avx512_isa;
#if defined(WEIR_NO_AVX512) /* no test of this build could run it */
static const weir_isa *const avx512 = NULL;
#else
static const weir_isa *const avx512 = &weir_avx512_isa;
#endif

/* The flags of meson.build, all of them: the compiler may use any. */
static bool has_avx512(void) {
  return avx512 != NULL && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

static bool has_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#elif defined(__aarch64__)
extern const weir_isa weir_neon_isa; /* every processor of the family has it */
#endif

/* The i-th set of this machine, best first; tests walk all of them. */
const weir_isa *weir_isa_at(int i) {
#if defined(__x86_64__)
  if (has_avx512() && i-- == 0) return avx512;
  if (has_avx2() && i-- == 0) return &weir_avx2_isa;
#elif defined(__aarch64__)
  if (i-- == 0) return &weir_neon_isa;
#endif
  return i == 0 ? &weir_generic_isa : NULL;
}

int weir_isa_level(const weir_isa *isa) {
#if defined(__x86_64__)
  if (isa == avx512) return 3;
  if (isa == &weir_avx2_isa) return 2;
#elif defined(__aarch64__)
  if (isa == &weir_neon_isa) return 2;
#endif
  (void)isa;
  return 1;
}

/* A level that this machine lacks gives its best one below: the session has
 * refused such a profile before any call is made. */
const weir_isa *weir_isa_of(const weir_call *call) {
  const weir_isa *isa = weir_isa_at(0);
  int level = weir_profile_level(call->profile);
  for (int i = 1; level != 0 && weir_isa_level(isa) > level; i++)
    isa = weir_isa_at(i);
  return isa;
}

/* NEON's vectors have four channels: its blocks would be a layout of their own,
 * with convolutions that oneDNN lacks. */
weir_layout weir_isa_blocks(uint64_t profile) {
#if defined(__aarch64__)
  (void)profile;
  return WEIR_LAYOUT_PLAIN;
#else
  weir_call call = {.profile = profile};
  int level = weir_isa_level(weir_isa_of(&call));
  int onednn = (int)(profile >> 8 & 0xff);
  if (onednn != 0 && onednn < level) level = onednn;
  return level >= 3   ? WEIR_LAYOUT_C16
         : level == 2 ? WEIR_LAYOUT_C8
                      : WEIR_LAYOUT_PLAIN;
#endif
}

static weir_tile_fn find(const weir_tile_entry *e, const char *op,
                         unsigned dtype, unsigned target) {
  for (; e->op; e++)
    if (e->dtype == dtype && e->target == target && strcmp(e->op, op) == 0)
      return e->fn;
  return NULL;
}

weir_tile_fn weir_isa_tile(const weir_isa *isa, const char *op, unsigned dtype,
                           unsigned target) {
  weir_tile_fn fn = find(isa->f32, op, dtype, target);
  return fn ? fn : find(isa->other, op, dtype, target);
}
