/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DEVICE_CONFORMANCE_H_
#define TESTS_DEVICE_CONFORMANCE_H_

#include "runtime/device/device.h"
#include "tests/check.h"

/* Conformance: the same cases for every device.
 *
 *   const struct CMUnitTest tests[] = {DEVICE_CONFORMANCE(my_maker)}; */

typedef struct device_maker {
  /* Makes the device whose number is the name's index, 0 or 1. */
  weir_status (*create)(const weir_allocator *alloc,
                        const weir_device_name *name, size_t limit_bytes,
                        weir_device **out_device, weir_error *err);
  bool keeps_data;   /* copies move bytes */
  bool alloc_counts; /* a buffer takes memory of the allocator */
} device_maker;

/* The cases; |*state| is the device_maker. */
void device_copies(void **state);
void device_times(void **state);
void device_host_memory(void **state);
void device_peers(void **state);
void device_limit_is_kept(void **state);
void device_no_memory(void **state);

#define DEVICE_CONFORMANCE(maker)                                \
  cmocka_unit_test_prestate(device_copies, &(maker)),            \
      cmocka_unit_test_prestate(device_times, &(maker)),         \
      cmocka_unit_test_prestate(device_host_memory, &(maker)),   \
      cmocka_unit_test_prestate(device_peers, &(maker)),         \
      cmocka_unit_test_prestate(device_limit_is_kept, &(maker)), \
      cmocka_unit_test_prestate(device_no_memory, &(maker))

#endif
