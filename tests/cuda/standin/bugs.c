/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/standin/bugs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

standin_bug standin_planted;

__attribute__((constructor)) static void read_bug(void) {
  static const char *const kNames[] = {
#define STANDIN_BUG(name) [STANDIN_BUG_##name] = #name,
#include "tests/cuda/standin/bugs.def"
#undef STANDIN_BUG
  };
  const char *name = getenv("STANDIN_BUG");
  if (name == NULL) return;
  for (size_t i = 1; i < sizeof kNames / sizeof *kNames; i++)
    if (strcmp(name, kNames[i]) == 0) standin_planted = (standin_bug)i;
  if (standin_planted != STANDIN_BUG_none) return;
  fprintf(stderr, "STANDIN_BUG=%s: bugs.def has no such bug\n", name);
  abort();
}
