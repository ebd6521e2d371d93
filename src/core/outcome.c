/* Names of outcomes; see outcome.h. */
#include "core/outcome.h"

const char *found_name(enum found found)
{
  static const char *const names[] = {
#define X(name, text) text,
      FOUND_KINDS(X)
#undef X
  };
  return found < FOUND_COUNT ? names[found] : "?";
}

const char *outcome_name(enum outcome outcome)
{
  static const char *const names[] = {
#define X(name, text) text,
      OUTCOME_KINDS(X)
#undef X
  };
  return outcome < OUTCOME_COUNT ? names[outcome] : "?";
}
