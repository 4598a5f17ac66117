/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_FUTEX_H_
#define WEIR_EXEC_FUTEX_H_

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeping on a word, and a polite spin. Linux only; this file is the one place
 * that says so. */

/* Sleeps while |*word| is |seen|, for at most |timeout_ns| (negative: without
 * end). May return early. */
static inline void weir_futex_wait(atomic_uint *word, unsigned seen,
                                   int64_t timeout_ns) {
  struct timespec t = {timeout_ns / 1000000000, timeout_ns % 1000000000};
  (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen,
                timeout_ns < 0 ? NULL : &t, NULL, 0);
}

/* Wakes up to |count| sleepers. */
static inline void weir_futex_wake(atomic_uint *word, int count) {
  (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static inline void weir_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif
