/* What the tests of `sweep` and `plan` share: an experiment whose runs take a moment each, and databases as
 * text. */
#ifndef DM_E2E_SWEEPS_H
#define DM_E2E_SWEEPS_H

#include <glib.h>

#include "program.h"

/* Arguments: what the tests of `sweep` vary, 20 runs; a sweep of one system into x.db. */
#define SWEEPS_VARY  "--vary", "workload.rate_rps=40..80/10", "--vary", "cluster.gpu_servers=1,2"
#define SWEEPS_SMALL "sweep", "x.ini", "--system", "ideal", "--out", "x.db", "--quiet"

/* Writes x.ini, of 1 and more systems, into the folder. */
void sweeps_write_experiment(const char *folder);
/* The sweep of SWEEPS_VARY into a database, with --json. */
ProgramOutcome *sweeps_run(const char *folder, const char *out, const char *jobs);
/* Its JSON without the times that runs took. */
char *sweeps_without_wall_s(const char *json);
/* All that a sweep's database holds, but when, where and how fast it was made: equal texts mean equal
 * databases. */
char *sweeps_dump(const char *folder, const char *database);
/* The first column of the first row of a statement, as text; ?1 is bound to text (may be NULL). */
char *sweeps_query(const char *folder, const char *database, const char *sql, const char *text);
/* A seed for what a test draws: DISTMIND_SEED, else of the clock; printed. */
GRand *sweeps_random(const char *test);

#endif
