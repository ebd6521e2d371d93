/* Inside of seam_form: the tables of fields. */
#ifndef DM_SEAM_FIELDS_H
#define DM_SEAM_FIELDS_H

#include <stddef.h>
#include "harness/seam_form.h"

enum seam_field_kind {
  SEAM_U32, /* NO_INDEX is "none" in texts */
  SEAM_U64,
  SEAM_I64,
  SEAM_REAL,
  SEAM_ACTOR,   /* actor_id */
  SEAM_RANGES,  /* const struct ranges *, or NULL */
  SEAM_LETTER,  /* const struct message * */
  SEAM_PLAN,    /* const struct fetch_plan * */
  SEAM_SERVERS, /* fetch_spec.server, as long as its plan's streams */
  SEAM_LAYERS,  /* compute_spec.layer_ns, as long as its layers, or NULL */
};

struct seam_field {
  const char *name; /* NULL ends the table */
  enum seam_field_kind kind;
  size_t offset;
};

/* [SEAM_KINDS] */
extern const struct seam_field *const seam_fields[];

#endif
