/* The commands of distmind-real; see commands.h. */
#include "backend_real/commands.h"

const struct command *const real_commands[] = {
    &command_real_model,
    NULL,
};
