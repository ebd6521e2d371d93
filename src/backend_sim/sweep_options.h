/* The options that `sweep` and `plan` share, and what they make of them. */
#ifndef DM_SWEEP_OPTIONS_H
#define DM_SWEEP_OPTIONS_H

#include <signal.h>

#include "backend_sim/sweep.h"

struct sweep_options {
  char **vary, **set;
  char *system, *trace, *seed, *out;
  char *repeat_text, *jobs_text; /* as they were given, or NULL */
  gint repeat, jobs;             /* 0: no --repeat, as many as there are processors */
  gboolean force, json, quiet;
};

/* The options as GLib takes them, then `own` (may be NULL), with an end. Free with g_array_unref. */
GArray *sweep_option_entries(struct sweep_options *options, const GOptionEntry *own);
/* The numbers among them, once GLib has read the texts. FALSE + DM_ERROR_INPUT. */
gboolean sweep_options_numbers(struct sweep_options *options, GError **error);
void sweep_options_clear(struct sweep_options *options);
/* Makes the sweep of `experiment`. suffix: as in struct sweep_spec. NULL + DM_ERROR_INPUT. */
struct sweep *sweep_from_options(const struct sweep_options *options, const char *experiment,
                                 const char *suffix, GError **error);
/* Processes to keep busy. */
guint sweep_jobs(const struct sweep_options *options);
/* Sets handlers of SIGINT and SIGTERM that set the flag that is returned. */
volatile sig_atomic_t *sweep_catch_signals(void);

#define SWEEP_OPTIONS_HELP                                                                                   \
  "  --system A,B      only these systems\n"                                                                 \
  "  --set S.K=V       sets a key for all points; may be repeated\n"                                         \
  "  --trace FILE      replays this trace (workload.kind = trace)\n"                                         \
  "  --seed N          experiment.seed\n"                                                                    \
  "  --jobs N          processes at once; default: as many as there are processors\n"                        \
  "  --json            one JSON object on standard output, nothing else\n"                                   \
  "  --quiet           no progress bar\n"

#endif
