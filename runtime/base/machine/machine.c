/* SPDX-License-Identifier: Apache-2.0 */
/* Caches and cores are read from the files of Linux, which are the same for
 * every processor; glibc's sysconf, which asks the processor, is second, since
 * it takes the third cache of some virtual machines for eight times its size.
 * What neither knows is 0. */
#include "runtime/base/machine/machine.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "runtime/base/table.h"

enum { kFile = 256, kPath = 512, kIndexes = 5 };

static const char kFolder[] = "/sys/devices/system/cpu";

/* ---- Instruction sets */

#if defined(__x86_64__)
/* The states of registers that the system saves: bit 17 and 18 are AMX's. */
static uint32_t saved_states(void) {
  uint32_t low, high, a, b, c = 0, d;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c >> 27 & 1) == 0) return 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/* Not every compiler's __builtin_cpu_supports knows these. */
static uint32_t newer_sets(void) {
  uint32_t a = 0, b, c, d = 0, sets = 0, state = saved_states();
  bool wide = (state & 0xe6) == 0xe6, tiles = (state >> 17 & 3) == 3;
  if ((state & 6) == 6 && __get_cpuid(1, &a, &b, &c, &d) != 0)
    sets |= (c >> 29 & 1) << WEIR_MACHINE_F16C;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return sets;
  if (wide) sets |= (d >> 23 & 1) << WEIR_MACHINE_AVX512FP16;
  if (tiles)
    sets |= (d >> 24 & 1) << WEIR_MACHINE_AMX_TILE |
            (d >> 25 & 1) << WEIR_MACHINE_AMX_INT8 |
            (d >> 22 & 1) << WEIR_MACHINE_AMX_BF16;
  if (a < 1 || __get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return sets;
  if (wide) sets |= (a >> 5 & 1) << WEIR_MACHINE_AVX512BF16;
  if ((state & 6) == 6) sets |= (a >> 4 & 1) << WEIR_MACHINE_AVXVNNI;
  return sets;
}

static uint32_t read_sets(void) {
#define HAS(name, text) \
  ((__builtin_cpu_supports(text) ? UINT32_C(1) : 0) << WEIR_MACHINE_##name)
  return HAS(SSE2, "sse2") | HAS(SSE42, "sse4.2") | HAS(AVX, "avx") |
         HAS(AVX2, "avx2") | HAS(FMA, "fma") | HAS(AVX512F, "avx512f") |
         HAS(AVX512BW, "avx512bw") | HAS(AVX512DQ, "avx512dq") |
         HAS(AVX512VL, "avx512vl") | HAS(AVX512VNNI, "avx512vnni") |
         newer_sets();
#undef HAS
}

static void read_name(char text[64]) {
  uint32_t words[12] = {0};
  for (uint32_t i = 0; i < 3; i++)
    if (__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1],
                    &words[4 * i + 2], &words[4 * i + 3]) == 0)
      break;
  memcpy(text, words, sizeof words);
  text[sizeof words] = '\0';
}
#else
static uint32_t read_sets(void) {
#if defined(__ARM_NEON)
  return UINT32_C(1) << WEIR_MACHINE_NEON;
#else
  return 0;
#endif
}

static void read_name(char text[64]) {
  text[0] = '\0';
}
#endif

/* Printable, without blanks around it. */
static void clean_name(char text[64]) {
  size_t begin = 0, end = strlen(text);
  for (size_t i = 0; i < end; i++)
    if (text[i] < ' ' || text[i] > '~') text[i] = '?';
  while (begin < end && text[begin] == ' ') begin++;
  while (end > begin && text[end - 1] == ' ') end--;
  memmove(text, text + begin, end - begin);
  text[end - begin] = '\0';
  if (begin == end) memcpy(text, "unknown", sizeof "unknown");
}

const char *weir_machine_set_text(unsigned set) {
#define TEXT(name, text) text,
  static const char *const kTexts[] = {WEIR_MACHINE_SETS(TEXT)};
#undef TEXT
  WEIR_TABLE_OF(kTexts, WEIR_MACHINE_SET_COUNT);
  return kTexts[set];
}

/* ---- Files */

/* The first line of cpu|cpu|/|name|, in |text|; false: there is none. */
static bool read_line(const char *folder, int cpu, const char *name,
                      char text[kFile]) {
  char path[kPath];
  int n = snprintf(path, sizeof path, "%s/cpu%d/%s", folder, cpu, name);
  if (n < 0 || n >= (int)sizeof path) return false;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = read(fd, text, kFile - 1);
  (void)close(fd);
  if (got <= 0) return false;
  text[got] = '\0';
  text[strcspn(text, "\n")] = '\0';
  return true;
}

/* The next range of a list like "0-3,8": false at its end or at an error. */
static bool next_range(const char **list, long *first, long *last) {
  char *end;
  *first = strtol(*list, &end, 10);
  if (end == *list || *first < 0) return false;
  *last = *first;
  if (*end == '-') *last = strtol(end + 1, &end, 10);
  if (*last < *first) return false;
  *list = *end == ',' ? end + 1 : end;
  return true;
}

/* ---- Caches */

/* "32K" */
static int64_t parse_bytes(const char *text) {
  char *end;
  long n = strtol(text, &end, 10);
  if (n <= 0 || n > 1 << 20) return 0;
  if (*end == 'K') return (int64_t)n << 10;
  return *end == 'M' ? (int64_t)n << 20 : n;
}

static int count_threads(const char *list) {
  long first, last, sum = 0;
  while (next_range(&list, &first, &last) && last < 1 << 20)
    sum += last - first + 1;
  return sum <= 1 << 20 ? (int)sum : 0;
}

/* Reads the cache of |index|; false: it holds instructions, or is none. */
static bool read_cache(const char *folder, int index, weir_cache *out) {
  char name[64], text[kFile];
  *out = (weir_cache){0};
  snprintf(name, sizeof name, "cache/index%d/type", index);
  if (!read_line(folder, 0, name, text) || strcmp(text, "Instruction") == 0)
    return false;
  snprintf(name, sizeof name, "cache/index%d/size", index);
  if (read_line(folder, 0, name, text)) out->bytes = parse_bytes(text);
  snprintf(name, sizeof name, "cache/index%d/shared_cpu_list", index);
  if (read_line(folder, 0, name, text)) out->threads = count_threads(text);
  return true;
}

/* Linux lists them level by level, so those that hold data are the levels. */
static void read_caches(const char *folder, weir_cache *caches) {
  static const int kNames[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                               _SC_LEVEL3_CACHE_SIZE};
  memset(caches, 0, WEIR_MACHINE_CACHES * sizeof *caches);
  for (int i = 0, level = 0; i < kIndexes && level < WEIR_MACHINE_CACHES; i++)
    level += read_cache(folder, i, &caches[level]);
  if (caches[0].bytes > 0) return;
  for (int i = 0; i < WEIR_MACHINE_CACHES; i++) {
    long bytes = sysconf(kNames[i]);
    caches[i].bytes = bytes > 0 ? bytes : 0;
  }
}

/* ---- Cores */

/* Whether |cpu| is the first of its core's hardware threads in |set|. */
static bool leads_core(const char *folder, int cpu, const cpu_set_t *set) {
  char text[kFile];
  const char *list = text;
  long first, last;
  if (!read_line(folder, cpu, "topology/thread_siblings_list", text))
    return true;
  while (next_range(&list, &first, &last))
    for (long i = first; i <= last && i < cpu; i++)
      if (CPU_ISSET((size_t)i, set)) return false;
  return true;
}

static void read_cores(const char *folder, const cpu_set_t *set,
                       weir_machine *out) {
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET((size_t)cpu, set)) continue;
    out->threads++;
    if (leads_core(folder, cpu, set)) out->cores++;
  }
}

static void read_all(const char *folder, const cpu_set_t *set,
                     weir_machine *out) {
  *out = (weir_machine){.sets = read_sets()};
  read_name(out->name);
  clean_name(out->name);
  read_caches(folder, out->caches);
  read_cores(folder, set, out);
}

void weir_machine_read_at(const char *folder, int cpus, weir_machine *out) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < cpus && i < CPU_SETSIZE; i++) CPU_SET((size_t)i, &set);
  read_all(folder, &set, out);
}

/* A machine with more hardware threads than a cpu_set_t has gives no set: the
 * first ones stand for it. */
void weir_machine_read(weir_machine *out) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
    read_all(kFolder, &set, out);
    return;
  }
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  weir_machine_read_at(kFolder, count > 0 ? (int)count : 1, out);
}
