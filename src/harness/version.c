/* The program's version. DM_VERSION comes from the build: VERSION's text, with the commit in a git checkout.
 */
#include "harness/command.h"

const char *program_version(void)
{
  return DM_VERSION;
}
