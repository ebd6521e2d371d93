/* What the tests of `sweep` and `plan` share: an experiment whose runs take a moment each, and databases as
 * text. */
#ifndef DM_E2E_SWEEPS_H
#define DM_E2E_SWEEPS_H

#include <glib.h>

#include "program.h"

/* Writes x.ini, of 1 and more systems, into the folder. */
void sweeps_write_experiment(const char *folder);
/* All that a sweep's database holds, but when, where and how fast it was made: equal texts mean equal
 * databases. */
char *sweeps_dump(const char *folder, const char *database);
/* The first column of the first row of a statement, as text; ?1 is bound to text (may be NULL). */
char *sweeps_query(const char *folder, const char *database, const char *sql, const char *text);
/* A seed for what a test draws: DISTMIND_SEED, else of the clock; printed. */
GRand *sweeps_random(const char *test);

#endif
