/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bench/instance.h"
#include "tests/fuzz/fuzz.h"

/* Reads the input as an instance of any format. The result is a problem whose
 * nodes stand in topological order, with every number in range. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  weir_instance_options o = {2};
  weir_status s = weir_instance_read(weir_allocator_system(),
                                     (weir_sv){(const char *)data, size}, "f",
                                     &o, &p, &err);
  FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
  FUZZ_CHECK((s == WEIR_OK) == (p != NULL));
  if (p == NULL) return 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    bool runs = false;
    for (uint32_t d = 0; d < p->device_count; d++)
      runs |= weir_place_cost(p, n, d) != WEIR_PLACE_NO_KERNEL;
    FUZZ_CHECK(runs);
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++)
      FUZZ_CHECK(p->tensor_node[p->in_tensor[i]] < n);
  }
  weir_place_problem_release(p);
  return 0;
}
