/* Timelines: valid Chrome trace events, lanes that nest, the cut at a million events. */
#include "harness/timeline.h"
#include "core/error.h"
#include "fixture.h"
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>
#include <yajl/yajl_tree.h>

static struct record stage(enum record_kind kind, uint32_t gpu, uint32_t group, int64_t start_ns,
                           int64_t end_ns)
{
  return (struct record){.time_ns = end_ns,
                         .kind = kind,
                         .request = 7,
                         .model = 1,
                         .server = 0,
                         .gpu = gpu,
                         .group = group,
                         .source = NO_INDEX,
                         .a = kind == RECORD_GROUP_COMPUTE ? 0 : 1000,
                         .b = start_ns};
}

static yajl_val parse(const char *path)
{
  g_autofree char *text = fixture_read(path);
  char message[200];
  yajl_val root = yajl_tree_parse(text, message, sizeof message);
  cr_assert_not_null(root, "%s", message);
  return root;
}

static yajl_val events_of(yajl_val root)
{
  const char *path[] = {"traceEvents", NULL};
  return yajl_tree_get(root, path, yajl_t_array);
}

static const char *text_in(yajl_val event, const char *key)
{
  const char *path[] = {key, NULL};
  yajl_val value = yajl_tree_get(event, path, yajl_t_string);
  return value ? YAJL_GET_STRING(value) : "";
}

static double number_in(yajl_val event, const char *key)
{
  const char *path[] = {key, NULL};
  yajl_val value = yajl_tree_get(event, path, yajl_t_number);
  cr_assert_not_null(value, "%s", key);
  return YAJL_GET_DOUBLE(value);
}

/* Index of the n-th (0, 1, …) event of that phase and name, or -1. */
static yajl_val find_event(yajl_val root, const char *phase, const char *name)
{
  yajl_val events = events_of(root);
  for (size_t i = 0; i < YAJL_GET_ARRAY(events)->len; i++) {
    yajl_val event = YAJL_GET_ARRAY(events)->values[i];
    if (strcmp(text_in(event, "ph"), phase) == 0 && strcmp(text_in(event, "name"), name) == 0)
      return event;
  }
  cr_assert_fail("no event %s %s", phase, name);
  return NULL;
}

Test(timeline, has_processes_lanes_and_exact_times)
{
  char *folder = fixture_folder();
  g_autofree char *path = g_build_filename(folder, "t.json", NULL);
  struct catalog *catalog = fixture_catalog();
  struct timeline *timeline = timeline_create(path, 0, 0, NULL);
  timeline_begin_run(timeline, "distmind", catalog, 2);
  struct record net = stage(RECORD_GROUP_NET, 1, 0, 1000001, 3000002);
  timeline_record(timeline, &net);
  struct record whole = stage(RECORD_GROUP_COMPUTE, 0, NO_INDEX, 0, 5000000);
  timeline_record(timeline, &whole);
  struct record evict = stage(RECORD_EVICT, 1, NO_INDEX, 0, 4000000);
  evict.reason = REASON_SPACE;
  timeline_record(timeline, &evict);
  struct record foreign = stage(RECORD_GROUP_NET, 2, 0, 0, 1); /* a GPU that does not exist */
  timeline_record(timeline, &foreign);
  timeline_begin_run(timeline, "mps", catalog, 2);
  timeline_record(timeline, &whole);
  cr_assert(timeline_finish(timeline, NULL));
  yajl_val root = parse(path);
  yajl_val event = find_event(root, "X", "resnet152-1 group 0");
  cr_assert_eq(number_in(event, "ts"), 1000.001);
  cr_assert_eq(number_in(event, "dur"), 2000.001);
  cr_assert_str_eq(text_in(event, "cat"), "network");
  cr_assert_eq(number_in(find_event(root, "X", "resnet152-1"), "pid"), 1);
  cr_assert_eq(number_in(find_event(root, "i", "evict resnet152-1"), "ts"), 4000);
  size_t runs = 0, bars = 0;
  yajl_val events = events_of(root);
  for (size_t i = 0; i < YAJL_GET_ARRAY(events)->len; i++) {
    runs += strcmp(text_in(YAJL_GET_ARRAY(events)->values[i], "name"), "process_name") == 0;
    bars += strcmp(text_in(YAJL_GET_ARRAY(events)->values[i], "ph"), "X") == 0;
  }
  cr_assert_eq(runs, 2);
  cr_assert_eq(bars, 3);
  yajl_tree_free(root);
  catalog_free(catalog);
  fixture_remove(folder);
}

/* Events of one thread never overlap, however the loads did, and no stage loses its end. */
Test(timeline, rows_do_not_overlap)
{
  char *folder = fixture_folder();
  g_autofree char *path = g_build_filename(folder, "t.json", NULL);
  struct catalog *catalog = fixture_catalog();
  struct timeline *timeline = timeline_create(path, 0, 0, NULL);
  timeline_begin_run(timeline, "distmind", catalog, 1);
  int64_t time_ns = 0;
  for (int i = 0; i < 2000; i++) { /* ends rise; starts reach back up to forty of them */
    time_ns += 1000 * (i % 5);
    struct record record =
        stage(RECORD_GROUP_NET, 0, (uint32_t)i, MAX(time_ns - i * 7919 % 80000, 0), time_ns);
    timeline_record(timeline, &record);
  }
  cr_assert(timeline_finish(timeline, NULL));
  yajl_val root = parse(path), events = events_of(root);
  g_autoptr(GHashTable) ends = g_hash_table_new(NULL, NULL);
  int bars = 0;
  for (size_t i = 0; i < YAJL_GET_ARRAY(events)->len; i++) {
    yajl_val event = YAJL_GET_ARRAY(events)->values[i];
    if (strcmp(text_in(event, "ph"), "X") != 0)
      continue;
    gpointer thread = GINT_TO_POINTER((int)number_in(event, "tid"));
    int64_t start_ns = (int64_t)(number_in(event, "ts") * 1000 + 0.5);
    cr_assert_geq(start_ns, (int64_t)GPOINTER_TO_SIZE(g_hash_table_lookup(ends, thread)));
    g_hash_table_insert(ends, thread,
                        GSIZE_TO_POINTER((gsize)(start_ns + number_in(event, "dur") * 1000 + 0.5)));
    bars++;
  }
  cr_assert_eq(bars, 2000);
  yajl_tree_free(root);
  catalog_free(catalog);
  fixture_remove(folder);
}

Test(timeline, keeps_to_its_window)
{
  char *folder = fixture_folder();
  g_autofree char *path = g_build_filename(folder, "t.json", NULL);
  struct catalog *catalog = fixture_catalog();
  struct timeline *timeline = timeline_create(path, 1000, 2000, NULL);
  timeline_begin_run(timeline, "distmind", catalog, 1);
  const int64_t spans[][2] = {{0, 999}, {500, 1000}, {1500, 3000}, {2000, 2500}, {2001, 2500}};
  for (size_t i = 0; i < G_N_ELEMENTS(spans); i++) {
    struct record record = stage(RECORD_GROUP_PCIE, 0, (uint32_t)i, spans[i][0], spans[i][1]);
    timeline_record(timeline, &record);
  }
  cr_assert(timeline_finish(timeline, NULL));
  g_autofree char *text = fixture_read(path);
  cr_assert(!strstr(text, "group 0") && strstr(text, "group 1") && strstr(text, "group 2") &&
            strstr(text, "group 3") && !strstr(text, "group 4"));
  catalog_free(catalog);
  fixture_remove(folder);
}

/* No strstr, as the sanitizer's looks at the whole text at every call. */
static size_t occurrences(const char *text, const char *word)
{
  size_t count = 0, length = strlen(word);
  for (; *text; text++)
    count += *text == *word && strncmp(text, word, length) == 0;
  return count;
}

Test(timeline, is_cut_at_a_million_events)
{
  char *folder = fixture_folder();
  g_autofree char *path = g_build_filename(folder, "t.json", NULL);
  struct catalog *catalog = fixture_catalog();
  struct timeline *timeline = timeline_create(path, 0, 0, NULL);
  timeline_begin_run(timeline, "distmind", catalog, 1);
  for (int64_t i = 0; i < 1000010; i++) {
    struct record record = stage(RECORD_GROUP_COMPUTE, 0, NO_INDEX, i * 10, i * 10 + 10);
    timeline_record(timeline, &record);
  }
  cr_assert(timeline_finish(timeline, NULL));
  g_autofree char *text = fixture_read(path);
  cr_assert_eq(occurrences(text, "\"ph\":\"X\""), 1000000);
  cr_assert_eq(occurrences(text, "cut here"), 1);
  cr_assert(g_str_has_suffix(text, "}]}"));
  catalog_free(catalog);
  fixture_remove(folder);
}

Test(timeline, leaves_nothing_behind_when_abandoned)
{
  char *folder = fixture_folder();
  g_autofree char *path = g_build_filename(folder, "t.json", NULL);
  struct timeline *timeline = timeline_create(path, 0, 0, NULL);
  timeline_abandon(timeline);
  cr_assert_eq(g_rmdir(folder), 0, "files are left");
  g_autoptr(GError) error = NULL;
  cr_assert_null(timeline_create("/nonexistent/t.json", 0, 0, &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  g_free(folder);
}
