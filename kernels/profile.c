/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel profiles: what this machine runs, what two machines have in common. */
#include "kernels/profile.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/onednn/onednn.h"

enum { kRules = 4, kX86 = 1, kOther, kArm, kFamilies };
enum { kLevels = 4 };

#if defined(__x86_64__)
enum { kOwn = kX86 };
#elif defined(__aarch64__)
enum { kOwn = kArm };
#else
enum { kOwn = kOther };
#endif

static const char *const kFamilyNames[kFamilies] = {
    "no processor", "x86-64", "another processor", "AArch64"};

/* A family's sets, by level; NULL past its best. */
static const char *const kSets[kFamilies][kLevels] = {
    {"none"},
    {"none", "generic", "avx2", "avx512"},
    {"none", "generic"},
    {"none", "generic", "neon"}};

static uint64_t make(int level, int onednn) {
  uint64_t family = kOwn;
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

/* The level of |name| in |family|; 0: it has no such set. */
static int find_level(int family, const char *name) {
  for (int i = kLevels - 1; i > 0; i--)
    if (kSets[family][i] != NULL && strcmp(name, kSets[family][i]) == 0)
      return i;
  return 0;
}

weir_status weir_profile_named(const char *name, uint64_t *out_profile,
                               weir_error *err) {
  static const char *const kHas[kFamilies][kLevels] = {
      [kX86] = {"", "generic", "generic and avx2", "generic, avx2 and avx512"},
      [kOther] = {"", "generic"},
      [kArm] = {"", "generic", "generic and neon"}};
  int best = weir_isa_level(weir_isa_at(0)), level = find_level(kOwn, name);
  bool known = false;
  for (int i = kX86; i < kFamilies; i++)
    known = known || find_level(i, name) != 0;
  *out_profile = 0;
  if (!known)
    return weir_fail(err, WEIR_W0002, NULL,
                     "%s is no instruction set; this machine has %s", name,
                     kHas[kOwn][best]);
  if (level == 0 || level > best)
    return weir_fail(err, WEIR_W0005, NULL, "this machine has no %s; it has %s",
                     name, kHas[kOwn][best]);
  *out_profile = make(level, level);
  return WEIR_OK;
}

/* Profiles come from other machines too, of any family. */
static const char *set_text(int family, int level) {
  const char *text =
      level < kLevels ? kSets[family < kFamilies ? family : 0][level] : NULL;
  return text != NULL ? text : "unknown";
}

const char *weir_profile_text(uint64_t profile, char text[WEIR_PROFILE_TEXT]) {
  int family = (int)(profile >> 16 & 0xff);
  snprintf(text, WEIR_PROFILE_TEXT, "%s %s, oneDNN %d.%d.%d %s",
           kFamilyNames[family < kFamilies ? family : (int)kOther],
           set_text(family, weir_profile_level(profile)),
           (int)(profile >> 24 & 0xff), (int)(profile >> 32 & 0xff),
           (int)(profile >> 40 & 0xff),
           set_text(family, onednn_level(profile)));
  return text;
}
