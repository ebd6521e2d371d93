/* What a program brings to `run`: a world to run systems in. The rest of the command (options, set-up of
 * every system before the first runs, result database, table, Ctrl-C) is the same in both programs. */
#ifndef DM_BACKEND_H
#define DM_BACKEND_H

#include <signal.h>
#include "harness/command.h"
#include "harness/experiment.h"
#include "harness/results.h"
#include "harness/setup.h"
#include "harness/store.h"
#include "harness/timeline.h"

struct run_outputs {
  struct store *store;                /* NULL = nothing is stored */
  struct timeline *timeline;          /* or NULL */
  gboolean quiet;                     /* no progress bar */
  volatile sig_atomic_t *interrupted; /* set by Ctrl-C and SIGTERM */
  int64_t clock_offset_ns;            /* see sim.h */
};

struct backend {
  const char *name;            /* "sim", "real": in JSON and database */
  const GOptionEntry *options; /* of `run`, beside those that both programs have; NULL: none */
  uint32_t capabilities;       /* of its world */
  /* Processes that a run has on this machine; NULL: this one alone. */
  uint32_t (*processes)(const struct setup *setup);
  /* Somebody may fall silent in this experiment: heartbeats are needed. */
  gboolean (*needs_heartbeats)(const struct experiment *experiment);
  /* A file that its own options name, which it will write; NULL, or returns NULL: none. */
  const char *(*output)(void);
  /* Before the first system runs, with everything set up; NULL: nothing to do. sets as given to
   * experiment_load. force: files that are there may be replaced. */
  gboolean (*open)(const struct experiment *base, char **sets, gboolean force, GError **error);
  /* Runs one system to its end, or until interrupted. *notices receives lines for the user (g_free). FALSE +
   * error: bad input met on the way (a trace's malformed row), or the run failed. */
  gboolean (*run)(const struct setup *setup, const struct run_info *info, const struct run_outputs *outputs,
                  struct figures *figures, char **notices, GError **error);
  void (*close)(void); /* also after a failed open; NULL: nothing to do */
};

/* One system's run with its rows in outputs->store (or nowhere): begins it, runs it, ends it. *info takes
 * what is known of the run; its texts are the setup's but notices, which are in *notices (g_free) too. FALSE
 * + error. */
gboolean backend_run_stored(const struct backend *backend, const struct setup *setup,
                            const struct run_outputs *outputs, struct run_info *info, struct figures *figures,
                            char **notices, GError **error);

/* The command `run` of a program with this backend. */
gboolean backend_run_command(const struct backend *backend, int argc, char **argv, GError **error);

/* Ctrl-C or SIGTERM has come: for what a backend waits for outside of a run. */
gboolean backend_interrupted(void);

/* What stands in the help of both, after the systems that each has. */
#define RUN_OPTIONS_HELP                                                                                     \
  "  --set S.K=V       sets a key over the file and its [system X]; may be repeated\n"                       \
  "  --trace FILE      replays this trace (workload.kind = trace)\n"                                         \
  "  --seed N          experiment.seed\n"                                                                    \
  "  --out FILE.db     result database; default results/NAME.db\n"                                           \
  "  --timeline F.json Chrome trace events of the first million stages, for ui.perfetto.dev\n"               \
  "  --force           replaces files that are there: without it they are refused before anything runs\n"    \
  "  --json            one JSON object on standard output, nothing else\n"                                   \
  "  --quiet           no progress bar\n"                                                                    \
  "  --print-config    the settings in force, with where each comes from; runs nothing\n"                    \
  "\n"                                                                                                       \
  "Ctrl-C keeps what was done: requests in flight count as failed, exit status 130.\n"

#endif
