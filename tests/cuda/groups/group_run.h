/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_GROUPS_GROUP_RUN_H_
#define TESTS_CUDA_GROUPS_GROUP_RUN_H_

#include "tests/check.h"
#include "tests/cuda/ops/gpu_world.h"

/* Runs of groups and of their members on a GPU. All functions fail the test. */

enum { GROUP_MEMBERS = 40, GROUP_INPUTS = 40 };

/* A group's operands on the host. */
typedef struct group_data {
  const weir_group *group;
  void *in[GROUP_INPUTS];
  void *member[GROUP_MEMBERS]; /* each call's result, by its own kernel */
} group_data;

typedef struct group_how {
  size_t shift;     /* bytes by which operands are not aligned */
  int32_t in_place; /* the input whose memory the output is, or -1 */
} group_how;

/* Draws inputs and runs the members one by one. */
void group_data_make(gpu_world *w, const weir_group *group, uint32_t seed,
                     group_data *out);
void group_data_free(group_data *data);

/* Runs |kernel|; out[o] is output |o|, to be freed. Around the operands lie
 * bytes that must stay, and so must inputs. */
void group_run(gpu_world *w, const weir_group_kernel_def *kernel,
               const group_data *data, group_how how, void **out);

/* Fails each call of CUDA in prepare and run, one after the other, and each
 * allocation of prepare; returns how many. */
int group_run_failing(gpu_world *w, const weir_group_kernel_def *kernel,
                      const group_data *data);

#endif
