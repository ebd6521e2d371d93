/* Chrome trace events; see timeline.h. The format: "Trace Event Format", Google, 2016.
 *
 * Viewers demand that the events of one lane nest. Two loads may well overlap, so a lane is split into rows:
 * an event goes to the first row whose last event had ended when it began. Records come in order of their
 * end, so that is enough. */
#include "harness/timeline.h"
#include "core/error.h"
#include "harness/json_writer.h"
#include <errno.h>
#include <glib/gstdio.h>

#define EVENTS_MAX   1000000
#define ROWS_MAX     16 /* of a lane; in a seventeenth overlap an event begins later than it did */
#define PROCESS_LANE 0  /* thread of what belongs to no GPU */

enum lane_kind { LANE_NET, LANE_PCIE, LANE_COMPUTE, LANE_KINDS };

static const char *const lane_names[LANE_KINDS] = {"network", "PCIe", "compute"};

struct lane {
  int64_t row_end_ns[ROWS_MAX]; /* of the row's last event */
  uint32_t rows;                /* rows named so far */
};

struct timeline {
  char *path, *partial;
  FILE *file;
  struct json_writer *json;
  int64_t from_ns, to_ns;
  uint32_t process; /* 1, 2, … by run */
  uint32_t gpus;
  struct lane *lanes; /* [gpus * LANE_KINDS] */
  const struct catalog *catalog;
  uint32_t models;
  char **names; /* [models] made at first use */
  uint64_t events;
};

static gboolean io_failed(const struct timeline *timeline, GError **error)
{
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s", timeline->partial, g_strerror(errno));
  return FALSE;
}

struct timeline *timeline_create(const char *path, int64_t from_ns, int64_t to_ns, GError **error)
{
  g_autofree char *partial = g_strconcat(path, ".partial", NULL);
  FILE *file = g_fopen(partial, "w");
  if (!file) {
    input_error(error, partial, 0, "cannot create the timeline: %s", g_strerror(errno));
    return NULL;
  }
  struct timeline *timeline = g_new0(struct timeline, 1);
  *timeline = (struct timeline){.path = g_strdup(path),
                                .partial = g_steal_pointer(&partial),
                                .file = file,
                                .from_ns = from_ns,
                                .to_ns = to_ns > 0 ? to_ns : INT64_MAX};
  timeline->json = json_writer_new_stream(file);
  json_object_open(timeline->json);
  json_string_at(timeline->json, "displayTimeUnit", "ms");
  json_array_at(timeline->json, "traceEvents");
  return timeline;
}

/* What every event has; the caller adds members and closes the object. */
static void open_event(struct timeline *timeline, const char *phase, const char *name, uint32_t thread)
{
  struct json_writer *json = timeline->json;
  json_object_open(json);
  json_string_at(json, "ph", phase);
  json_string_at(json, "name", name);
  json_integer_at(json, "pid", timeline->process);
  json_integer_at(json, "tid", thread);
}

static void time_at(struct json_writer *json, const char *key, int64_t ns)
{
  json_key(json, key);
  json_microseconds(json, MAX(ns, 0));
}

/* Metadata: names a process or a thread, or sorts a thread. */
static void write_name(struct timeline *timeline, const char *what, uint32_t thread, const char *name)
{
  open_event(timeline, "M", what, thread);
  json_object_at(timeline->json, "args");
  json_string_at(timeline->json, "name", name);
  json_object_close(timeline->json);
  json_object_close(timeline->json);
}

static void write_sort_index(struct timeline *timeline, uint32_t thread)
{
  open_event(timeline, "M", "thread_sort_index", thread);
  json_object_at(timeline->json, "args");
  json_integer_at(timeline->json, "sort_index", thread);
  json_object_close(timeline->json);
  json_object_close(timeline->json);
}

static void clear_run(struct timeline *timeline)
{
  for (uint32_t i = 0; timeline->names && i < timeline->models; i++)
    g_free(timeline->names[i]);
  g_clear_pointer(&timeline->names, g_free);
  g_clear_pointer(&timeline->lanes, g_free);
}

void timeline_begin_run(struct timeline *timeline, const char *system, const struct catalog *catalog,
                        uint32_t gpus)
{
  clear_run(timeline);
  timeline->process++;
  timeline->gpus = gpus;
  timeline->catalog = catalog;
  timeline->models = catalog_models(catalog);
  timeline->names = g_new0(char *, MAX(timeline->models, 1));
  timeline->lanes = g_new0(struct lane, MAX((gsize)gpus * LANE_KINDS, 1));
  write_name(timeline, "process_name", PROCESS_LANE, system);
  write_name(timeline, "thread_name", PROCESS_LANE, "servers");
  write_sort_index(timeline, PROCESS_LANE);
}

/* Thread number of a row: GPUs, then their lanes, then the rows of a lane stand in this order. */
static uint32_t thread_of(uint32_t gpu, enum lane_kind kind, uint32_t row)
{
  return 1 + (gpu * LANE_KINDS + kind) * ROWS_MAX + row;
}

static void name_row(struct timeline *timeline, uint32_t gpu, enum lane_kind kind, uint32_t row)
{
  g_autofree char *name = row == 0 ? g_strdup_printf("GPU %u %s", gpu, lane_names[kind])
                                   : g_strdup_printf("GPU %u %s (%u)", gpu, lane_names[kind], row + 1);
  write_name(timeline, "thread_name", thread_of(gpu, kind, row), name);
  write_sort_index(timeline, thread_of(gpu, kind, row));
}

/* A row that is free at *start_ns; *start_ns moves where none is. */
static uint32_t take_row(struct timeline *timeline, uint32_t gpu, enum lane_kind kind, int64_t *start_ns,
                         int64_t end_ns)
{
  struct lane *lane = &timeline->lanes[(size_t)gpu * LANE_KINDS + kind];
  uint32_t row = 0, earliest = 0;
  while (row < lane->rows && lane->row_end_ns[row] > *start_ns) {
    if (lane->row_end_ns[row] < lane->row_end_ns[earliest])
      earliest = row;
    row++;
  }
  if (row == ROWS_MAX) {
    row = earliest;
    *start_ns = lane->row_end_ns[row];
  } else if (row == lane->rows) {
    name_row(timeline, gpu, kind, row);
    lane->rows++;
  }
  lane->row_end_ns[row] = end_ns;
  return row;
}

static const char *model_name(struct timeline *timeline, uint32_t model)
{
  if (model >= catalog_models(timeline->catalog))
    return "?";
  if (!timeline->names[model])
    timeline->names[model] = catalog_model_name(timeline->catalog, model);
  return timeline->names[model];
}

static void write_arguments(struct timeline *timeline, const struct record *record, gboolean bytes)
{
  struct json_writer *json = timeline->json;
  json_object_at(json, "args");
  if (record->request != UINT64_MAX)
    json_integer_at(json, "request", record->request);
  if (bytes)
    json_integer_at(json, "bytes", (uint64_t)MAX(record->a, 0));
  if (record->server != NO_INDEX)
    json_integer_at(json, "server", record->server);
  if (record->reason != REASON_NONE)
    json_string_at(json, "reason", record_reason_text(record->reason));
  json_object_close(json);
}

/* A group's stage: a bar from start (record.b) to end. */
static void write_stage(struct timeline *timeline, const struct record *record, enum lane_kind kind)
{
  if (record->gpu >= timeline->gpus)
    return;
  int64_t start_ns = CLAMP(record->b, 0, record->time_ns);
  uint32_t row = take_row(timeline, record->gpu, kind, &start_ns, record->time_ns);
  char name[160];
  if (record->group == NO_INDEX)
    g_snprintf(name, sizeof name, "%s", model_name(timeline, record->model));
  else
    g_snprintf(name, sizeof name, "%s group %u", model_name(timeline, record->model), record->group);
  open_event(timeline, "X", name, thread_of(record->gpu, kind, row));
  json_string_at(timeline->json, "cat", lane_names[kind]);
  time_at(timeline->json, "ts", start_ns);
  time_at(timeline->json, "dur", record->time_ns - start_ns);
  write_arguments(timeline, record, kind != LANE_COMPUTE);
  json_object_close(timeline->json);
  timeline->events++;
}

/* What takes no time: a mark on the GPU's compute lane, or on the servers' lane. */
static void write_instant(struct timeline *timeline, const struct record *record, const char *name,
                          gboolean bytes)
{
  gboolean on_gpu = record->gpu < timeline->gpus;
  if (on_gpu && timeline->lanes[(size_t)record->gpu * LANE_KINDS + LANE_COMPUTE].rows == 0) {
    name_row(timeline, record->gpu, LANE_COMPUTE, 0);
    timeline->lanes[(size_t)record->gpu * LANE_KINDS + LANE_COMPUTE].rows = 1;
  }
  open_event(timeline, "i", name, on_gpu ? thread_of(record->gpu, LANE_COMPUTE, 0) : PROCESS_LANE);
  json_string_at(timeline->json, "cat", record_kind_name(record->kind));
  json_string_at(timeline->json, "s", "t");
  time_at(timeline->json, "ts", record->time_ns);
  write_arguments(timeline, record, bytes);
  json_object_close(timeline->json);
  timeline->events++;
}

static void write_event(struct timeline *timeline, const struct record *record)
{
  char name[160];
  switch (record->kind) {
  case RECORD_GROUP_NET:
    write_stage(timeline, record, LANE_NET);
    break;
  case RECORD_GROUP_PCIE:
    write_stage(timeline, record, LANE_PCIE);
    break;
  case RECORD_GROUP_COMPUTE:
    write_stage(timeline, record, LANE_COMPUTE);
    break;
  case RECORD_EVICT:
    g_snprintf(name, sizeof name, "evict %s", model_name(timeline, record->model));
    write_instant(timeline, record, name, TRUE);
    break;
  case RECORD_PREEMPT:
    write_instant(timeline, record, "preempt training", FALSE);
    break;
  case RECORD_TRAIN:
    write_instant(timeline, record, "training", FALSE);
    break;
  case RECORD_MEMBER:
    g_snprintf(name, sizeof name, "server %s", record_reason_text(record->reason));
    write_instant(timeline, record, name, FALSE);
    break;
  default: /* dispatches and loads would hide what they cause */
    break;
  }
}

static gboolean is_stage(const struct record *record)
{
  return record->kind == RECORD_GROUP_NET || record->kind == RECORD_GROUP_PCIE ||
         record->kind == RECORD_GROUP_COMPUTE;
}

static void write_cut(struct timeline *timeline, int64_t time_ns)
{
  open_event(timeline, "i", "cut here: 1,000,000 events; choose timeline_from_s and timeline_to_s",
             PROCESS_LANE);
  json_string_at(timeline->json, "s", "g");
  time_at(timeline->json, "ts", time_ns);
  json_object_close(timeline->json);
}

void timeline_record(struct timeline *timeline, const struct record *record)
{
  int64_t start_ns = is_stage(record) ? record->b : record->time_ns;
  if (!timeline->lanes || record->time_ns < timeline->from_ns || start_ns > timeline->to_ns ||
      timeline->events > EVENTS_MAX)
    return;
  if (timeline->events == EVENTS_MAX) {
    write_cut(timeline, record->time_ns);
    timeline->events++;
    return;
  }
  write_event(timeline, record);
}

static void timeline_free(struct timeline *timeline)
{
  clear_run(timeline);
  json_writer_free(timeline->json);
  if (timeline->file)
    fclose(timeline->file);
  g_free(timeline->path);
  g_free(timeline->partial);
  g_free(timeline);
}

static gboolean close_and_rename(struct timeline *timeline, GError **error)
{
  json_array_close(timeline->json);
  json_object_close(timeline->json);
  gboolean failed = ferror(timeline->file) != 0;
  FILE *file = g_steal_pointer(&timeline->file);
  failed |= fclose(file) != 0;
  return (!failed && g_rename(timeline->partial, timeline->path) == 0) || io_failed(timeline, error);
}

gboolean timeline_finish(struct timeline *timeline, GError **error)
{
  gboolean finished = close_and_rename(timeline, error);
  if (!finished)
    g_unlink(timeline->partial);
  timeline_free(timeline);
  return finished;
}

void timeline_abandon(struct timeline *timeline)
{
  g_unlink(timeline->partial);
  timeline_free(timeline);
}
