/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TERM_TEXT_H_
#define CLI_TERM_TEXT_H_

#include <stddef.h>

/* Text for people, in lines of 80 columns. */

/* Prints |text| as weir_tools_wrap writes it. */
void cli_wrap(size_t at, size_t left, const char *text);

/* Prints each line of |text| behind |before|. */
void cli_indent(const char *before, const char *text);

#endif
