/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <zlib.h>

#include "runtime/base/env_system.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/data/data_vocabulary.h"
#include "tests/train/data_check.h"

/* csv, tfrecord and text: records of any length. */

#define SET(inputs, more) \
  "inputs: {" inputs "}\noutputs: [x]\ndata: {t: {" more "}}\n"
#define CSV(inputs, more) SET(inputs, "source: csv, files: a.csv" more)

static void put_gzip(const char *name, const void *bytes, size_t size) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", data_folder, name);
  gzFile g = gzopen(path, "wb");
  assert_int_equal(gzwrite(g, bytes, (unsigned)size), (int)size);
  gzclose(g);
}

static void put_rows(int count) {
  char *text = malloc(64 * (size_t)count + 64);
  assert_non_null(text);
  if (text == NULL) return; /* for the compiler */
  int n = sprintf(text, "x,name,y\r\n");
  for (int i = 0; i < count; i++)
    n += sprintf(text + n, i % 3 ? "%d,\"n,%d\",%g\r\n" : "%d,n%d,%g\n", i,
                 i % 2, i / 4.0);
  data_put("a.csv", text, (size_t)n);
  put_gzip("a.csv.gz", text, (size_t)n);
  free(text);
}

static void csv_columns(void **state) {
  (void)state;
  put_rows(5);
  data_gives(CSV("x: 'i32[?]', y: 'f64[?]'", ", ignore: [name], batch: 2"), 4,
             "x=0,1;y=0,0.25 | x=2,3;y=0.5,0.75 | x=4;y=1 | END ");
  data_gives(CSV("x: 'i32[?]'", ", columns: {x: i32}, batch: 5"), 1,
             "x=0,1,2,3,4 | ");
  data_gives(
      CSV("x: 'f32[?, 2]'", ", columns: {x: {fields: [y, x]}}, batch: 2"), 1,
      "x=0,0,0.25,1 | ");
  data_gives(CSV("x: 'i32[?]'",
                 ", columns: {x: {fields: [name]}}, batch: 5, vocabulary: {x: "
                 "['n0', 'n,0', 'n,1', 'n1']}"),
             1, "x=0,2,1,3,1 | ");
  data_gives(CSV("x: 'f32[?]'",
                 ", columns: [x], normalise: {x: {mean: 2, "
                 "std: 2}}, batch: 5"),
             1, "x=-1,-0.5,0,0.5,1 | ");
  data_gives(CSV("x: 'i32[?]'",
                 ", columns: [x], bucketize: {x: [1, 3]}, "
                 "batch: 5"),
             1, "x=0,1,1,2,2 | ");
  data_refuses(CSV("x: 'i32[?]'", ", columns: [x, z]"), "W4021", "no 'z'");
  data_refuses(CSV("x: 'i32[?]'", ", columns: [x, nam]"), "W4021", "no 'nam'");
}

static void csv_forms(void **state) {
  (void)state;
  data_put_text("a.csv", "1;2\n3;4\n");
  data_gives(SET("x: 'f32[?]', y: 'f32[?]'",
                 "source: csv, files: a.csv, header: false, delimiter: ';', "
                 "columns: [x, y], batch: 2"),
             1, "x=1,3;y=2,4 | ");
  data_gives(SET("x: 'f32[?]'",
                 "source: csv, files: a.csv, header: false, delimiter: ';', "
                 "columns: [a, x], ignore: [a], batch: 2"),
             1, "x=2,4 | ");
  data_refuses(SET("x: 'f32[?]'",
                   "source: csv, files: a.csv, header: false, "
                   "delimiter: ';', columns: [x]"),
               "W4024", "2 fields");
  data_put_text("a.csv", "x\ty\n1\t\n\t2\n");
  data_gives(SET("x: 'f32[?]', y: 'i64[?]'",
                 "source: csv, files: a.csv, delimiter: tab, columns: {x: "
                 "{default: -1}, y: {default: 7}}, batch: 2"),
             1, "x=1,-1;y=7,2 | ");
  data_put_text("b.csv", "x,y\n5,6\n");
  data_put_text("c.csv", "x,y\n7,8");
  data_gives(SET("x: 'f32[?]', y: 'f32[?]'",
                 "source: csv, files: [c.csv, 'b*.csv', c.csv], batch: 3"),
             2, "x=7,5,7;y=8,6,8 | END ");
  data_put_text("b.csv", "y,x\n5,6\n");
  data_refuses(
      SET("x: 'f32[?]', y: 'f32[?]'", "source: csv, files: [c.csv, b.csv]"),
      "W4026", "header differs");
}

/* Errors are reported with file and line. */
static void csv_wrong(void **state) {
  (void)state;
  static const struct {
    const char *text, *id, *says;
    unsigned line;
  } kBad[] = {
      {"x\n1\n2,3\n", "W4026", "2 fields, the header 1", 3},
      {"x,y\n1\n", "W4026", "1 fields, the header 2", 2},
      {"x\n1\n\"2\n", "W4026", "does not end", 3},
      {"x\n1\n2\"\n", "W4026", "a quote inside", 3},
      {"", "W4026", "empty", 1},
      {"x,x\n1,2\n", "W4026", "called 'x'", 0},
  };
  for (size_t i = 0; i < sizeof kBad / sizeof kBad[0]; i++) {
    weir_dataset *set = NULL;
    weir_error err = WEIR_ERROR_INIT;
    data_put_text("a.csv", kBad[i].text);
    weir_status s =
        data_open_with(weir_env_system(), CSV("x: 'f32[?]'", ", columns: [x]"),
                       NULL, &set, &err);
    assert_int_not_equal(s, WEIR_OK);
    assert_string_equal(err.id, kBad[i].id);
    if (strstr(err.message, kBad[i].says) == NULL) fail_msg("%s", err.message);
    if (kBad[i].line > 0) {
      assert_string_equal(err.file, "a.csv");
      assert_int_equal(err.line, kBad[i].line);
    }
  }
}

static void csv_bad_values(void **state) {
  (void)state;
  static const struct {
    const char *type, *value;
  } kBad[] = {{"f32", "one"}, {"f32", ""},     {"i32", "1.5"},
              {"u8", "256"},  {"i32", "1e10"}, {"i32", "2147483648"},
              {"bool", "2"},  {"f32", "nan"},  {"f32", "1 2"}};
  for (size_t i = 0; i < sizeof kBad / sizeof kBad[0]; i++) {
    char text[256], rows[64];
    weir_error err = WEIR_ERROR_INIT;
    weir_batch b;
    snprintf(rows, sizeof rows, "x,y\n1,1\n%s,1\n", kBad[i].value);
    data_put_text("a.csv", rows);
    snprintf(text, sizeof text, CSV("x: '%s[?]'", ", columns: [x]"),
             kBad[i].type);
    weir_dataset *set = data_open(text);
    weir_data_iter *it = data_iter(set);
    assert_ok(weir_data_iter_next(it, &b, &err), &err);
    assert_error(weir_data_iter_next(it, &b, &err), &err, "W4027");
    assert_string_equal(err.file, "a.csv");
    assert_int_equal(err.line, 3);
    weir_data_iter_release(it);
    weir_dataset_release(set);
  }
}

static void csv_ways_agree(void **state) {
  (void)state;
  put_rows(700);
#define ROWS(file, more)          \
  SET("x: 'i32[?]', y: 'f32[?]'", \
      "source: csv, files: " file ", columns: [x, y], batch: 16" more)
  data_same(ROWS("a.csv", ""), ROWS("a.csv.gz", ""), 50);
  data_same(ROWS("a.csv", ""), ROWS("a.csv.gz", ", memory: 0"), 100);
  data_same(ROWS("a.csv", ", shuffle: {seed: 5}"),
            ROWS("a.csv.gz", ", shuffle: {seed: 5}"), 100);
  data_resumes(ROWS("a.csv", ", shuffle: {seed: 5, buffer: 99}, take: 70"), 11);
  data_resumes(ROWS("a.csv.gz", ", memory: 0, take: 70"), 11);
  data_refuses(ROWS("a.csv.gz", ", memory: 0, shuffle: true"), "W4035",
               "cannot be shuffled");
}

static void csv_vocabulary_is_built(void **state) {
  (void)state;
  data_put_text("a.csv", "x\nb\na\nb\nc\na\nb\nd\n");
  data_put_text("b.csv", "x\na\nz\n");
  data_gives(CSV("x: 'i32[?]'",
                 ", columns: [x], vocabulary: {x: {size: 3, unknown: u}}, "
                 "batch: 7"),
             1, "x=1,2,1,0,2,1,0 | ");
  data_gives(
      CSV("x: 'i32[?]'", ", columns: [x], vocabulary: {x: {}}, batch: 7"), 1,
      "x=0,1,0,2,1,0,3 | ");
  data_gives(
      "inputs: {x: 'i32[?]'}\noutputs: [x]\ndata: {t: {source: csv, "
      "files: b.csv, columns: [x], vocabulary: {x: {from: train, "
      "unknown: u}}, batch: 2},\n"
      "  train: {source: csv, files: a.csv, columns: [x], vocabulary: "
      "{x: {size: 3, unknown: u}}}}\n",
      1, "x=2,0 | ");
}

/* ---- tfrecord */

static void put_records(void) {
  char path[1024], bytes[4096];
  const char *root = getenv("WEIR_SOURCE_ROOT");
  snprintf(path, sizeof path, "%s/tests/io/data/some.tfrecord",
           root != NULL ? root : ".");
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  data_put("a.tfrecord", bytes, n);
  data_put("b.tfrecord", bytes, n);
  put_gzip("c.gz", bytes, n);
  bytes[n - 5] ^= 1;
  data_put("bad.tfrecord", bytes, n);
}

#define REC(inputs, features, more)                                       \
  SET(inputs, "source: tfrecord, files: a.tfrecord, features: {" features \
              "}, batch: 5" more)

static void tfrecord_features(void **state) {
  (void)state;
  put_records();
  data_gives(REC("x: 'f32[?, 2]'", "x: 'f32[2]'", ""), 1,
             "x=0,0.5,1,1.5,2,2.5,3,3.5,4,4.5 | ");
  data_gives(REC("id: 'i64[?, 2]', x: 'f64[?, 2]'", "id: 'i64[2]', x: 'f64[2]'",
                 ", take: 2"),
             1, "id=0,1.09951e+12,-1,1.09951e+12;x=0,0.5,1,1.5 | ");
  data_gives(REC("maybe: 'i32[?]', x: 'f32[?, 2]'",
                 "maybe: {dtype: i32, default: -1}", ""),
             1, "maybe=7,8,9,-1,11 | ");
  data_gives(REC("raw: 'u8[?, 3]', x: 'f32[?, 2]'", "raw: 'u8[3]'", ""), 1,
             "raw=0,2,3,1,2,3,2,2,3,3,2,3,4,2,3 | ");
  data_gives(REC("word: 'i32[?]', x: 'f32[?, 2]'", "word: i32",
                 ", vocabulary: {word: [green, red]}"),
             1, "word=1,0,1,0,1 | ");
  data_gives(REC("word: 'i64[?]', x: 'f32[?, 2]'", "word: i64",
                 ", vocabulary: {word: {}}"),
             1, "word=0,1,0,1,0 | ");
  data_same(REC("x: 'f32[?, 2]'", "x: 'f32[2]'", ", shuffle: {seed: 1}"),
            SET("x: 'f32[?, 2]'",
                "source: tfrecord, files: c.gz, features: {x: 'f32[2]'}, "
                "batch: 5, shuffle: {seed: 1}"),
            9);
  data_resumes(SET("x: 'f32[?, 2]'",
                   "source: tfrecord, files: '?.tfrecord', features: {x: "
                   "'f32[2]'}, batch: 3, shuffle: true"),
               9);
}

static void tfrecord_wrong(void **state) {
  (void)state;
  static const struct {
    const char *text, *id, *says;
  } kBad[] = {
      {REC("maybe: 'i32[?]'", "maybe: i32", ""), "W4029", "not in a record"},
      {REC("x: 'f32[?, 3]'", "x: 'f32[3]'", ""), "W4029", "2 values"},
      {REC("word: 'u8[?]'", "word: u8", ""), "W4029", "holds bytes"},
      {REC("id: 'i32[?, 2]'", "id: 'i32[2]'", ""), "W4027", "1099511627776"},
      {SET("x: 'f32[?, 2]'",
           "source: tfrecord, files: bad.tfrecord, features: "
           "{x: 'f32[2]'}, batch: 5"),
       "W4028", "another checksum"},
  };
  put_records();
  for (size_t i = 0; i < sizeof kBad / sizeof kBad[0]; i++) {
    char text[512];
    weir_error err = WEIR_ERROR_INIT;
    weir_batch b;
    snprintf(text, sizeof text, "%s", kBad[i].text);
    char *out = strstr(text, "outputs: [x]");
    memcpy(out, "outputs: []", 11); /* not every graph here has an x */
    out[11] = ' ';
    weir_dataset *set = data_open(text);
    weir_data_iter *it = data_iter(set);
    assert_error(weir_data_iter_next(it, &b, &err), &err, kBad[i].id);
    if (strstr(err.message, kBad[i].says) == NULL) fail_msg("%s", err.message);
    weir_data_iter_release(it);
    weir_dataset_release(set);
  }
  data_put_text("a.tfrecord", "hello, this is no record");
  data_refuses(REC("x: 'f32[?, 2]'", "x: 'f32[2]'", ""), "W4028", "checksum");
}

/* ---- text */

#define TEXT(more)                                                      \
  SET("tokens: 'i32[?, 4]', target: 'i32[?, 4]', x: 'f32[1] = ones()'", \
      "source: text, files: a.txt, " more)

static void text_windows(void **state) {
  (void)state;
  data_put_text("a.txt", "abcabcdabcab");
  /* a 4, b 4, c 3, d 1: 0 1 2 0 1 2 3 0 1 2 0 1 */
  data_gives(TEXT("window: {length: 4, target: next}, batch: 2"), 3,
             "tokens=0,1,2,0,1,2,3,0;target=1,2,0,1,2,3,0,1 | END "
             "tokens=0,1,2,0,1,2,3,0;target=1,2,0,1,2,3,0,1 | ");
  data_gives(TEXT("window: {length: 4, shift: 3, target: next}, batch: 3"), 2,
             "tokens=0,1,2,0,0,1,2,3,3,0,1,2;"
             "target=1,2,0,1,1,2,3,0,0,1,2,0 | END ");
  data_gives(SET("tokens: 'i32[?, 4]', x: 'f32[1] = ones()'",
                 "source: text, files: a.txt, window: {length: 4}, batch: 3"),
             2, "tokens=0,1,2,0,1,2,3,0,1,2,0,1 | END ");
}

/* Two pieces of six; each goes on where it stopped. */
static void text_streams(void **state) {
  (void)state;
  data_put_text("a.txt", "abcabcdabcab");
#define TWO(more)                                                          \
  SET("tokens: 'i32[2, 2]', target: 'i32[2, 2]', x: 'f32[1] = ones()'",    \
      "source: text, files: a.txt, batch: 2, window: {length: 2, target: " \
      "next, stream: true}" more)
  data_gives(TWO(""), 4,
             "tokens=0,1,3,0;target=1,2,0,1 | tokens=2,0,1,2;target=0,1,2,0 | "
             "END tokens=0,1,3,0;target=1,2,0,1 | ");
  data_resumes(TWO(""), 5);
  data_refuses(TWO(", shuffle: true"), "W4024", "keep their order");
  data_refuses(SET("tokens: 'i32[2, 2]', x: 'f32[1] = ones()'",
                   "source: text, files: a.txt, window: {length: 2, stream: "
                   "true}"),
               "W4024", "need `batch`");
  data_put_text("a.txt", "ab");
  data_refuses(TWO(""), "W4033", "no batch");
}

static void text_stream_shards(void **state) {
  (void)state;
  data_put_text("a.txt", "abcdefghijklmnop"); /* all once: in byte order */
  static const char *const kWant[] = {
      "tokens=0,1,4,5;target=1,2,5,6 | END ",
      "tokens=8,9,12,13;target=9,10,13,14 | END "};
  for (uint32_t k = 0; k < 2; k++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_dataset_options o = {.shard = k, .shards = 2};
    weir_dataset *set = NULL;
    assert_ok(data_open_with(weir_env_system(), TWO(""), &o, &set, &err), &err);
    weir_data_iter *it = data_iter(set);
    char *text = data_take(set, it, 2);
    assert_string_equal(text, kWant[k]);
    free(text);
    weir_data_iter_release(it);
    weir_dataset_release(set);
  }
}

static void text_words(void **state) {
  (void)state;
  data_put_text("a.txt", "the cat \n  the\tdog\nthe bird cat");
  /* the 3, <eos> 2, cat 2, bird 1, dog 1; <eos> < cat by bytes */
#define WORDS(text)                             \
  SET("tokens: 'i32[?]', x: 'f32[1] = ones()'", \
      "source: text, files: a.txt, "            \
      "text: {level: words" text "}, batch: 9")
  data_gives(WORDS(", end_of_line: <eos>"), 1, "tokens=0,2,1,0,4,1,0,3,2 | ");
  data_gives(WORDS(""), 1, "tokens=0,1,0,3,0,2,1 | ");
  data_gives(WORDS(", vocabulary: {size: 3, unknown: <unk>}"), 1,
             "tokens=1,2,1,0,1,0,2 | ");
  data_gives(WORDS(", vocabulary: {list: [cat, the], unknown: <unk>}"), 1,
             "tokens=2,1,2,0,2,0,1 | ");
  weir_error err = WEIR_ERROR_INIT;
  weir_batch b;
  weir_dataset *set = data_open(WORDS(", vocabulary: {list: [cat, the]}"));
  weir_data_iter *it = data_iter(set);
  assert_error(weir_data_iter_next(it, &b, &err), &err, "W4031");
  assert_string_equal(err.file, "a.txt");
  assert_int_equal(err.line, 2);
  weir_data_iter_release(it);
  weir_dataset_release(set);
}

static void text_not_utf8(void **state) {
  (void)state;
  data_put_text("a.txt",
                "gr\xc3\xbc\xc3\x9f"
                "e\nab\xff"
                "c");
  for (int words = 0; words < 2; words++) {
    weir_dataset *set = NULL;
    weir_error err = WEIR_ERROR_INIT;
    assert_error(
        data_open_with(weir_env_system(), words ? WORDS("") : TEXT("batch: 1"),
                       NULL, &set, &err),
        &err, "W4030");
    assert_int_equal(err.line, 2);
    assert_non_null(strstr(err.message, "byte 10"));
  }
  data_put_text("a.txt", "\xc3\xbc\xc3\xbc a");
  data_gives(SET("tokens: 'i32[?]', x: 'f32[1] = ones()'",
                 "source: text, files: a.txt, batch: 4"),
             1, "tokens=0,0,1,2 | ");
}

static void text_saves_its_vocabulary(void **state) {
  (void)state;
  data_put_text("a.txt", "b\\a\nb\\");
  data_put_text("v.txt", "b\n\\\\\n\\n\na\n");
  const char *file = SET("tokens: 'i32[?]', x: 'f32[1] = ones()'",
                         "source: text, files: a.txt, batch: 9, text: "
                         "{vocabulary: v.txt}");
  data_gives(file, 1, "tokens=0,1,3,2,0,1 | ");
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  weir_dataset *set = data_open(file);
  weir_vocabulary *v = weir_dataset_vocabulary(set, WEIR_SV_LIT("tokens"));
  assert_int_equal(weir_vocabulary_count(v), 4);
  assert_true(weir_sv_is(weir_vocabulary_text(v, 2), "\n"));
  weir_strbuf_init(&out, weir_allocator_system());
  assert_ok(weir_vocabulary_write(v, &out, &err), &err);
  assert_string_equal(out.data, "b\n\\\\\n\\n\na\n");
  weir_strbuf_release(&out);
  weir_dataset_release(set);
  data_put_text("v.txt", "b\na\nb\n");
  data_refuses(file, "W4032", "'b' occurs twice");
  data_put_text("v.txt", "b\n\n");
  data_refuses(file, "W4032", "entry 2 is empty");
  data_put_text("v.txt", "a\\b");
  data_refuses(file, "W4032", "backslash");
}

/* some.tfrecord again and again. */
static void put_many_records(size_t least) {
  char path[256], bytes[4096];
  put_records();
  snprintf(path, sizeof path, "%s/b.tfrecord", data_folder);
  FILE *f = fopen(path, "rb");
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  snprintf(path, sizeof path, "%s/a.tfrecord", data_folder);
  f = fopen(path, "wb");
  for (size_t size = 0; size < least; size += n)
    assert_int_equal(fwrite(bytes, 1, n, f), n);
  fclose(f);
}

/* Eight MiB of text and of rows in less than a quarter of that. */
static void larger_than_memory(void **state) {
  (void)state;
  enum { kBytes = 8 << 20 };
  char *text = malloc(kBytes + 64);
  assert_non_null(text);
  if (text == NULL) return; /* for the compiler */
  size_t n = (size_t)sprintf(text, "x,name\n");
  for (int i = 0; n < kBytes; i++)
    n += (size_t)sprintf(text + n, "%d,some words here %d\n", i % 1000, i % 7);
  data_put("a.txt", text, n);
  data_put("a.csv", text, n);
  put_gzip("a.csv.gz", text, n);
  free(text);
  put_many_records(kBytes);
  static const char *const kSets[] = {
      SET("tokens: 'i32[?, 32]', target: 'i32[?, 32]', x: 'f32[1] = ones()'",
          "source: text, files: a.txt, batch: 16, window: {length: 32, target: "
          "next, stream: true}"),
      SET("tokens: 'i32[?, 32]', x: 'f32[1] = ones()'",
          "source: text, files: a.txt, batch: 16, window: {length: 32}, text: "
          "{level: words, vocabulary: {size: 500, unknown: u}}, shuffle: "
          "{seed: 1, buffer: 1000}"),
      CSV("x: 'i32[?]'",
          ", columns: [x], batch: 50, shuffle: {seed: 1, "
          "buffer: 10000}"),
  };
  for (size_t i = 0; i < sizeof kSets / sizeof kSets[0]; i++) {
    data_env e;
    weir_error err = WEIR_ERROR_INIT;
    weir_dataset *set = NULL;
    weir_data_iter *it = NULL;
    weir_batch b = {0};
    data_env_init(&e);
    assert_ok(data_open_with(&e.env, kSets[i], NULL, &set, &err), &err);
    assert_ok(weir_data_iter_create(set, &it, &err), &err);
    for (int k = 0; k < 300; k++)
      assert_ok(weir_data_iter_next(it, &b, &err), &err);
    if (atomic_load(&e.counted.peak_bytes) >= kBytes / 4)
      fail_msg("peak %lld", (long long)atomic_load(&e.counted.peak_bytes));
    weir_data_iter_release(it);
    weir_dataset_release(set);
    assert_int_equal(atomic_load(&e.counted.live_blocks), 0);
  }
}

/* After the first epoch nothing is allocated any more. */
static void steady(void **state) {
  (void)state;
  put_rows(300);
  put_records();
  data_put_text("a.txt", "abcabcdabcabdcbadcbaabcdddcabcd");
  static const char *const kSets[] = {
      ROWS("a.csv", ", shuffle: {seed: 3, buffer: 50}"),
      CSV("x: 'i32[?]', name: 'i32[?]'",
          ", columns: [x, name], vocabulary: {name: {}}, batch: 7"),
      REC("x: 'f32[?, 2]', word: 'i32[?]'", "x: 'f32[2]', word: i32",
          ", vocabulary: {word: {}}, shuffle: true"),
      TWO("")};
  for (size_t i = 0; i < sizeof kSets / sizeof kSets[0]; i++) {
    data_env e;
    weir_error err = WEIR_ERROR_INIT;
    weir_dataset *set = NULL;
    weir_data_iter *it = NULL;
    weir_batch b = {0};
    data_env_init(&e);
    assert_ok(data_open_with(&e.env, kSets[i], NULL, &set, &err), &err);
    assert_ok(weir_data_iter_create(set, &it, &err), &err);
    while (!b.end_of_epoch) assert_ok(weir_data_iter_next(it, &b, &err), &err);
    uint64_t calls = atomic_load(&e.counted.calls);
    for (int k = 0; k < 100; k++)
      assert_ok(weir_data_iter_next(it, &b, &err), &err);
    assert_int_equal(atomic_load(&e.counted.calls), calls);
    weir_data_iter_release(it);
    weir_dataset_release(set);
  }
}

/* ---- Several iterators of one data set, each in a thread of its own. */

typedef struct walker {
  weir_dataset *set;
  char *text;
} walker;

static void *walk(void *self) {
  walker *w = self;
  weir_data_iter *it = data_iter(w->set);
  w->text = data_take(w->set, it, 60);
  weir_data_iter_release(it);
  return NULL;
}

static void many_iterators(void **state) {
  (void)state;
  put_rows(200);
  data_put_text("a.txt", "abcabcdabcabdcbadcbaabcdddcabcd");
  static const char *const kSets[] = {
      ROWS("a.csv", ", shuffle: {seed: 3, buffer: 50}"),
      ROWS("a.csv.gz", ", memory: 0"), TWO("")};
  for (size_t i = 0; i < sizeof kSets / sizeof kSets[0]; i++) {
    pthread_t threads[3];
    walker walkers[3];
    char *want = data_stream(kSets[i], 60);
    weir_dataset *set = data_open(kSets[i]);
    for (int k = 0; k < 3; k++) {
      walkers[k].set = set;
      assert_int_equal(pthread_create(&threads[k], NULL, walk, &walkers[k]), 0);
    }
    for (int k = 0; k < 3; k++) {
      pthread_join(threads[k], NULL);
      assert_string_equal(walkers[k].text, want);
      free(walkers[k].text);
    }
    weir_dataset_release(set);
    free(want);
  }
}

static void without_memory(void **state) {
  (void)state;
  put_records();
  put_rows(4);
  data_put_text("a.txt", "abcabcdabcab");
  data_sweep(CSV("x: 'i32[?]', name: 'i32[?]'",
                 ", columns: [x, name], vocabulary: {name: {}}, shuffle: {"
                 "seed: 1}"),
             2);
  data_sweep(REC("x: 'f32[?, 2]', word: 'i32[?]'", "x: 'f32[2]', word: i32",
                 ", vocabulary: {word: {}}"),
             2);
  data_sweep(TWO(""), 2);
  data_sweep(SET("x: 'i32[?]'", "source: csv, files: a.csv.gz, columns: [x]"),
             2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      DATA_TEST(csv_columns),
      DATA_TEST(csv_forms),
      DATA_TEST(csv_wrong),
      DATA_TEST(csv_bad_values),
      DATA_TEST(csv_ways_agree),
      DATA_TEST(csv_vocabulary_is_built),
      DATA_TEST(tfrecord_features),
      DATA_TEST(tfrecord_wrong),
      DATA_TEST(text_windows),
      DATA_TEST(text_streams),
      DATA_TEST(text_stream_shards),
      DATA_TEST(text_words),
      DATA_TEST(text_not_utf8),
      DATA_TEST(text_saves_its_vocabulary),
      DATA_TEST(larger_than_memory),
      DATA_TEST(many_iterators),
      DATA_TEST(steady),
      DATA_TEST(without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
