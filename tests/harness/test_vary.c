/* Axes of a sweep: what --vary says, and products. */
#include "harness/vary.h"

#include <criterion/criterion.h>
#include <string.h>

#include "core/error.h"

struct good {
  const char *text, *key, *values; /* values joined by | */
};

static const struct good good[] = {
    {"cluster.gpu_servers=1,2,4", "cluster.gpu_servers", "1|2|4"},
    {"gpu_servers = 1 , 2", "cluster.gpu_servers", "1|2"},
    {"cluster.gpu_servers=1..4", "cluster.gpu_servers", "1|2|3|4"},
    {"cluster.gpu_servers=8..8", "cluster.gpu_servers", "8"},
    {"cluster.gpu_servers=1..10/3", "cluster.gpu_servers", "1|4|7|10"},
    {"cluster.gpu_servers=1..11/3,64", "cluster.gpu_servers", "1|4|7|10|64"},
    {"cluster.gpu_servers=1..64*4", "cluster.gpu_servers", "1|4|16|64"},
    {"workload.zipf=0..1/0.25", "workload.zipf", "0|0.25|0.5|0.75|1"},
    {"workload.zipf=0.90..0.99/0.03", "workload.zipf", "0.9|0.93|0.96|0.99"},
    {"workload.zipf=0.1..0.3/0.1", "workload.zipf", "0.1|0.2|0.3"},
    {"pipeline.grouping=fixed:1024,count:8,optimal", "pipeline.grouping", "fixed:1024|count:8|optimal"},
    {"workload.active=8:8;8:16,all", "workload.active", "8:8;8:16|all"},
    {"workload.trace={a,b.csv},../c..d.csv,{1..3}", "workload.trace", "a,b.csv|../c..d.csv|1..3"},
    {"models.bert_base=4,8", "models.bert_base", "4|8"},
    {"cluster.gpu_servers={2*h200;4*g6},3*g6", "cluster.gpu_servers", "2*h200;4*g6|3*g6"},
};

Test(vary, reads_lists_ranges_and_braces)
{
  for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
    g_autoptr(GError) error = NULL;
    struct axis *axis = axis_parse(good[i].text, &error);
    cr_assert(axis, "%s: %s", good[i].text, error ? error->message : "");
    g_autofree char *values = g_strjoinv("|", axis->values), *text = axis_text(axis);
    cr_assert_str_eq(axis->key, good[i].key);
    cr_assert_str_eq(values, good[i].values);
    cr_assert_eq(axis->count, g_strv_length(axis->values));
    /* As text it reads back to the same. */
    g_autofree char *again_text = g_strconcat(axis->key, "=", text, NULL);
    struct axis *again = axis_parse(again_text, &error);
    cr_assert(again, "%s: %s", again_text, error ? error->message : "");
    cr_assert(g_strv_equal((const char *const *)axis->values, (const char *const *)again->values));
    axis_free(again);
    axis_free(axis);
  }
}

static const char *const bad[][2] = {
    {"cluster.gpu_servers", "found no \"=\""},
    {"=1,2", "unknown key"},
    {"cluster.gpu_server=1", "nearest is \"gpu_servers\""},
    {"cluter.gpu_servers=1", "nearest is [cluster]"},
    {"cluster.gpu_servers=", "empty value"},
    {"cluster.gpu_servers=1,,2", "empty value"},
    {"cluster.gpu_servers=1,2,", "empty value"},
    {"cluster.gpu_servers={}", "empty value"},
    {"workload.trace=a{b", "a \"}\" for each"},
    {"workload.trace={a}{b}", "a \"}\" for each"},
    {"workload.trace=a}{b", "a \"}\" for each"},
    {"cluster.gpu_servers=1,2,1", "\"1\" is there twice"},
    {"cluster.gpu_servers=1..3,2", "\"2\" is there twice"},
    {"cluster.gpu_servers=4..1", "lower end of a range first"},
    {"cluster.gpu_servers=1..4/0", "step above 0"},
    {"cluster.gpu_servers=1..4*1", "factor of at least 2"},
    {"cluster.gpu_servers=0..4*2", "factor of at least 2"},
    {"cluster.gpu_servers=1..1000000", "at most 100000 values"},
    {"workload.zipf=0..1/0.000000001", "at most 100000 values"},
};

Test(vary, refuses_what_it_cannot_mean)
{
  for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
    g_autoptr(GError) error = NULL;
    cr_assert_null(axis_parse(bad[i][0], &error), "%s is taken", bad[i][0]);
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT), "%s", bad[i][0]);
    cr_assert(strstr(error->message, bad[i][1]) && g_str_has_prefix(error->message, "--vary"), "%s: %s",
              bad[i][0], error->message);
  }
}

/* Ranges near the ends of 64 bits end, and do not wrap. */
Test(vary, ranges_end_at_the_end_of_numbers)
{
  static const char *const texts[] = {"seed=9223372036854775800..9223372036854775807",
                                      "seed=4611686018427387904..9223372036854775807*3"};
  static const guint counts[] = {8, 1};
  for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
    struct axis *axis = axis_parse(texts[i], NULL);
    cr_assert(axis, "%s", texts[i]);
    cr_assert_eq(axis->count, counts[i], "%s: %u", texts[i], axis->count);
    axis_free(axis);
  }
  struct axis *huge = axis_parse("seed=99999999999999999999..99999999999999999999999", NULL);
  cr_assert(huge && huge->count == 1, "what is no range of 64 bits is a value as it stands");
  axis_free(huge);
}

Test(vary, points_run_with_the_last_axis_fastest)
{
  g_autoptr(GPtrArray) axes = g_ptr_array_new_with_free_func((GDestroyNotify)axis_free);
  cr_assert_eq(axes_points(axes), 1, "no axis: one point");
  g_ptr_array_add(axes, axis_parse("gpu_servers=1..3", NULL));
  g_ptr_array_add(axes, axis_parse("workload.zipf=0,1", NULL));
  g_ptr_array_add(axes, axis_parse("workload.speedup=1..5", NULL));
  cr_assert_eq(axes_points(axes), 30);
  for (uint64_t point = 0; point < 30; point++) {
    cr_assert_eq(axes_index(axes, point, 0), point / 10);
    cr_assert_eq(axes_index(axes, point, 1), point / 5 % 2);
    cr_assert_eq(axes_index(axes, point, 2), point % 5);
  }
  g_ptr_array_add(axes, axis_parse("seed=1..100000", NULL));
  cr_assert_eq(axes_points(axes), 0, "too many points are none");
}
