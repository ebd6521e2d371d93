/* The set-up of one system's run: the core's configuration made from an experiment, checked for what no run
 * can do. */
#ifndef DM_SETUP_H
#define DM_SETUP_H

#include "core/config.h"
#include "harness/experiment.h"

struct replay;

struct setup {
  const struct experiment *experiment;
  struct catalog *catalog;
  struct load_plans *plans;
  struct server_config *servers;
  uint32_t *popular; /* [models] model ids, most popular first: variant by variant, profiles in turn */
  struct config config;
  char *constants; /* "key=value, …" of the hardware constants that act on the system */
  char *notices;   /* lines for the user */
  /* Arrivals instead of those that the experiment describes; NULL: its own. The caller's; set after
   * setup_new. */
  const struct replay *replay;
};

/* capabilities: of the world it will run in; a system that needs another is refused by name. keep_heartbeats:
 * FALSE where nobody can fall silent (a simulation without a `fail` event). NULL + DM_ERROR_INPUT. */
struct setup *setup_new(const struct experiment *experiment, uint32_t capabilities, gboolean keep_heartbeats,
                        GError **error);
/* The part of setup_new that needs no arithmetic: what is no experiment, as an unknown model, without whether
 * it fits. FALSE + DM_ERROR_INPUT, as setup_new says it. */
gboolean setup_readable(const struct experiment *experiment, gboolean keep_heartbeats, GError **error);
void setup_free(struct setup *setup);
/* Differs where experiments, profiles or hardware files differ. */
uint64_t setup_digest(const struct setup *setup);
typedef struct setup Setup;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Setup, setup_free)

#endif
