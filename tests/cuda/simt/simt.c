/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers, and the order in which they run.
 *
 * A warp goes on until all its lanes have ended or are at the block's barrier;
 * then the next warp runs. When all warps are there, the barrier opens. An
 * operation of a warp waits once: then all values are written. The next one
 * writes elsewhere, and the one after it waits for lanes that have read these.
 *
 * A thread that comes to a wait goes to the next one of its pass at once, and
 * one that ends leaves it its stack: a body without waits is a loop on one
 * stack, which stays in the cache.
 *
 * The switch is twenty instructions on x86-64 and swapcontext elsewhere. The
 * address sanitizer is told of every switch; the thread sanitizer would need
 * calls of its own, and the build leaves this out there. */
#include "tests/cuda/simt/simt.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin/bugs.h"

#if !defined(__x86_64__) || defined(SIMT_UCONTEXT)
#define BY_CONTEXT 1
#include <ucontext.h>
#else
#define BY_CONTEXT 0
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(SANITIZED)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_BYTES = 64 << 10 };

#if BY_CONTEXT
typedef ucontext_t context;
#else
typedef void *context; /* the stack pointer; registers lie on the stack */
#endif

typedef struct fiber {
  context context;
  unsigned char *stack; /* from its begin to its end */
  unsigned barriers;    /* that it has come to */
  unsigned exchanges;
  enum { READY, AT_EXCHANGE, AT_BARRIER, ENDED } state;
  void *fake_stack; /* the address sanitizer's */
} fiber;

simt_place simt_thread, simt_block, simt_block_dim, simt_grid_dim;

static fiber fibers[SIMT_THREADS];
static fiber *running;
static unsigned char *unused[SIMT_THREADS]; /* stacks */
static unsigned unused_count, stacks;
static context scheduler;
/* A pass over a warp: which lanes, from which end, how many were looked at. */
static struct {
  fiber *lanes;
  unsigned count, done;
  bool last;
} pass;
static const simt_body *body;
static const void *arguments;
/* Of a warp's operation, and of the next one. */
static unsigned char values[2][SIMT_LANES][8];
#if defined(SANITIZED)
static bool from_scheduler; /* the last switch */
static void *scheduler_fake_stack;
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
#endif

#if BY_CONTEXT
static void switch_to(context *from, context *to) {
  swapcontext(from, to);
}
#else
/* Saves the registers that a call keeps, and takes the other stack's. */
void simt_switch(void **from, void *to);
__asm__(
    ".text\n"
    ".local simt_switch\n"
    ".type simt_switch, @function\n"
    "simt_switch:\n"
    "  push %rbp\n  push %rbx\n  push %r12\n"
    "  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n"
    "  mov %rsi, %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n"
    "  pop %r12\n  pop %rbx\n  pop %rbp\n"
    "  ret\n"
    ".size simt_switch, . - simt_switch\n");

static void switch_to(context *from, context *to) {
  simt_switch(from, *to);
}
#endif

/* The i-th of |n|, from one end or the other. */
static unsigned at(unsigned i, unsigned n, bool last) {
  return last ? n - 1 - i : i;
}

/* The next lane of the pass that can go on; NULL at its end. */
static fiber *next_lane(void) {
  while (pass.done < pass.count) {
    fiber *f = &pass.lanes[at(pass.done, pass.count, pass.last)];
    if (f->state == READY) return f;
    pass.done++;
  }
  return NULL;
}

static void become(fiber *f) {
  running = f;
  pass.done++;
  simt_thread = (simt_place){(unsigned)(f - fibers), 0, 0};
}

/* After a switch: a fiber that the scheduler resumed learns its stack. */
static void arrived(void *fake_stack) {
#if defined(SANITIZED)
  const void *stack;
  size_t bytes;
  __sanitizer_finish_switch_fiber(fake_stack, &stack, &bytes);
  if (!from_scheduler) return;
  scheduler_stack = stack;
  scheduler_stack_bytes = bytes;
#else
  (void)fake_stack;
#endif
}

static void enter(void);

/* Gives |f| a stack on which it begins. */
static void begin(fiber *f) {
  assert(unused_count > 0); /* a stack was made for each thread */
  f->stack = unused[--unused_count];
#if BY_CONTEXT
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = f->stack;
  f->context.uc_stack.ss_size = STACK_BYTES;
  f->context.uc_link = NULL;
  makecontext(&f->context, enter, 0);
#else
  /* Six registers, the address that the switch returns to, and that which
   * |enter| would: so its stack is aligned as after a call. */
  void **top = (void **)(f->stack + STACK_BYTES - 64);
  *--top = NULL;
  *--top = (void *)(uintptr_t)enter;
  for (int i = 0; i < 6; i++) *--top = NULL;
  f->context = top;
#endif
}

/* From |from|, a fiber's or the scheduler's context, to the next lane. */
static void go(context *from, fiber *f, void **fake_stack) {
  if (f->stack == NULL) begin(f);
  become(f);
#if defined(SANITIZED)
  from_scheduler = from == &scheduler;
  __sanitizer_start_switch_fiber(fake_stack, f->stack, STACK_BYTES);
#else
  (void)fake_stack;
#endif
  switch_to(from, &f->context);
}

/* From a fiber to the next one or, at the end of the pass, the scheduler. */
static void yield_as(int state) {
  fiber *self = running;
  void **kept = state == ENDED ? NULL : &self->fake_stack;
  self->state = state;
  fiber *f = next_lane();
  if (f != NULL) {
    go(&self->context, f, kept);
  } else {
#if defined(SANITIZED)
    __sanitizer_start_switch_fiber(kept, scheduler_stack,
                                   scheduler_stack_bytes);
#endif
    switch_to(&self->context, &scheduler);
  }
  arrived(self->fake_stack);
}

/* Runs the lane, and those that begin after it, until one has a stack of its
 * own or there is none. */
static void enter(void) {
  arrived(NULL);
  for (;;) {
    body->run(arguments);
    running->state = ENDED;
    fiber *f = next_lane();
    if (f == NULL || f->stack != NULL) break;
    f->stack = running->stack;
    running->stack = NULL;
    become(f);
  }
  yield_as(ENDED);
  abort(); /* an ended fiber is not resumed */
}

/* Makes |threads| stacks, unless there are as many. */
static bool make_stacks(unsigned threads) {
  while (stacks < threads) {
    unsigned char *stack = aligned_alloc(64, STACK_BYTES);
    if (stack == NULL) return false;
    unused[unused_count++] = stack;
    stacks++;
  }
  return true;
}

/* Takes |f| back to its begin; one that was given up leaves marks on its
 * stack. */
static void reset(fiber *f) {
  if (f->stack != NULL) {
#if defined(SANITIZED)
    if (f->state != ENDED) __asan_unpoison_memory_region(f->stack, STACK_BYTES);
#endif
    unused[unused_count++] = f->stack;
  }
  *f = (fiber){.state = READY};
}

/* All shared memory; the linker's names for the ends of a section. */
extern unsigned char __start_simt_shared[]
    __attribute__((visibility("hidden")));
extern unsigned char __stop_simt_shared[] __attribute__((visibility("hidden")));

/* The running thread's next barrier is one that the body's author forgot. */
static bool is_forgotten(void) {
  bool first = running->barriers++ == 0;
  return standin_has(first ? STANDIN_BUG_first_barrier
                           : STANDIN_BUG_later_barrier);
}

void simt_barrier(void) {
  if (is_forgotten()) return;
  yield_as(AT_BARRIER);
}

void simt_exchange(void *value, size_t bytes, unsigned from) {
  unsigned char(*all)[8] = values[running->exchanges++ % 2];
  if (standin_has(STANDIN_BUG_own_lane)) from = simt_thread.x;
  memcpy(all[simt_thread.x % SIMT_LANES], value, bytes);
  yield_as(AT_EXCHANGE);
  memcpy(value, all[from % SIMT_LANES], bytes);
}

static void run_pass(fiber *lanes, unsigned count, bool last) {
  pass.lanes = lanes;
  pass.count = count;
  pass.done = 0;
  pass.last = last;
  fiber *f = next_lane();
  if (f == NULL) return;
#if defined(SANITIZED)
  go(&scheduler, f, &scheduler_fake_stack);
  __sanitizer_finish_switch_fiber(scheduler_fake_stack, NULL, NULL);
#else
  go(&scheduler, f, NULL);
#endif
}

/* Runs the lanes until none can go on: whole, they end or are at the barrier;
 * what they were at, if it was the same for all, opens. */
static simt_result run_warp(fiber *lanes, unsigned count, bool last) {
  for (;;) {
    unsigned in[ENDED + 1] = {0};
    run_pass(lanes, count, last);
    for (unsigned i = 0; i < count; i++) in[lanes[i].state]++;
    if (in[AT_EXCHANGE] == 0) return SIMT_OK;
    if (in[AT_EXCHANGE] != count) return SIMT_DIVERGED;
    for (unsigned i = 0; i < count; i++) lanes[i].state = READY;
  }
}

static simt_result run_warps(unsigned threads, bool last) {
  unsigned warps = (threads + SIMT_LANES - 1) / SIMT_LANES;
  memset(__start_simt_shared, 0xa5,
         (size_t)(__stop_simt_shared - __start_simt_shared));
  for (;;) {
    unsigned ended = 0;
    for (unsigned i = 0; i < warps; i++) {
      unsigned first = at(i, warps, last) * SIMT_LANES;
      unsigned left = threads - first;
      simt_result r =
          run_warp(&fibers[first], left < SIMT_LANES ? left : SIMT_LANES, last);
      if (r != SIMT_OK) return r;
    }
    for (unsigned i = 0; i < threads; i++) ended += fibers[i].state == ENDED;
    if (ended == threads) return SIMT_OK;
    if (ended > 0) return SIMT_BARRIER;
    for (unsigned i = 0; i < threads; i++) fibers[i].state = READY;
  }
}

static simt_result run_block(unsigned threads, bool last) {
  if (!make_stacks(threads)) return SIMT_MEMORY;
  simt_result r = run_warps(threads, last);
  for (unsigned i = 0; i < threads; i++) reset(&fibers[i]);
  return r;
}

simt_result simt_launch(const simt_body *which, const simt_grid *grid,
                        const void *args, bool last) {
  const unsigned *n = grid->blocks;
  uint64_t blocks = (uint64_t)n[0] * n[1] * n[2];
  simt_result r = SIMT_OK;
  body = which;
  arguments = args;
  simt_grid_dim = (simt_place){n[0], n[1], n[2]};
  simt_block_dim = (simt_place){grid->threads, 1, 1};
  for (uint64_t i = 0; r == SIMT_OK && i < blocks; i++) {
    uint64_t b = last ? blocks - 1 - i : i;
    simt_block = (simt_place){(unsigned)(b % n[0]), (unsigned)(b / n[0] % n[1]),
                              (unsigned)(b / n[0] / n[1])};
    r = run_block(grid->threads, last);
  }
  return r;
}
