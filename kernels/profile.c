/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel profiles: what this machine runs, what two machines have in common. */
#include "kernels/profile.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/onednn/onednn.h"
#include "runtime/base/machine/machine.h"

enum { kRules = 2, kX86 = 1, kOther = 2 };
enum { kL1 = 56, kL2 = 60 }; /* where the caches' classes begin */
enum { kL1Least = 16 << 10, kL2Least = 128 << 10, kClasses = 15 };

static const char *const kNames[] = {"none", "generic", "avx2", "avx512"};

/* ---- Caches */

/* least, 3/2 least, 2 least, 3 least, 4 least ... */
static int64_t class_bytes(int class, int64_t least) {
  if (class == 0) return 0;
  int64_t bytes = least << (class - 1) / 2;
  return class % 2 == 0 ? bytes / 2 * 3 : bytes;
}

static uint64_t class_of(int64_t bytes, int64_t least) {
  int class = bytes > 0;
  while (class > 0 && class < kClasses &&
         class_bytes(class + 1, least) <= bytes)
    class ++;
  return (uint64_t) class;
}

static uint64_t caches_here(void) {
  weir_cache caches[WEIR_MACHINE_CACHES];
  weir_machine_read_caches(caches);
  return class_of(caches[0].bytes, kL1Least) << kL1 |
         class_of(caches[1].bytes, kL2Least) << kL2;
}

static int64_t cache_of(uint64_t profile, int at, int64_t least) {
  return class_bytes((int)(profile >> at & 15), least);
}

weir_profile_caches weir_profile_caches_of(uint64_t profile) {
  if (profile == 0) profile = caches_here();
  int64_t l1 = cache_of(profile, kL1, kL1Least);
  int64_t l2 = cache_of(profile, kL2, kL2Least);
  return (weir_profile_caches){l1 > 0 ? l1 : 32 << 10, l2 > 0 ? l2 : 256 << 10};
}

/* ---- Profiles */

static uint64_t make(int level, int onednn) {
#if defined(__x86_64__)
  uint64_t family = kX86;
#else
  uint64_t family = kOther;
#endif
  return (uint64_t)level | (uint64_t)onednn << 8 | family << 16 |
         (uint64_t)weir_onednn_number() << 24 | (uint64_t)kRules << 48 |
         caches_here();
}

static int onednn_level(uint64_t profile) {
  return (int)(profile >> 8 & 0xff);
}

uint64_t weir_profile_at(int i) {
  const weir_isa *isa = weir_isa_at(i);
  return isa == NULL
             ? 0
             : make(weir_isa_level(isa), weir_isa_level(weir_isa_at(0)));
}

uint64_t weir_profile_best(void) {
  return weir_profile_at(0);
}

/* The lower of the |bits| bits at |at|. */
static uint64_t lower(uint64_t a, uint64_t b, int at, int bits) {
  uint64_t mask = ((UINT64_C(1) << bits) - 1) << at;
  return (a & mask) < (b & mask) ? a & mask : b & mask;
}

uint64_t weir_profile_common(uint64_t a, uint64_t b) {
  const uint64_t same = UINT64_C(0x00ffffffffff0000);
  if ((a & same) != (b & same)) return 0;
  return (a & same) | lower(a, b, 0, 8) | lower(a, b, 8, 8) |
         lower(a, b, kL1, 4) | lower(a, b, kL2, 4);
}

weir_status weir_profile_use(uint64_t profile, weir_error *err) {
  char want[WEIR_PROFILE_TEXT], have[WEIR_PROFILE_TEXT];
  if (profile == 0) return WEIR_OK;
  uint64_t best = weir_profile_best();
  if (weir_profile_common(profile, best) == profile &&
      weir_onednn_limit(onednn_level(profile)))
    return WEIR_OK;
  return weir_fail(err, WEIR_W0005, NULL,
                   "kernels for %s are wanted; this process runs %s, oneDNN "
                   "perhaps with another limit, set before",
                   weir_profile_text(profile, want),
                   weir_profile_text(best, have));
}

weir_status weir_profile_named(const char *name, uint64_t *out_profile,
                               weir_error *err) {
  static const char *const kHas[] = {"", "generic", "generic and avx2",
                                     "generic, avx2 and avx512"};
  int best = weir_isa_level(weir_isa_at(0)), level = 1;
  *out_profile = 0;
  while (level < 4 && strcmp(name, kNames[level]) != 0) level++;
  if (level == 4)
    return weir_fail(err, WEIR_W0002, NULL,
                     "%s is no instruction set; this machine has %s", name,
                     kHas[best]);
  if (level > best)
    return weir_fail(err, WEIR_W0005, NULL, "this machine has no %s; it has %s",
                     name, kHas[best]);
  *out_profile = make(level, level);
  return WEIR_OK;
}

const char *weir_profile_text(uint64_t profile, char text[WEIR_PROFILE_TEXT]) {
  int level = weir_profile_level(profile), onednn = onednn_level(profile);
  int64_t l1 = cache_of(profile, kL1, kL1Least) >> 10;
  int64_t l2 = cache_of(profile, kL2, kL2Least) >> 10;
  snprintf(text, WEIR_PROFILE_TEXT, "%s %s, caches %dK %dK, oneDNN %d.%d.%d %s",
           (profile >> 16 & 0xff) == kX86 ? "x86-64" : "another processor",
           kNames[level & 3], (int)l1, (int)l2, (int)(profile >> 24 & 0xff),
           (int)(profile >> 32 & 0xff), (int)(profile >> 40 & 0xff),
           kNames[onednn & 3]);
  return text;
}
