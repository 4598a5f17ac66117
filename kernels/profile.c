/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel profiles: what this machine runs, what two machines have in common. */
#include "kernels/profile.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/onednn/onednn.h"

enum { kRules = 3, kX86 = 1, kOther = 2 };

static const char *const kNames[] = {"none", "generic", "avx2", "avx512"};

static uint64_t make(int level, int onednn) {
#if defined(__x86_64__)
  uint64_t family = kX86;
#else
  uint64_t family = kOther;
#endif
  return (uint64_t)level | (uint64_t)onednn << 8 | family << 16 |
         (uint64_t)weir_onednn_number() << 24 | (uint64_t)kRules << 48;
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

uint64_t weir_profile_common(uint64_t a, uint64_t b) {
  if (a >> 16 != b >> 16) return 0;
  uint64_t level = (a & 0xff) < (b & 0xff) ? a & 0xff : b & 0xff;
  uint64_t onednn = (a & 0xff00) < (b & 0xff00) ? a & 0xff00 : b & 0xff00;
  return a >> 16 << 16 | onednn | level;
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
  snprintf(text, WEIR_PROFILE_TEXT, "%s %s, oneDNN %d.%d.%d %s",
           (profile >> 16 & 0xff) == kX86 ? "x86-64" : "another processor",
           kNames[level & 3], (int)(profile >> 24 & 0xff),
           (int)(profile >> 32 & 0xff), (int)(profile >> 40 & 0xff),
           kNames[onednn & 3]);
  return text;
}
