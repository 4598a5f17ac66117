/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_MUTATE_TEXT_H_
#define TESTS_FUZZ_MUTATE_TEXT_H_

#include <stddef.h>
#include <stdint.h>

/* Changes of graph files that keep most of their grammar: names, lines, blocks,
 * numbers, brackets. A generator of random numbers decides everything, so equal
 * seeds give equal texts. */

enum { MUTATE_BYTES = 1 << 16 };

typedef struct mutate_random {
  uint64_t state;
} mutate_random;

uint64_t mutate_next(mutate_random *r);
/* From 0 to |n| - 1; 0 when |n| is 0. */
size_t mutate_below(mutate_random *r, size_t n);

/* A text that can grow to MUTATE_BYTES; changes that would pass it are left
 * out. */
typedef struct mutate_text {
  size_t size;
  char bytes[MUTATE_BYTES];
} mutate_text;

void mutate_set(mutate_text *t, const char *bytes, size_t size);

/* One change of |t|; |other| is a second seed that may lend lines and words. */
void mutate_once(mutate_text *t, const mutate_text *other, mutate_random *r);

#endif
