/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json.h"

#include <math.h>

#include "cli/cli.h"

void cli_json_begin(weir_json_writer *w) {
  /* With an indent of 0 there would be no blanks between members. */
  weir_json_writer_init(w, (weir_writer){NULL, cli_out}, 1);
  weir_json_object_begin(w, true);
}

void cli_json_number(weir_json_writer *w, const char *key, double value) {
  weir_json_key(w, key);
  if (isfinite(value))
    weir_json_double(w, value);
  else
    weir_json_null(w);
}

void cli_json_end(weir_json_writer *w) {
  weir_json_object_end(w);
  (void)weir_json_finish(w); /* cli_out keeps a failure */
  cli_flush();
}

void cli_json_list_begin(weir_json_writer *w) {
  weir_json_writer_init(w, (weir_writer){NULL, cli_out}, 1);
  weir_json_array_begin(w, false);
}

void cli_json_list_end(weir_json_writer *w) {
  weir_json_array_end(w);
  (void)weir_json_finish(w);
}
