/* The command `model` of distmind-real: the harness's parts, `model pack` and `model verify`. */
#include "harness/command_model.h"

#include <stdio.h>

#include "backend_real/commands.h"
#include "backend_real/image.h"
#include "core/error.h"
#include "harness/output_file.h"
#include "harness/progress.h"

static void draw(void *progress, double done)
{
  progress_share(progress, done);
}

static gboolean pack(const char *file, const char *out, gboolean quiet, GError **error)
{
  struct progress *progress = progress_new(0, "pack", quiet);
  gboolean good = image_pack(file, out, draw, progress, error);
  progress_free(progress);
  struct image *image = good ? image_open(out, error) : NULL;
  if (!image)
    return FALSE;
  if (!quiet)
    printf("%s: %u layers, %u tensors, %" G_GUINT64_FORMAT " bytes of parameters\n", out, image_layers(image),
           image_tensors(image), image_bytes(image));
  image_free(image);
  return TRUE;
}

static gboolean run_pack(int argc, char **argv, GError **error)
{
  g_autofree char *out = NULL;
  gboolean force = FALSE, quiet = FALSE;
  const GOptionEntry entries[] = {
      {"out", 'o', 0, G_OPTION_ARG_FILENAME, &out, NULL, NULL},
      {"force", 'f', 0, G_OPTION_ARG_NONE, &force, NULL, NULL},
      {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, NULL, NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL},
  };
  g_auto(GStrv) words = command_options(argc, argv, entries, error);
  if (!words || !command_arguments(argv, words, 1, 1, "a FILE.safetensors", error))
    return FALSE;
  if (!out)
    return input_error(error, NULL, 0, "model pack: expected -o MODEL.dmi");
  return output_file_check(out, force, error) && pack(words[0], out, quiet, error);
}

static gboolean run_verify(int argc, char **argv, GError **error)
{
  const GOptionEntry entries[] = {{NULL, 0, 0, 0, NULL, NULL, NULL}};
  g_auto(GStrv) words = command_options(argc, argv, entries, error);
  if (!words || !command_arguments(argv, words, 1, 1, "a MODEL.dmi", error))
    return FALSE;
  struct image *image = image_open(words[0], error);
  gboolean good = image && image_verify(image, error);
  if (good)
    printf("%s: %u layers, %" G_GUINT64_FORMAT " bytes of parameters, all as their checksums say\n", words[0],
           image_layers(image), image_bytes(image));
  image_free(image);
  return good;
}

static gboolean run_model(int argc, char **argv, GError **error)
{
  static const struct model_part parts[] = {
      {"show", model_show}, {"pack", run_pack}, {"verify", run_verify}, {NULL, NULL}};
  return model_run(parts, argc, argv, error);
}

const struct command command_real_model = {
    .name = "model",
    .summary = "show a model's groups and latency, pack or verify its parameters",
    .run = run_model,
    .help =
        "model pack FILE.safetensors -o MODEL.dmi [--force] [--quiet]\n"
        "       distmind-real model verify MODEL.dmi\n"
        "       distmind-real " MODEL_SHOW_USAGE "\n"
        "pack: writes a model image, which a memory server opens in microseconds. Tensors become layers by "
        "the part\n"
        "of their names before the last dot.\n"
        "\n"
        "  -o, --out MODEL.dmi   the image; it appears whole or not at all\n"
        "  -f, --force           overwrite it\n"
        "  -q, --quiet           no progress bar, no summary\n"
        "\n"
        "verify: reads an image, packed or of an SSD folder, and compares the checksums of its layers.\n"
        "\n" MODEL_SHOW_HELP,
};
