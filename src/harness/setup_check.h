/* What no run can do with the configuration that was made of an experiment: memories that are too small for
 * what they must hold, capabilities that the world lacks. */
#ifndef DM_SETUP_CHECK_H
#define DM_SETUP_CHECK_H

#include "harness/setup.h"

/* FALSE + DM_ERROR_INPUT, which names the system and what it lacks. */
gboolean setup_check(const struct setup *setup, uint32_t capabilities, GError **error);

#endif
