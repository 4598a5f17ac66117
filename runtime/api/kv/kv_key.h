/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_KV_KEY_H_
#define WEIR_API_KV_KEY_H_

#include "runtime/api/kv/kv_internal.h"

/* The keys that this process has declared. */

/* Lent; NULL: this process has not declared it. */
const weir_kv_known *weir_kv_find(weir_kv *kv, const char *name);

#endif
