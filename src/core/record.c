/* Names of record kinds and reasons; see record.h. */
#include "core/record.h"

const char *record_kind_name(enum record_kind kind)
{
  static const char *const names[] = {
#define X(name, text) text,
      RECORD_KINDS(X)
#undef X
  };
  return kind < RECORD_KIND_COUNT ? names[kind] : "?";
}

const char *record_reason_text(enum record_reason reason)
{
  static const char *const texts[] = {
#define X(name, text) text,
      RECORD_REASONS(X)
#undef X
  };
  return reason < REASON_COUNT ? texts[reason] : "?";
}
