/* A real run beside the simulator's: the run's own arrivals, replayed with calibrated hardware, and its
 * figures compared one by one. */
#ifndef DM_VALIDATE_H
#define DM_VALIDATE_H

#include "harness/store.h"

/* How the simulator is told of the machine that the run was on. */
struct validate_options {
  const char *hardware; /* file whose calibrated keys replace the run's, NULL: the run's own */
  const char *profiles; /* folder of calibrated profiles, NULL: the run's own */
  char **sets;          /* further --set texts, NULL-terminated, or NULL */
};

/* One system of one database. */
struct validation {
  char *system;
  gboolean replayed;         /* FALSE: the experiment itself was simulated, with the run's seed */
  gboolean interrupted;      /* the real run was */
  uint32_t cores, processes; /* of the machine, wanted by the run */
  struct figures real, simulated;
};
void validation_free(struct validation *validation);

/* Simulates every finished run of the database (system: only that one, NULL: all) and appends a struct
 * validation * each. store: receives the simulated runs, or NULL. FALSE + DM_ERROR_INPUT: not a result
 * database, one without finished runs, or what it names (experiment, profiles, hardware, models, requests) is
 * not to be had. */
gboolean validate_database(const char *path, const char *system, const struct validate_options *options,
                           struct store *store, GPtrArray *validations, GError **error);

#endif
