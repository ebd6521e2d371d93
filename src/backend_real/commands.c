/* The commands of distmind-real; see commands.h. */
#include "backend_real/commands.h"

#include "backend_real/command_role.h"
#include "backend_real/command_run.h"

const struct command *const real_commands[] = {
    &command_run,       &command_controller, &command_gpu_server, &command_memory_server, &command_client,
    &command_calibrate, &command_doctor,     &command_keygen,     &command_real_model,    NULL,
};
