/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_LOOK_H_
#define WEIR_TOOLS_LOOK_H_

#include "runtime/api/cluster/task_list.h"
#include "runtime/base/strbuf.h"
#include "runtime/dist/observe/observe.h"
#include "runtime/tools/tools.h"

/* How looks at tasks are written. */

typedef struct weir_look_text {
  const weir_tools_look *opts;
  const weir_task_list *list;
  const weir_observe_row *rows;
  const weir_allocator *alloc;
} weir_look_text;

/* As text: a table of show; the sums of ping; a line for each task of stop.
 * Errors: W6001. */
weir_status weir_look_write_text(const weir_look_text *text, weir_strbuf *out,
                                 weir_error *err);
/* An object for each task, in a list. Errors: W6001. */
weir_status weir_look_write_json(const weir_look_text *text, weir_strbuf *out,
                                 weir_error *err);

#endif
