/* Distributions of generator specs; see distribution.h. */
#include "harness/distribution.h"

#include <math.h>
#include <string.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>

#include "core/error.h"

#define VALUE_MAX 1e12
#define SIGMA_MAX 10.0

struct distribution_kind {
  const char *name, *usage;
  unsigned parameters;
  gboolean has_max;
  double (*draw)(const struct distribution *distribution, gsl_rng *rng);
};

static double draw_constant(const struct distribution *distribution, gsl_rng *rng)
{
  (void)rng;
  return distribution->parameter[0];
}

static double draw_uniform(const struct distribution *distribution, gsl_rng *rng)
{
  return gsl_ran_flat(rng, distribution->parameter[0], distribution->parameter[1]);
}

static double draw_exponential(const struct distribution *distribution, gsl_rng *rng)
{
  return gsl_ran_exponential(rng, distribution->parameter[0]);
}

static double draw_lognormal(const struct distribution *distribution, gsl_rng *rng)
{
  return gsl_ran_lognormal(rng, log(distribution->parameter[0]), distribution->parameter[1]);
}

static const struct distribution_kind kinds[] = {
    {"constant", "constant VALUE", 1, FALSE, draw_constant},
    {"uniform", "uniform LOW HIGH", 2, FALSE, draw_uniform},
    {"exponential", "exponential MEAN [MAX]", 1, TRUE, draw_exponential},
    {"lognormal", "lognormal MEDIAN SIGMA [MAX]", 2, TRUE, draw_lognormal},
};

static const struct distribution_kind *find_kind(const char *name)
{
  for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
    if (strcmp(kinds[i].name, name) == 0)
      return &kinds[i];
  return NULL;
}

static gboolean parse_number(const char *text, double *value)
{
  char *end;
  *value = g_ascii_strtod(text, &end);
  return end != text && *end == 0 && isfinite(*value) && *value > 0 && *value <= VALUE_MAX;
}

/* Words between blanks; free with g_strfreev. */
static char **split_words(const char *text)
{
  char **parts = g_strsplit_set(text, " \t", -1);
  unsigned kept = 0;
  for (unsigned i = 0; parts[i]; i++) {
    if (*parts[i])
      parts[kept++] = parts[i];
    else
      g_free(parts[i]);
  }
  parts[kept] = NULL;
  return parts;
}

gboolean distribution_parse(const char *text, const char *file, unsigned line,
                            struct distribution *distribution, GError **error)
{
  g_auto(GStrv) words = split_words(text);
  unsigned numbers = g_strv_length(words);
  const struct distribution_kind *kind = numbers ? find_kind(words[0]) : NULL;
  if (!kind)
    return input_error(error, file, line, "expected constant, uniform, exponential or lognormal, found '%s'",
                       text);
  numbers--;
  *distribution = (struct distribution){.kind = kind, .max = GSL_POSINF};
  gboolean good = numbers == kind->parameters || (kind->has_max && numbers == kind->parameters + 1);
  for (unsigned i = 0; good && i < numbers; i++)
    good =
        parse_number(words[i + 1], i < kind->parameters ? &distribution->parameter[i] : &distribution->max);
  if (!good)
    return input_error(error, file, line, "expected %s, positive numbers up to 10^12, found '%s'",
                       kind->usage, text);
  if (kind->draw == draw_uniform && distribution->parameter[1] < distribution->parameter[0])
    return input_error(error, file, line, "expected %s with LOW <= HIGH, found '%s'", kind->usage, text);
  if (kind->draw == draw_lognormal && distribution->parameter[1] > SIGMA_MAX)
    return input_error(error, file, line, "expected %s with SIGMA up to %g, found '%s'", kind->usage,
                       SIGMA_MAX, text);
  return TRUE;
}

double distribution_draw(const struct distribution *distribution, gsl_rng *rng)
{
  double value = distribution->kind->draw(distribution, rng);
  return value < distribution->max ? value : distribution->max;
}
