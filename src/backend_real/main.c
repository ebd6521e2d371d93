/* distmind-real: the testbed's real world. */
#include "backend_real/commands.h"

int main(int argc, char **argv)
{
  return command_main(argc, argv, real_commands);
}
