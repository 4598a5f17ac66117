/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

/* Runs a fuzz target on every file of the given folders: as it is, cut off
 * after each byte, and with one bit of each byte turned. Small files only get
 * the last two. */

enum { kMutateBytes = 2048, kPathBytes = 4096 };

/* An own block for each input, so that sanitizers see reads past its end. */
static void run_copy(const uint8_t *data, size_t size, size_t flip) {
  uint8_t *copy = malloc(size > 0 ? size : 1);
  FUZZ_CHECK(copy != NULL);
  if (size > 0) memcpy(copy, data, size);
  if (flip < size) copy[flip] ^= (uint8_t)(1u << (flip % 8));
  FUZZ_CHECK(LLVMFuzzerTestOneInput(copy, size) == 0);
  free(copy);
}

static void run_all(const uint8_t *data, size_t size) {
  run_copy(data, size, SIZE_MAX);
  if (size > kMutateBytes) return;
  for (size_t i = 0; i < size; i++) run_copy(data, i, SIZE_MAX);
  for (size_t i = 0; i < size; i++) run_copy(data, size, i);
}

static void run_file(const char *path) {
  FILE *file = fopen(path, "rb");
  struct stat info;
  FUZZ_CHECK(file != NULL && fstat(fileno(file), &info) == 0);
  size_t size = (size_t)info.st_size;
  uint8_t *data = malloc(size > 0 ? size : 1);
  FUZZ_CHECK(data != NULL && fread(data, 1, size, file) == size);
  fclose(file);
  run_all(data, size);
  free(data);
}

static size_t run_folder(const char *folder) {
  size_t files = 0;
  DIR *dir = opendir(folder);
  FUZZ_CHECK(dir != NULL);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    char path[kPathBytes];
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    run_file(path);
    files++;
  }
  closedir(dir);
  return files;
}

int main(int argc, char **argv) {
  size_t files = 0;
  for (int i = 1; i < argc; i++) files += run_folder(argv[i]);
  printf("replayed %zu files\n", files);
  return files > 0 ? 0 : 1;
}
