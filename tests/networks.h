/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NETWORKS_H_
#define TESTS_NETWORKS_H_

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Graphs of graphs/ with hundreds of nodes. A test of every graph in many ways
 * leaves them out: their ops, shapes and blocks are those of smaller graphs,
 * and each way would take seconds. tests/cli/test_networks.py runs them. */
static inline bool is_network(const char *path) {
  static const char *const kNames[] = {"resnet50.", "mobilenet_v3.",
                                       "bert_base.", "gpt2_small."};
  const char *name = strrchr(path, '/');
  name = name != NULL ? name + 1 : path;
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; i++)
    if (strncmp(name, kNames[i], strlen(kNames[i])) == 0) return true;
  return false;
}

#endif
