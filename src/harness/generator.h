/* Synthetic traces: rows drawn as a spec says (generator_spec.h). Same spec, same rows. Each purpose
 * (arrivals, popularity, tokens, service) has a random stream of its own, so that changing one leaves the
 * others as they were. */
#ifndef DM_GENERATOR_H
#define DM_GENERATOR_H

#include "harness/generator_spec.h"
#include "harness/trace_writer.h"

struct generator;

/* Owns spec. */
struct generator *generator_new(struct generator_spec *spec);
void generator_free(struct generator *generator);
/* TRUE: *row is the next row (model lasts as long as the generator); FALSE: no more. */
gboolean generator_next(struct generator *generator, struct trace_row *row);
/* Columns that the rows have. */
struct trace_columns generator_columns(const struct generator *generator);

#endif
