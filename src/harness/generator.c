/* Synthetic traces: arrivals, popularity and demand put together; see generator.h. */
#include "harness/generator.h"

#include <gsl/gsl_randist.h>

#include "harness/generator_arrivals.h"
#include "harness/random.h"

enum purpose { POPULARITY, INPUT, OUTPUT, SERVICE, PURPOSES };

struct generator {
  struct generator_spec *spec;
  struct generator_arrivals *arrivals;
  gsl_rng *rng[PURPOSES];
  GPtrArray *names;        /* of the variants, by rank */
  struct zipf *popularity; /* NULL without models */
};

/* Variant 0 of each profile, then variant 1 of each, …; weights along with them where the spec has weights.
 */
static void list_variants(struct generator *generator, double *weights)
{
  const GArray *profiles = generator->spec->profiles;
  g_autofree guint *with_more = g_new(guint, profiles->len); /* profiles with variants to list */
  guint left = profiles->len;
  for (guint i = 0; i < left; i++)
    with_more[i] = i;
  for (uint32_t variant = 0; left > 0; variant++) {
    guint kept = 0;
    for (guint i = 0; i < left; i++) {
      const struct generator_profile *profile =
          &g_array_index(profiles, struct generator_profile, with_more[i]);
      weights[generator->names->len] = profile->weight / profile->variants;
      g_ptr_array_add(generator->names, profile->variants == 1
                                            ? g_strdup(profile->name)
                                            : g_strdup_printf("%s-%u", profile->name, variant));
      if (variant + 1 < profile->variants)
        with_more[kept++] = with_more[i];
    }
    left = kept;
  }
}

static void prepare_popularity(struct generator *generator)
{
  const struct generator_spec *spec = generator->spec;
  g_autofree double *weights = g_new(double, spec->variants + 1);
  if (spec->variants == 0)
    return;
  list_variants(generator, weights);
  if (spec->shuffled) {
    gsl_rng *rng = random_stream(spec->seed, "ranks");
    gsl_ran_shuffle(rng, generator->names->pdata, spec->variants, sizeof(gpointer));
    gsl_rng_free(rng);
  }
  generator->popularity =
      spec->weighted ? zipf_new_weights(weights, spec->variants) : zipf_new(spec->variants, spec->zipf);
}

struct generator *generator_new(struct generator_spec *spec)
{
  static const char *const purposes[PURPOSES] = {[POPULARITY] = "popularity",
                                                 [INPUT] = "input tokens",
                                                 [OUTPUT] = "output tokens",
                                                 [SERVICE] = "service"};
  struct generator *generator = g_new0(struct generator, 1);
  generator->spec = spec;
  generator->arrivals = generator_arrivals_new(spec);
  generator->names = g_ptr_array_new_with_free_func(g_free);
  for (int i = 0; i < PURPOSES; i++)
    generator->rng[i] = random_stream(spec->seed, purposes[i]);
  prepare_popularity(generator);
  return generator;
}

void generator_free(struct generator *generator)
{
  if (!generator)
    return;
  for (int i = 0; i < PURPOSES; i++)
    gsl_rng_free(generator->rng[i]);
  zipf_free(generator->popularity);
  g_ptr_array_unref(generator->names);
  generator_arrivals_free(generator->arrivals);
  generator_spec_free(generator->spec);
  g_free(generator);
}

static int64_t draw_tokens(const struct distribution *distribution, gsl_rng *rng)
{
  if (!distribution->kind)
    return -1;
  double tokens = MIN(distribution_draw(distribution, rng), 1e9);
  return MAX((int64_t)(tokens + 0.5), 1);
}

gboolean generator_next(struct generator *generator, struct trace_row *row)
{
  const struct generator_spec *spec = generator->spec;
  *row = (struct trace_row){.service_ns = -1, .gpus = -1, .duration_ns = -1};
  if (!generator_arrivals_next(generator->arrivals, &row->arrival_ns))
    return FALSE;
  if (generator->popularity)
    row->model = generator->names->pdata[zipf_draw(generator->popularity, generator->rng[POPULARITY])];
  row->input_tokens = draw_tokens(&spec->input, generator->rng[INPUT]);
  row->output_tokens = draw_tokens(&spec->output, generator->rng[OUTPUT]);
  if (spec->service_ms.kind)
    row->service_ns = ns_round(distribution_draw(&spec->service_ms, generator->rng[SERVICE]) * NS_PER_MS);
  return TRUE;
}

struct trace_columns generator_columns(const struct generator *generator)
{
  const struct generator_spec *spec = generator->spec;
  return (struct trace_columns){.model = spec->variants > 0,
                                .input_tokens = spec->input.kind != NULL,
                                .output_tokens = spec->output.kind != NULL,
                                .service = spec->service_ms.kind != NULL};
}
