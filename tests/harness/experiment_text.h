/* Experiments from text, for tests: parsed, and described as text again so that two can be compared. */
#ifndef DM_TEST_EXPERIMENT_TEXT_H
#define DM_TEST_EXPERIMENT_TEXT_H

#include "harness/experiment_parts.h"

/* A valid experiment of five lines, ending inside [workload]: what a test adds begins in line 6. */
extern const char experiment_base[];

/* As experiment_load, of a text named case.ini. */
struct experiment *experiment_of_text(const char *text, const char *system, const char *const *sets,
                                      GError **error);
/* experiment_base and more, which must be right. */
struct experiment *experiment_good(const char *more, const char *system, const char *const *sets);
/* Everything that an experiment holds but path, text and overrides; g_free it. */
char *experiment_describe(const struct experiment *experiment);

#endif
