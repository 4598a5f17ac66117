/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_TABLE_H_
#define WEIR_BASE_TABLE_H_

/* Tables that an enum indexes. Each entry is written `[VALUE] = ...`, so that
 * the order of the enum is free, and WEIR_TABLE_OF stands after the table, so
 * that a value without an entry does not compile:
 *
 *   static const char *const kNames[] = {[RED] = "red", [BLUE] = "blue"};
 *   WEIR_TABLE_OF(kNames, COLOUR_COUNT); */

/* How many entries |table|, an array, has. */
#define WEIR_TABLE_COUNT(table) (sizeof(table) / sizeof *(table))

/* Refuses to compile unless |table| ends with the last of |count| values. */
#define WEIR_TABLE_OF(table, count)                  \
  _Static_assert(WEIR_TABLE_COUNT(table) == (count), \
                 #table " must have an entry for each value of its enum")

#endif
