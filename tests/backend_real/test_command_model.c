/* `distmind-real model`: pack beside show. */
#include <criterion/criterion.h>
#include <string.h>

#include "safetensors_file.h"
#include "spawned.h"

/* `distmind-real model` with these words, in which @ stands for the folder. */
static Spawned *model(const char *words, const char *folder)
{
  g_auto(GStrv) parts = g_strsplit(words, "@", -1);
  g_autofree char *joined = g_strjoinv(folder, parts), *all = g_strconcat("model ", joined, NULL);
  return spawn("distmind-real", all);
}

static const char json[] = "{\"a.w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                           "\"b.w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}";

Test(command_model, pack_writes_an_image_once)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_free(safetensors_write(folder, "in", json, (const uint8_t *)"12345678", 8));
  g_autofree char *expected =
      g_strdup_printf("%s/m.dmi: 2 layers, 2 tensors, 8 bytes of parameters\n", folder);
  g_autoptr(Spawned) first = model("pack @/in -o @/m.dmi", folder);
  cr_assert_eq(first->status, 0, "%s", first->err);
  cr_assert_str_eq(first->out, expected);
  cr_assert_str_eq(first->err, "");
  g_autoptr(Spawned) again = model("pack @/in -o @/m.dmi", folder);
  expect_refusal(again, "exists already; give another name, or --force");
  g_autoptr(Spawned) forced = model("-o @/m.dmi --force --quiet pack @/in", folder);
  cr_assert_eq(forced->status, 0, "%s", forced->err);
  cr_assert_str_eq(forced->out, "");
  cr_assert_eq(scratch_files(folder), 2);
}

Test(command_model, verify_reads_all_of_it)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_free(safetensors_write(folder, "in", json, (const uint8_t *)"12345678", 8));
  g_autofree char *expected =
      g_strdup_printf("%s/m.dmi: 2 layers, 8 bytes of parameters, all as their checksums say\n", folder);
  g_autofree char *path = g_build_filename(folder, "m.dmi", NULL), *bytes = NULL;
  gsize size;
  g_autoptr(Spawned) packed = model("pack @/in -o @/m.dmi -q", folder);
  cr_assert_eq(packed->status, 0, "%s", packed->err);
  g_autoptr(Spawned) good = model("verify @/m.dmi", folder);
  cr_assert_eq(good->status, 0, "%s", good->err);
  cr_assert_str_eq(good->out, expected);
  cr_assert(g_file_get_contents(path, &bytes, &size, NULL));
  bytes[size - 1] ^= 1;
  cr_assert(g_file_set_contents(path, bytes, (gssize)size, NULL));
  g_autoptr(Spawned) bad = model("verify @/m.dmi", folder);
  expect_refusal(bad, "layer 1: expected checksum");
}

Test(command_model, bad_usage)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autoptr(Spawned) none = model("pack /does/not/exist -o @/m.dmi", folder);
  expect_refusal(none, "/does/not/exist: cannot open");
  g_autoptr(Spawned) out = model("pack /does/not/exist", folder);
  expect_refusal(out, "expected -o MODEL.dmi");
  g_autoptr(Spawned) file = model("pack -o @/m.dmi", folder);
  expect_refusal(file, "FILE.safetensors");
  g_autoptr(Spawned) part = model("bag x", folder);
  expect_refusal(part, "expected \"show\" or \"pack\" or \"verify\", found \"bag\"");
  cr_assert_eq(scratch_files(folder), 0);
}

Test(command_model, help_names_both_parts)
{
  g_autoptr(Spawned) help = model("--help", "");
  cr_assert(strstr(help->out, "model pack FILE.safetensors") && strstr(help->out, "model show PROFILE"));
  g_autoptr(Spawned) program = spawn("distmind-real", "--help");
  const char *first = strstr(program->out, "\n  model ");
  cr_assert(first && !strstr(first + 1, "\n  model "), "%s", program->out);
}
