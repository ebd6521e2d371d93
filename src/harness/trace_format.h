/* Inside of the trace readers: what a layout (trace_NAME.c) gives to trace.c, and the helpers that layouts
 * share. */
#ifndef DM_TRACE_FORMAT_H
#define DM_TRACE_FORMAT_H

#include "harness/trace.h"

#define TRACE_COUNTERS_MAX 16u
#define TRACE_TOKENS_MAX   1000000000LL /* of one request */
#define TRACE_GPUS_MAX     1000000LL    /* of one job */
/* Times are bounded as those of an experiment are, so that sums of them stay within 64 bits. */
#define TRACE_SPAN_MAX_NS    (1000000000 * NS_PER_S) /* first arrival to last; run time of one job */
#define TRACE_SERVICE_MAX_NS (1000000 * NS_PER_S)    /* of one request */

/* Rows skipped by reason and quirks by kind. Texts are literals. */
struct trace_counter {
  const char *text;
  uint64_t count;
};

struct trace_notes {
  uint64_t skipped;
  struct trace_counter reason[TRACE_COUNTERS_MAX], quirk[TRACE_COUNTERS_MAX];
  char *detail; /* one line of the layout's own (joined files), or NULL; owned */
};

/* Counts a skipped row; returns TRACE_SKIP, so that a layout can return it. */
int trace_skip(struct trace_notes *notes, const char *reason);
void trace_quirk(struct trace_notes *notes, const char *text);
/* A quirk of a whole file: counted once. */
void trace_quirk_once(struct trace_notes *notes, const char *text);

enum { TRACE_ERROR = -1, TRACE_END = 0, TRACE_ROW = 1, TRACE_SKIP = 2 };

/* A layout's open file; layouts embed it first. arrival_ns of the rows it gives is absolute, in any order. */
struct trace_source {
  const struct trace_format *format;
  char *path;
  enum trace_kind kind;
  uint64_t rows_known; /* rows to come where the layout knows without reading them (in_order layouts) */
  struct trace_notes notes;
};

/* First bytes of a file, for detection. */
struct trace_probe {
  const char *path;
  const char *text; /* NUL-terminated, without byte order mark and leading blanks */
  char **columns;   /* fields of the first line where it is no JSON; NULL-terminated */
};

struct trace_csv_layout;

struct trace_format {
  const char *name;
  const char *title; /* one line for --help */
  enum trace_kind kind;
  gboolean in_order; /* its rows come in order of arrival whatever the file holds: no pass over them is needed
                        first */
  const struct trace_csv_layout *csv; /* layouts that are a CSV file with a header line */
  /* NULL: only by name. */
  gboolean (*detect)(const struct trace_format *format, const struct trace_probe *probe);
  struct trace_source *(*open)(const struct trace_format *format, const char *path,
                               const struct trace_options *options, GError **error);
  void (*close)(struct trace_source *source);
  /* TRACE_ROW, TRACE_END or TRACE_ERROR; skips are counted inside. Fields of *row are preset to absent. */
  int (*next)(struct trace_source *source, struct trace_row *row, GError **error);
  /* The same for arrival_ns alone, faster; may be NULL. */
  int (*next_time)(struct trace_source *source, struct trace_row *row, GError **error);
  gboolean (*rewind)(struct trace_source *source, GError **error);
};

extern const struct trace_format trace_native, trace_azure_llm, trace_azure_functions_2021,
    trace_azure_functions_2019, trace_burstgpt, trace_mooncake, trace_qwen_bailian, trace_elasticflow,
    trace_openb_pods, trace_openb_nodes, trace_muri, trace_philly, trace_helios, trace_pai_2020,
    trace_any_csv;

/* All layouts, NULL-terminated, in the order of detection. */
extern const struct trace_format *const trace_registry[];
/* The layout of a file by its first bytes, or by options->format. NULL + DM_ERROR_INPUT. */
const struct trace_format *trace_detect(const char *path, const struct trace_options *options,
                                        GError **error);

/* Text for a message: quoted, escaped, at most 40 characters. Free with g_free. */
char *found_text(const char *text);

#endif
