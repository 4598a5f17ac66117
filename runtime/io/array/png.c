/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/png.h"

#include <assert.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/io/inflate.h"

/* The one door to libpng.
 *
 * libpng reports a failure by a function that must not return, so each piece of
 * work with it is a step that `attempt` calls under setjmp. A step has no
 * locals that outlive it and holds no memory of its own: all lies in png_job,
 * which its owner releases on every way out.
 *
 * Every chunk that does not change samples is skipped unread (kSkipped), which
 * keeps libpng's parsers of texts and profiles away from untrusted bytes. No
 * pixel is allocated before the header's size was compared with the most that
 * the file's bytes can unpack to. A fault libpng would only warn of in pixels
 * is an error here. */

enum { kMagicBytes = 8, kTextBytes = 128 };

typedef struct png_job {
  jmp_buf failed;
  const weir_allocator *alloc;
  weir_bytes src;
  size_t at; /* bytes of |src| that were read */
  png_structp png;
  png_infop info;
  uint8_t *pixels; /* of the tensor */
  size_t height, width, channels;
  size_t packed_row; /* bytes of a row as the file has it */
  bool no_memory;
  char why[kTextBytes];
} png_job;

bool weir_png_is(weir_bytes bytes) {
  static const uint8_t kMagic[kMagicBytes] = {0x89, 'P',  'N',  'G',
                                              '\r', '\n', 0x1a, '\n'};
  return bytes.size >= kMagicBytes &&
         memcmp(bytes.data, kMagic, kMagicBytes) == 0;
}

/* ---- The functions libpng calls */

static void on_error(png_structp png, png_const_charp text) {
  png_job *job = png_get_error_ptr(png);
  snprintf(job->why, sizeof job->why, "%s", text);
  longjmp(job->failed, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
  (void)png;
  (void)text;
}

static png_voidp on_alloc(png_structp png, png_alloc_size_t bytes) {
  png_job *job = png_get_mem_ptr(png);
  void *memory = weir_alloc_array(job->alloc, 1, bytes);
  if (memory == NULL) job->no_memory = true;
  return memory;
}

static void on_free(png_structp png, png_voidp memory) {
  png_job *job = png_get_mem_ptr(png);
  weir_free(job->alloc, memory);
}

static void on_read(png_structp png, png_bytep dst, size_t bytes) {
  png_job *job = png_get_io_ptr(png);
  if (bytes > job->src.size - job->at) png_error(png, "the file ends early");
  memcpy(dst, job->src.data + job->at, bytes);
  job->at += bytes;
}

/* ---- Steps */

/* Runs |step|; false when it failed, and job->why or no_memory says why. */
static bool attempt(png_job *job, void (*step)(png_job *job)) {
  if (setjmp(job->failed) != 0) return false;
  step(job);
  return true;
}

static void create(png_job *job) {
  job->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, job, on_error,
                                      on_warning, job, on_alloc, on_free);
  if (job->png != NULL) job->info = png_create_info_struct(job->png);
}

/* Five bytes a name, as libpng takes them. */
static const png_byte kSkipped[] =
    "bKGD\0cHRM\0cICP\0cLLI\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0mDCV\0oFFs\0pCAL\0"
    "pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0sTER\0tEXt\0tIME\0zTXt";

static void read_head(png_job *job) {
  png_set_read_fn(job->png, job, on_read);
  png_set_user_limits(job->png, WEIR_PNG_SIDE, WEIR_PNG_SIDE);
  png_set_benign_errors(job->png, 0);
  png_set_keep_unknown_chunks(job->png, PNG_HANDLE_CHUNK_NEVER, kSkipped,
                              (int)(sizeof kSkipped / 5));
  png_read_info(job->png, job->info);
  job->packed_row = png_get_rowbytes(job->png, job->info);
  if (png_get_bit_depth(job->png, job->info) == 16) png_set_scale_16(job->png);
  png_set_expand(job->png); /* palettes, few bits, transparent colours */
  png_set_interlace_handling(job->png);
  png_read_update_info(job->png, job->info);
  job->height = png_get_image_height(job->png, job->info);
  job->width = png_get_image_width(job->png, job->info);
  job->channels = png_get_channels(job->png, job->info);
}

/* Each pass of an interlaced picture fills in some of each row's pixels. */
static void read_pixels(png_job *job) {
  int passes =
      png_get_interlace_type(job->png, job->info) == PNG_INTERLACE_ADAM7 ? 7
                                                                         : 1;
  size_t row = job->width * job->channels;
  for (int pass = 0; pass < passes; pass++)
    for (size_t y = 0; y < job->height; y++)
      png_read_row(job->png, job->pixels + y * row, NULL);
  png_read_end(job->png, NULL);
}

/* ---- The whole file */

static weir_status bad(const png_job *job, const char *file, weir_error *err) {
  weir_mark at = {.file = file};
  if (job->no_memory) return weir_fail_memory(err, 0);
  return weir_fail(err, WEIR_W4017, &at, "%s, at byte %zu of %zu",
                   job->why[0] != '\0' ? job->why : "libpng does not start",
                   job->at, job->src.size);
}

/* The header's size, against the most the file can hold. */
static weir_status make_tensor(const png_job *job, const char *file,
                               weir_tensor **out_tensor, weir_error *err) {
  weir_mark at = {.file = file};
  size_t packed;
  assert(png_get_bit_depth(job->png, job->info) == 8);
  if (!weir_size_mul(job->packed_row, job->height, &packed) ||
      packed > weir_inflate_most(job->src.size))
    return weir_fail(err, WEIR_W4017, &at,
                     "the header says %zu x %zu pixels; %zu bytes cannot hold "
                     "so many",
                     job->width, job->height, job->src.size);
  weir_shape shape =
      weir_shape_of(3, (int64_t[]){(int64_t)job->height, (int64_t)job->width,
                                   (int64_t)job->channels});
  return weir_tensor_create_shaped(job->alloc, WEIR_U8, &shape, out_tensor,
                                   err);
}

static weir_status read_all(png_job *job, const char *file,
                            weir_tensor **out_tensor, weir_error *err) {
  weir_mark at = {.file = file};
  if (!attempt(job, create) || job->info == NULL || !attempt(job, read_head))
    return bad(job, file, err);
  WEIR_TRY(make_tensor(job, file, out_tensor, err));
  job->pixels = (*out_tensor)->data;
  if (!attempt(job, read_pixels)) return bad(job, file, err);
  if (job->at == job->src.size) return WEIR_OK;
  return weir_fail(err, WEIR_W4017, &at, "%zu bytes follow the picture",
                   job->src.size - job->at);
}

weir_status weir_png_read(const weir_allocator *alloc, weir_bytes bytes,
                          const char *file, weir_tensor **out_tensor,
                          weir_error *err) {
  png_job job = {.alloc = alloc, .src = bytes};
  *out_tensor = NULL;
  weir_status s = read_all(&job, file, out_tensor, err);
  if (job.png != NULL) png_destroy_read_struct(&job.png, &job.info, NULL);
  if (s == WEIR_OK) return s;
  weir_tensor_unref(*out_tensor);
  *out_tensor = NULL;
  return s;
}
