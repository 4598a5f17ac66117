/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_COMPILE_OVER_H_
#define WEIR_EXEC_COMPILE_OVER_H_

#include "runtime/exec/compile/compile_internal.h"

/* Which memory the new values of variables may take: that of their old values,
 * that of feeds. */

/* Fills over_own and over_feed of c->vars, and adds the order that they need;
 * nothing without the option |overwrite|. After weir_compile_outputs. Errors:
 * W6001. */
weir_status weir_compile_over(weir_compiler *c, weir_error *err);

#endif
