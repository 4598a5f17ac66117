/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_MUTATE_DRIVE_H_
#define TESTS_FUZZ_MUTATE_DRIVE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A graph file of unknown content through check, run, place and train, as the
 * command does them, in this process. */

/* The ways; how far a graph came. */
typedef enum drive_way {
  DRIVE_CHECK,
  DRIVE_RUN,
  DRIVE_PLACE,
  DRIVE_TRAIN,
  DRIVE_WAYS
} drive_way;

extern const char *const drive_names[DRIVE_WAYS];

typedef struct drive_result {
  int64_t ns[DRIVE_WAYS]; /* the process's own time in each, of all threads */
  bool done[DRIVE_WAYS];  /* it ended without an error */
  uint64_t peak_bytes;    /* of weir's own memory */
  char finding[256];      /* a broken promise; empty: none */
} drive_result;

/* |folder|: where training may write, under the working directory. |seed|
 * decides the numbers that are fed. */
void drive(const char *text, size_t size, uint64_t seed, const char *folder,
           drive_result *out);

#endif
