/* The list of a run's figures: one table names, types and places them for JSON, result database and reader
 * alike. */
#ifndef DM_FIGURES_H
#define DM_FIGURES_H

#include <stddef.h>
#include "harness/results.h"

/* JSON: figures of one group form an object of that name; database: the column is GROUP_NAME. */
struct figure_field {
  const char *group; /* "latency_ms", "found", "loads" or NULL */
  const char *name;
  gboolean integer; /* uint64_t at offset, else double */
  size_t offset;    /* in struct figures */
};

/* In the order of the JSON object (design, section 6); group NULL and name NULL end it. */
extern const struct figure_field figure_fields[];

uint64_t figure_integer(const struct figures *figures, const struct figure_field *field);
double figure_real(const struct figures *figures, const struct figure_field *field);
void figure_set_integer(struct figures *figures, const struct figure_field *field, uint64_t value);
void figure_set_real(struct figures *figures, const struct figure_field *field, double value);
/* Column name in table run; free with g_free. */
char *figure_column(const struct figure_field *field);
/* The row of a figure as the JSON object or the database names it (latency_ms.p99, latency_ms_p99); NULL +
 * DM_ERROR_INPUT that names the nearest. option: for the message. */
const struct figure_field *figure_find(const char *name, const char *option, GError **error);
/* As a number of either type. */
double figure_number(const struct figures *figures, const struct figure_field *field);

#endif
