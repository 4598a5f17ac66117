/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TEXT_H_
#define CLI_TEXT_H_

#include <stddef.h>

/* Text for people, in lines of 80 columns. */

enum { CLI_COLUMNS = 80 };

/* Prints |text|, broken at spaces: the first line goes on at column |at|, the
 * others begin at column |left|. A line end in |text| is a space, but for those
 * of an empty line. Ends with a line end. A word that is too long stands
 * alone. */
void cli_wrap(size_t at, size_t left, const char *text);

/* Prints each line of |text| behind |before|. */
void cli_indent(const char *before, const char *text);

#endif
