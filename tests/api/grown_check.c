/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stddef.h>

#include "runtime/weir.h"

/* Compiled with the objects of the grown library: without the grown headers it
 * does not compile, and the test would prove nothing. */
static_assert(sizeof(weir_feed) > offsetof(weir_feed, grown), "grown");
static_assert(sizeof(weir_error) > offsetof(weir_error, grown), "grown");
static_assert(sizeof(weir_train_progress) >
                  offsetof(weir_train_progress, grown),
              "grown");
