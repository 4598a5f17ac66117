/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/check.h"
#include "placement/report/dump.h"
#include "placement/report/dump_html.h"
#include "placement/report/dump_moves.h"
#include "runtime/base/strbuf.h"
#include "tests/check.h"

/* Names that would end an element of a page, open one or leave a string. */
static const char *const names[] = {"</script><script>alert(1)</script>",
                                    "<!--<script>",
                                    "\"quoted' &amp;",
                                    "back\\slash\n",
                                    "\xc3\xa4\xe2\x86\x92\xf0\x9f\x98\x80",
                                    "\xff\xfe broken",
                                    ""};

/* A chain of the names on two devices. */
static weir_status make(const weir_allocator *a, weir_place_problem **out,
                        weir_error *err) {
  weir_place_builder *b = NULL;
  *out = NULL;
  WEIR_TRY(weir_place_builder_create(a, 1, &b, err));
  for (int d = 0; d < 2; d++)
    weir_place_add_device(
        b, &(weir_place_device){
               d == 0 ? WEIR_SV_LIT("</script>one") : WEIR_SV_LIT("two"), 0,
               INT64_MAX});
  weir_place_connect_all(b, &(weir_place_link){10, 1000000, true});
  for (uint32_t n = 0; n < sizeof names / sizeof *names; n++) {
    int64_t cost = 100 + 10 * n;
    weir_place_node_spec spec = {.name = weir_sv_from(names[n]),
                                 .cost = &cost,
                                 .group = WEIR_PLACE_NONE};
    uint32_t id = weir_place_add_node(b, &spec);
    uint32_t t = weir_place_add_tensor(b, id, 8);
    if (n > 1) weir_place_add_use(b, id, t - 2);
  }
  weir_status s = weir_place_builder_finish(b, out, err);
  weir_place_builder_release(b);
  return s;
}

static size_t count_of(const char *text, const char *what) {
  size_t count = 0;
  for (const char *at = text; (at = strstr(at, what)) != NULL; at++) count++;
  return count;
}

/* Solves and writes the page into |page|. */
static weir_status page_of(const weir_allocator *a, weir_strbuf *page,
                           bool *written, weir_error *err) {
  weir_place_problem *p = NULL;
  weir_place_result r = {0};
  weir_place_alternative *all = NULL;
  int64_t peaks[2];
  *written = false;
  weir_status s = make(a, &p, err);
  if (s == WEIR_OK) s = weir_place_solve(a, p, NULL, &r, err);
  if (s == WEIR_OK) s = weir_place_check(a, p, r.plan, peaks, err);
  weir_place_view view = {.alloc = a,
                          .problem = p,
                          .plan = r.plan,
                          .bounds = &r.bounds,
                          .peaks = peaks,
                          .first_ns = r.first_ns,
                          .moves = r.moves};
  if (s == WEIR_OK) s = weir_place_alternatives_create(&view, &all, err);
  view.alternatives = all;
  weir_writer out = weir_strbuf_writer(page);
  if (s == WEIR_OK) *written = weir_place_write_html(&view, &out);
  weir_free(a, all);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
  return s;
}

static void names_cannot_leave_their_string(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf page;
  bool written;
  weir_strbuf_init(&page, weir_allocator_system());
  assert_ok(page_of(weir_allocator_system(), &page, &written, &err), &err);
  assert_true(written);
  /* The page's own two elements and no more. */
  assert_int_equal(count_of(page.data, "<script"), 2);
  assert_int_equal(count_of(page.data, "</script"), 2);
  assert_int_equal(count_of(page.data, "<!--"), 0);
  assert_non_null(strstr(page.data, "\"\\u003c/script>\\u003cscript>alert(1)"));
  assert_non_null(strstr(page.data, "&lt;/script&gt;one"));
  assert_non_null(strstr(page.data, "\"\\\"quoted' &amp;\""));
  assert_non_null(strstr(page.data, "back\\\\slash\\n"));
  assert_non_null(strstr(page.data, "\xef\xbf\xbd\xef\xbf\xbd broken"));
  assert_non_null(strstr(page.data, "\"name\": \"#6\""));
  weir_strbuf_release(&page);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_counted_allocator m;
  for (uint64_t k = 1;; k++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_strbuf page;
    bool written;
    weir_counted_allocator_init(&m, NULL);
    m.fail_at = k;
    weir_strbuf_init(&page, weir_allocator_system());
    weir_status s = page_of(&m.base, &page, &written, &err);
    weir_strbuf_release(&page);
    assert_int_equal(atomic_load(&m.live_bytes), 0);
    if (s == WEIR_OK) break;
    assert_string_equal(err.id, "W6001");
  }
}

/* A writer that takes |left| calls. */
static bool take_some(void *self, const char *data, size_t size) {
  (void)data;
  (void)size;
  int *left = self;
  return (*left)-- > 0;
}

static void a_full_disk_is_told(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const weir_allocator *a = weir_allocator_system();
  weir_place_problem *p = NULL;
  weir_place_result r = {0};
  int64_t peaks[2];
  assert_ok(make(a, &p, &err), &err);
  assert_ok(weir_place_solve(a, p, NULL, &r, &err), &err);
  assert_ok(weir_place_check(a, p, r.plan, peaks, &err), &err);
  weir_place_view view = {a, p, r.plan, &r.bounds, NULL, peaks};
  int calls = 0;
  for (bool ok = false; !ok; calls++) {
    int left = calls;
    ok = weir_place_write_html(&view, &(weir_writer){&left, take_some});
    if (!ok) assert_int_equal(left, -1); /* not called again */
  }
  assert_in_range(calls, 12, 400);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_cannot_leave_their_string),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(a_full_disk_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
