/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_STD_EMBEDDED_H_
#define WEIR_GRAPH_STD_EMBEDDED_H_

#include <stddef.h>

/* The libraries of the language, built in by embed.py; ends with a NULL name.
 */
typedef struct weir_embedded {
  const char *name;
  const unsigned char *text;
  size_t size;
} weir_embedded;

extern const weir_embedded weir_embedded_std[];

#endif
