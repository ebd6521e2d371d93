/* The commands of distmind-real; see commands.h. */
#include "backend_real/commands.h"

#include "backend_real/command_role.h"
#include "backend_real/command_run.h"
#include "core/error.h"
#include "harness/setting.h"

/* Gbit/s: below the one a group would take minutes, above the other nothing is held back. */
#define PACE_LEAST 0.001
#define PACE_MOST  10000.0

const struct command *const real_commands[] = {
    &command_run,       &command_controller, &command_gpu_server, &command_memory_server, &command_client,
    &command_calibrate, &command_doctor,     &command_keygen,     &command_real_model,    NULL,
};

gboolean pace_option(const char *text, double *gbit_s, GError **error)
{
  double value = 0;
  if (text && !(number_parse(text, 0, PACE_MOST, &value, NULL) && (value == 0 || value >= PACE_LEAST)))
    return input_error(error, NULL, 0, "--pace: expected Gbit/s, 0 (none) or from %g to %g, found \"%s\"",
                       PACE_LEAST, PACE_MOST, text);
  *gbit_s = value;
  return TRUE;
}
