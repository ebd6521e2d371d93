/* Profiles and the catalog. */
#include <criterion/criterion.h>

#include "core/model.h"

typedef struct profile Profile;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Profile, profile_free)
typedef struct catalog Catalog;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Catalog, catalog_free)

Test(model, profiles_scale_to_the_warm_latency)
{
  g_autoptr(Profile) profile = profile_new("net", 4);
  double rows[] = {1, 0, 3, 4};
  for (uint32_t i = 0; i < 4; i++) {
    profile->layer_bytes[i] = 10 * i;
    profile->timing[2].layer_ns[i] = rows[i];
  }
  profile_sum(profile);
  cr_assert_eq(profile->param_bytes, 60);
  profile_scale(profile, 2, 80);
  cr_assert_eq(profile->timing[2].warm_ns, 80);
  for (uint32_t i = 0; i < 4; i++)
    cr_assert_eq(profile->timing[2].layer_ns[i], 10 * rows[i]);
  profile_scale(profile, 0, 8); /* rows that sum to nothing: equal parts */
  for (uint32_t i = 0; i < 4; i++)
    cr_assert_eq(profile->timing[0].layer_ns[i], 2);
}

Test(model, catalog_ids_names_and_look_ups_agree)
{
  g_autoptr(Catalog) catalog = catalog_new(1);
  const char *const names[] = {"resnet152", "bert-base", "bert", "net-7"};
  const uint32_t variants[] = {128, 3, 1, 2};
  uint32_t model = 0;
  for (uint32_t p = 0; p < 4; p++) {
    struct profile *profile = profile_new(names[p], 1);
    profile->layer_bytes[0] = 100 + p;
    profile_sum(profile);
    cr_assert_eq(catalog_add(catalog, profile, variants[p]), model);
    model += variants[p];
  }
  cr_assert_eq(catalog_models(catalog), 134);
  model = 0;
  for (uint32_t p = 0; p < 4; p++) {
    int64_t profile;
    cr_assert_eq(catalog_variants(catalog, p), variants[p]);
    catalog_find(catalog, names[p], &profile);
    cr_assert_eq(profile, p);
    for (uint32_t v = 0; v < variants[p]; v++, model++) {
      g_autofree char *name = catalog_model_name(catalog, model);
      cr_assert_eq(catalog_find(catalog, name, &profile), model, "%s", name);
      cr_assert_eq(profile, -1);
      cr_assert_eq(catalog_bytes(catalog, model), 100 + p);
    }
  }
  const char *const none[] = {"",
                              "-",
                              "-1",
                              "resnet152-128",
                              "resnet152-01",
                              "bert-",
                              "bert-+1",
                              "bert- 1",
                              "bert-1x",
                              "resnet152-18446744073709551616",
                              "gpt2-0",
                              "resnet152--1",
                              "resnet152-4294967296"};
  for (size_t i = 0; i < G_N_ELEMENTS(none); i++)
    cr_assert_eq(catalog_find(catalog, none[i], NULL), -1, "%s", none[i]);
  g_autofree char *longest = g_strnfill(4000, 'a');
  longest[3998] = '-';
  longest[3999] = '1';
  cr_assert_eq(catalog_find(catalog, longest, NULL), -1);
}
