/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NET_CONFORMANCE_PARTS_H_
#define TESTS_NET_CONFORMANCE_PARTS_H_

/* Tests of the suite in files of their own; |*state| is the weir_fixture. */

void conformance_memory(void **state);        /* conformance_memory.c */
void conformance_many_senders(void **state);  /* conformance_threads.c */
void conformance_wake_threads(void **state);  /* the same */
void conformance_unref_threads(void **state); /* the same */

#endif
