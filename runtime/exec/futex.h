/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_FUTEX_H_
#define WEIR_EXEC_FUTEX_H_

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
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

/* One thread's wait for one call by another thread; zeros: not called yet. The
 * word is often on the sleeper's stack. It goes from 0 to 1, then the sleeper
 * is woken, then it goes to 2; the sleeper leaves only at 2 and spins from 1 to
 * 2. So the wake-up never touches a dead word. */
typedef struct weir_nap {
  atomic_uint word;
} weir_nap;

/* Ends the nap. Once; |nap| may be gone when this returns. */
static inline void weir_nap_end(weir_nap *nap) {
  atomic_store(&nap->word, 1);
  weir_futex_wake(&nap->word, 1);
  atomic_store(&nap->word, 2);
}

static inline bool weir_nap_is_over(weir_nap *nap) {
  return atomic_load(&nap->word) == 2;
}

/* Sleeps until the nap is over, or for |timeout_ns| (negative: without end).
 * May return early. Returns whether it is over; then |nap| may go. */
static inline bool weir_nap_sleep(weir_nap *nap, int64_t timeout_ns) {
  unsigned seen = atomic_load(&nap->word);
  if (seen == 0) {
    weir_futex_wait(&nap->word, 0, timeout_ns);
    seen = atomic_load(&nap->word);
  }
  for (; seen == 1; seen = atomic_load(&nap->word)) weir_cpu_relax();
  return seen == 2;
}

#endif
