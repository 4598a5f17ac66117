/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_JOIN_H_
#define WEIR_BASE_JOIN_H_

#include <stddef.h>

/* Adds |name| to the list "a, b" in |text|, of |size| bytes; leaves it out when
 * it does not fit whole. For the names in a message: "there are load, train".
 */
void weir_join_name(char *text, size_t size, const char *name);

#endif
