/* The timeline of a real run, event by event, against the trace event format ("Trace Event Format", Google,
 * 2016), so that ui.perfetto.dev opens it: fields and their types, names of processes and threads as
 * metadata, no two complete events of a thread at once; and the stages of each group in their order. */
#include "program.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <yajl/yajl_tree.h>

/* Loads from the pool and from SSDs, processes that start, training that gives way, a server that joins. */
static const char experiment[] =
    "[experiment]\nname = lanes\nsystems = distmind;mps;serverlessllm\ninitial = cold\n"
    "[cluster]\nhardware = h200\nmemory_hardware = c5n\ngpu_servers = 2\n"
    "gpus_per_server = 2\nmemory_servers = 2\ngpu_models_max = 2\nhost_cache_gb = 1\n"
    "[models]\nresnet152 = 6\nbert_base = 4\n"
    "[workload]\nkind = poisson\nrate_rps = 60\nduration_s = 3\n"
    "[training]\nmodel = resnet152\nbatch_ms = 106\nstate_gb = 0.72\n"
    "[events]\nmore = at 1 add gpu_server 1\n";

struct bar {
  double start_us, end_us;
  const char *text;
};

struct lanes {
  yajl_val root;
  GHashTable *processes, *threads; /* named ones: "PID", "PID/TID" */
  GHashTable *bars;                /* "PID/TID" -> GArray of struct bar */
  GHashTable *stages;              /* "PID/request/name/category" -> struct bar */
  guint counts[3];                 /* X, i, M */
};

static yajl_val member(yajl_val object, const char *key, yajl_type type)
{
  const char *path[] = {key, NULL};
  return yajl_tree_get(object, path, type);
}

static const char *text_of(yajl_val event, const char *key)
{
  yajl_val value = member(event, key, yajl_t_string);
  cr_assert_not_null(value, "an event without a text '%s'", key);
  return YAJL_GET_STRING(value);
}

static gint64 integer_of(yajl_val event, const char *key)
{
  yajl_val value = member(event, key, yajl_t_number);
  cr_assert(value && YAJL_IS_INTEGER(value) && YAJL_GET_INTEGER(value) >= 0, "'%s' is no whole number", key);
  return YAJL_GET_INTEGER(value);
}

/* Microseconds, not negative, whole nanoseconds. */
static double time_of(yajl_val event, const char *key)
{
  yajl_val value = member(event, key, yajl_t_number);
  cr_assert(value && YAJL_IS_DOUBLE(value), "'%s' is no number", key);
  double us = YAJL_GET_DOUBLE(value);
  cr_assert(us >= 0 && fabs(us * 1000 - round(us * 1000)) < 1e-3, "%s = %.9g", key, us);
  return us;
}

static void check_keys(yajl_val event)
{
  static const char *const keys[] = {"ph", "name", "cat", "pid", "tid", "ts", "dur", "s", "args", NULL};
  for (size_t i = 0; i < YAJL_GET_OBJECT(event)->len; i++) {
    const char *key = YAJL_GET_OBJECT(event)->keys[i];
    cr_assert(g_strv_contains(keys, key), "an event has '%s'", key);
    for (size_t j = 0; j < i; j++)
      cr_assert_str_neq(key, YAJL_GET_OBJECT(event)->keys[j], "an event has '%s' twice", key);
  }
}

static char *thread_key(yajl_val event)
{
  return g_strdup_printf("%d/%d", (int)integer_of(event, "pid"), (int)integer_of(event, "tid"));
}

/* Metadata: process_name, thread_name {name: text}; thread_sort_index {sort_index: number}. */
static void take_metadata(struct lanes *lanes, yajl_val event)
{
  const char *name = text_of(event, "name");
  yajl_val arguments = member(event, "args", yajl_t_object);
  cr_assert_not_null(arguments);
  if (g_str_equal(name, "thread_sort_index")) {
    integer_of(arguments, "sort_index");
    return;
  }
  cr_assert_str_neq(text_of(arguments, "name"), "");
  if (g_str_equal(name, "process_name"))
    cr_assert(g_hash_table_add(lanes->processes, g_strdup_printf("%d", (int)integer_of(event, "pid"))),
              "a process is named twice");
  else if (g_str_equal(name, "thread_name"))
    cr_assert(g_hash_table_add(lanes->threads, thread_key(event)), "a thread is named twice");
  else
    cr_assert_fail("metadata '%s'", name);
}

static void take_bar(struct lanes *lanes, yajl_val event)
{
  double start_us = time_of(event, "ts");
  struct bar bar = {start_us, start_us + time_of(event, "dur"), text_of(event, "name")};
  char *thread = thread_key(event);
  GArray *bars = g_hash_table_lookup(lanes->bars, thread);
  if (!bars) {
    bars = g_array_new(FALSE, FALSE, sizeof bar);
    g_hash_table_insert(lanes->bars, g_strdup(thread), bars);
  }
  g_array_append_val(bars, bar);
  yajl_val arguments = member(event, "args", yajl_t_object);
  cr_assert_not_null(arguments);
  if (member(arguments, "request", yajl_t_number)) {
    char *stage = g_strdup_printf("%d/%d/%s/%s", (int)integer_of(event, "pid"),
                                  (int)integer_of(arguments, "request"), bar.text, text_of(event, "cat"));
    g_hash_table_insert(lanes->stages, stage, g_memdup2(&bar, sizeof bar));
  }
  g_free(thread);
}

static void take_event(struct lanes *lanes, yajl_val event)
{
  cr_assert(YAJL_IS_OBJECT(event));
  check_keys(event);
  const char *phase = text_of(event, "ph");
  g_autofree char *thread = thread_key(event);
  g_autofree char *process = g_strdup_printf("%d", (int)integer_of(event, "pid"));
  cr_assert_str_neq(text_of(event, "name"), "");
  if (g_str_equal(phase, "M")) {
    take_metadata(lanes, event);
    lanes->counts[2]++;
    return;
  }
  cr_assert(g_hash_table_contains(lanes->processes, process), "process %s has no name", process);
  cr_assert(g_hash_table_contains(lanes->threads, thread), "thread %s has no name", thread);
  if (g_str_equal(phase, "X")) {
    take_bar(lanes, event);
    lanes->counts[0]++;
  } else {
    cr_assert_str_eq(phase, "i");
    time_of(event, "ts");
    cr_assert(strlen(text_of(event, "s")) == 1 && strchr("gpt", *text_of(event, "s")));
    lanes->counts[1]++;
  }
}

static int by_start(const void *a, const void *b)
{
  const struct bar *x = a, *y = b;
  return x->start_us < y->start_us ? -1 : x->start_us > y->start_us ? 1 : x->end_us < y->end_us ? -1 : 1;
}

static void check_no_overlap(const struct lanes *lanes)
{
  GHashTableIter each;
  gpointer thread, value;
  g_hash_table_iter_init(&each, lanes->bars);
  while (g_hash_table_iter_next(&each, &thread, &value)) {
    GArray *bars = value;
    g_array_sort(bars, by_start);
    for (guint i = 1; i < bars->len; i++) {
      const struct bar *bar = &g_array_index(bars, struct bar, i), *before = bar - 1;
      cr_assert_geq(bar->start_us, before->end_us - 1e-4, "thread %s: '%s' at %.3f lies over '%s'",
                    (char *)thread, bar->text, bar->start_us, before->text);
    }
  }
}

static const struct bar *stage_before(const struct lanes *lanes, const char *key, const char *category,
                                      const char *earlier)
{
  g_autofree char *part = g_strndup(key, strlen(key) - strlen(category));
  g_autofree char *name = g_strconcat(part, earlier, NULL);
  return g_hash_table_lookup(lanes->stages, name);
}

/* A group of a request is uploaded when it has arrived, and computed when it is uploaded. Returns how many
 * pairs there were. */
static guint check_stages(const struct lanes *lanes)
{
  static const char *const order[][2] = {{"PCIe", "network"}, {"compute", "PCIe"}};
  GHashTableIter each;
  gpointer key, value;
  guint pairs = 0;
  for (int i = 0; i < 2; i++) {
    g_hash_table_iter_init(&each, lanes->stages);
    while (g_hash_table_iter_next(&each, &key, &value)) {
      const struct bar *bar = value, *earlier = NULL;
      if (g_str_has_suffix(key, order[i][0]))
        earlier = stage_before(lanes, key, order[i][0], order[i][1]);
      if (!earlier)
        continue;
      cr_assert_geq(bar->start_us, earlier->end_us - 1e-3, "%s begins before it could", (char *)key);
      pairs++;
    }
  }
  return pairs;
}

static void bars_free(gpointer bars)
{
  g_array_unref(bars);
}

Test(timeline, obeys_the_trace_event_format)
{
  g_autoptr(Folder) folder = folder_new();
  folder_write(folder, "x.ini", experiment);
  g_autoptr(ProgramOutcome) outcome =
      program_run(folder, "run", "x.ini", "--json", "--out", "x.db", "--timeline", "t.json", NULL);
  cr_assert_eq(outcome->status, 0, "%s", outcome->err);
  g_autofree char *path = g_build_filename(folder, "t.json", NULL), *text = NULL;
  cr_assert(g_file_get_contents(path, &text, NULL, NULL));
  char message[200];
  struct lanes lanes = {.root = yajl_tree_parse(text, message, sizeof message),
                        .processes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                        .threads = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                        .bars = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, bars_free),
                        .stages = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)};
  cr_assert_not_null(lanes.root, "%s", message);
  cr_assert_str_eq(text_of(lanes.root, "displayTimeUnit"), "ms");
  yajl_val events = member(lanes.root, "traceEvents", yajl_t_array);
  cr_assert_not_null(events);
  for (size_t i = 0; i < YAJL_GET_ARRAY(events)->len; i++)
    take_event(&lanes, YAJL_GET_ARRAY(events)->values[i]);
  check_no_overlap(&lanes);
  cr_assert_gt(check_stages(&lanes), 100, "the run loaded too little to show anything");
  cr_assert_eq(g_hash_table_size(lanes.processes), 3, "one process a system");
  cr_assert(lanes.counts[0] > 500 && lanes.counts[1] > 10, "%u bars, %u marks", lanes.counts[0],
            lanes.counts[1]);
  yajl_tree_free(lanes.root);
  g_hash_table_unref(lanes.processes);
  g_hash_table_unref(lanes.threads);
  g_hash_table_unref(lanes.bars);
  g_hash_table_unref(lanes.stages);
}
