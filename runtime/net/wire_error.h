/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_WIRE_ERROR_H_
#define WEIR_NET_WIRE_ERROR_H_

#include "runtime/net/wire.h"

/* Errors that travel: a weir_error as a message and back. */

/* Fills |dst|, whose texts are lent from |src| and stay its own. Texts that are
 * not UTF-8 are left out. */
void weir_wire_error_put(const weir_error *src, Weir__V1__Error *dst);

/* Whether |src| says that something failed: NULL and one without id do not. */
bool weir_wire_error_is(const Weir__V1__Error *src);

/* Fills |dst| (NULL-safe) from |src|, which says that something failed, and
 * returns its status. An id that this build does not know gives W7010 with the
 * peer's id and words. */
weir_status weir_wire_error_get(const Weir__V1__Error *src, weir_error *dst);

#endif
