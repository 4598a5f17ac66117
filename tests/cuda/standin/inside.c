/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/standin/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda/standin/work.h"

/* The file, as test_cuda_share.py reads it. */
typedef struct inside_file {
  atomic_int pid;      /* of the process that has work; 0: none */
  atomic_int begun;    /* how often a process came to have work */
  atomic_int overlaps; /* and another one had some */
} inside_file;

static inside_file *file;
static bool busy;

void standin_inside_open(void) {
  const char *path = getenv("STANDIN_INSIDE");
  int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *data =
      mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (data != MAP_FAILED) file = data;
}

static bool has_work(void) {
  for (struct CUstream_st *s = standin_streams; s != NULL; s = s->next)
    for (const standin_work *w = s->works.first; w != NULL; w = w->next)
      if (w->kind == RUN || w->kind == TASK) return true;
  return false;
}

static void begin(int me) {
  int other = 0;
  atomic_fetch_add(&file->begun, 1);
  while (!atomic_compare_exchange_strong(&file->pid, &other, me))
    if (other != 0 && (kill(other, 0) == 0 || errno != ESRCH)) {
      atomic_fetch_add(&file->overlaps, 1);
      return;
    }
}

void standin_inside_look(void) {
  if (file == NULL) return;
  bool now = has_work();
  if (now == busy) return;
  int me = (int)getpid();
  busy = now;
  if (now)
    begin(me);
  else
    (void)atomic_compare_exchange_strong(&file->pid, &me, 0);
}
