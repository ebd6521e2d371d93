/* What opening a model image costs, whatever its size: mmap, checks of all tables, pointer fix-up, and the
 * end.
 *
 *     build/bench/real_image [--csv] [FILE.dmi]...
 *
 * Median, least and most of OPENS, the file in the page cache. Without files: images as large as the five
 * measured models, with as many tensors, packed into a temporary folder. The goal is "microseconds": under
 * GOAL_US. --csv prints model,bytes,tensors,open_us and nothing else. */
#include <glib/gstdio.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend_real/image.h"
#include "core/error.h"
#include "harness/profile_file.h"
#include "harness/resolve.h"

enum { OPENS = 501, GOAL_US = 1000 };

typedef struct profile Profile;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Profile, profile_free)

static const char *const models[] = {"resnet152", "inception_v3", "densenet201", "bert_base", "gpt2"};

static double now_us(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int compare_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static gboolean bench_file(const char *path, gboolean csv, GError **error)
{
  static double took[OPENS];
  uint64_t bytes = 0;
  uint32_t tensors = 0;
  for (int i = 0; i < OPENS; i++) {
    double start = now_us();
    struct image *image = image_open(path, error);
    if (!image)
      return FALSE;
    bytes = image_bytes(image);
    tensors = image_tensors(image);
    image_free(image);
    took[i] = now_us() - start;
  }
  qsort(took, OPENS, sizeof *took, compare_doubles);
  g_autofree char *base = g_path_get_basename(path);
  char *dot = strrchr(base, '.');
  if (dot)
    *dot = '\0';
  double median = took[OPENS / 2];
  if (csv)
    printf("%s,%" PRIu64 ",%u,%.1f\n", base, bytes, tensors, median);
  else
    printf("%-14s %11" PRIu64 " bytes %5u tensors: opened in %7.1f us (%.1f to %.1f)%s\n", base, bytes,
           tensors, median, took[0], took[OPENS - 1], median > GOAL_US ? "  MISSED" : "");
  return TRUE;
}

/* The header of a safetensors file whose layers are the profile's, each cut into so many tensors. */
static GString *safetensors_header(const Profile *profile, uint32_t cuts, uint64_t *data)
{
  GString *text = g_string_new("{");
  *data = 0;
  for (uint32_t l = 0; l < profile->layers; l++) {
    uint64_t words = profile->layer_bytes[l] / 4;
    for (uint32_t c = 0; c < cuts && words > 0; c++) {
      uint64_t here = c + 1 == cuts ? words : words / 2;
      words -= here;
      if (here == 0)
        continue;
      g_string_append_printf(text,
                             "%s\"l%u.t%u\":{\"dtype\":\"F32\",\"shape\":[%" PRIu64
                             "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                             *data > 0 ? "," : "", l, c, here, *data, *data + here * 4);
      *data += here * 4;
    }
  }
  g_string_append_c(text, '}');
  return text;
}

/* Zeros behind the header: the file has a hole there. */
static gboolean write_safetensors(const char *path, const Profile *profile)
{
  uint64_t data;
  uint32_t cuts = MAX(1, profile->tensors / MAX(1, profile->layers));
  g_autoptr(GString) header = safetensors_header(profile, cuts, &data);
  uint64_t length = header->len;
  FILE *file = fopen(path, "wb");
  if (!file)
    return FALSE;
  gboolean written =
      fwrite(&length, sizeof length, 1, file) == 1 && fwrite(header->str, header->len, 1, file) == 1;
  gboolean closed = fclose(file) == 0;
  return written && closed && truncate(path, (off_t)(sizeof length + length + data)) == 0;
}

static gboolean bench_model(const char *folder, const char *name, gboolean csv, GError **error)
{
  g_autofree char *profiles = g_build_filename(DM_SOURCE_DIR, "experiments", "profiles", "h200", NULL);
  g_autoptr(Profile) profile = profile_load(profiles, name, error);
  if (!profile)
    return FALSE;
  g_autofree char *source = g_strdup_printf("%s/%s.safetensors", folder, name);
  g_autofree char *packed = g_strdup_printf("%s/%s.dmi", folder, name);
  gboolean done = write_safetensors(source, profile) && image_pack(source, packed, NULL, NULL, error) &&
                  bench_file(packed, csv, error);
  g_unlink(source);
  g_unlink(packed);
  if (!done && error && !*error)
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: cannot be written", source);
  return done;
}

static gboolean bench_own(gboolean csv, GError **error)
{
  g_autofree char *folder = g_dir_make_tmp("distmind-images-XXXXXX", error);
  gboolean done = folder != NULL;
  for (size_t m = 0; done && m < G_N_ELEMENTS(models); m++)
    done = bench_model(folder, models[m], csv, error);
  if (folder)
    g_rmdir(folder);
  return done;
}

int main(int argc, char **argv)
{
  g_autoptr(GError) error = NULL;
  if (argc > 1 && strcmp(argv[1], "--help") == 0) {
    puts("usage: real_image [--csv] [FILE.dmi]...   what opening each image costs");
    return 0;
  }
  int first = argc > 1 && strcmp(argv[1], "--csv") == 0 ? 2 : 1;
  gboolean csv = first == 2, done = TRUE;
  if (csv)
    puts("model,bytes,tensors,open_us");
  if (first >= argc)
    done = bench_own(csv, &error);
  for (int i = first; done && i < argc; i++)
    done = bench_file(argv[i], csv, &error);
  if (!done)
    fprintf(stderr, "real_image: %s\n", error ? error->message : "failed");
  return done ? 0 : 1;
}
