/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_JSON_H_
#define CLI_JSON_H_

#include "runtime/base/json/json.h"

/* JSON on stdout, by base's writer. */

/* Starts an object on one line. */
void cli_json_begin(weir_json_writer *w);
/* A member; null when |value| is not finite. */
void cli_json_number(weir_json_writer *w, const char *key, double value);
/* Ends the object and its line, which a reader at the other end of a pipe then
 * has. */
void cli_json_end(weir_json_writer *w);

/* The same for a list, an item a line. */
void cli_json_list_begin(weir_json_writer *w);
void cli_json_list_end(weir_json_writer *w);

#endif
