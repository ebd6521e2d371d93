/* Calibration of an SSD: a file of its own is read as models' files are (ssd_file.h), with as many reads
 * under way as a load has; see calibrate.h. */
#include <sys/statvfs.h>
#include <unistd.h>

#include "backend_real/calibrate.h"
#include "backend_real/fit.h"
#include "backend_real/host_memory.h"
#include "backend_real/loop.h"
#include "backend_real/ssd_reader.h"
#include "core/error.h"

enum { REPEATS = 5, LAYERS = 8 };

#define FILE_BYTES (256ULL << 20)

struct pass {
  GMutex lock;
  GCond ended;
  guint under_way;
  gboolean failed;
};

static void on_ended(void *context, uint64_t tag, gboolean good)
{
  struct pass *pass = context;
  (void)tag;
  g_mutex_lock(&pass->lock);
  pass->under_way--;
  pass->failed |= !good;
  g_cond_signal(&pass->ended);
  g_mutex_unlock(&pass->lock);
}

static void await_room(struct pass *pass, guint most)
{
  g_mutex_lock(&pass->lock);
  while (pass->under_way > most)
    g_cond_wait(&pass->ended, &pass->lock);
  pass->under_way++; /* of the read that is asked next */
  g_mutex_unlock(&pass->lock);
}

/* All of the file, in order. */
static gboolean read_once(const struct ssd_file *file, struct ssd_reader *reader, struct pass *pass,
                          double *took_ns)
{
  int64_t began = loop_clock();
  for (uint64_t at = 0; at < FILE_BYTES; at += SSD_READ_MAX) {
    await_room(pass, SSD_READS - 1);
    ssd_reader_read(reader, file, at, at, SSD_READ_MAX, at);
  }
  await_room(pass, 0);
  pass->under_way--;
  *took_ns = (double)(loop_clock() - began);
  return !pass->failed;
}

static gboolean read_all(struct calibration *c, const struct ssd_file *file, struct host_memory *memory,
                         GError **error)
{
  struct pass pass = {.under_way = 0};
  double took[REPEATS];
  guint round = 0;
  g_mutex_init(&pass.lock);
  g_cond_init(&pass.ended);
  struct ssd_reader *reader = ssd_reader_new(memory->base, on_ended, &pass);
  while (round < REPEATS && calibration_goes_on(c, 0.44, error) &&
         read_once(file, reader, &pass, &took[round]))
    round++;
  ssd_reader_free(reader);
  g_mutex_clear(&pass.lock);
  g_cond_clear(&pass.ended);
  if (round < REPEATS) {
    if (pass.failed)
      g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "calibrate: reading from %s failed", c->ssd_folder);
    return FALSE;
  }
  struct spread_of spread = fit_spread(took, REPEATS);
  calibration_set(c, KEY_SSD_RATE, (double)FILE_BYTES / spread.low,
                  "measured: a file of %.0f MB read %s, %u reads of 1 MiB at once; %u times, median %.3g%s",
                  (double)FILE_BYTES / 1e6,
                  ssd_file_direct(file) ? "by O_DIRECT" : "through the page cache, which held none of it",
                  SSD_READER_THREADS, REPEATS, (double)FILE_BYTES / spread.median,
                  ssd_folder_in_memory(c->ssd_folder) ? "; it is no SSD, but memory (tmpfs)" : "");
  return TRUE;
}

static struct profile *profile_of_file(void)
{
  struct profile *profile = profile_new("calibrate", LAYERS);
  for (uint32_t l = 0; l < LAYERS; l++)
    profile->layer_bytes[l] = FILE_BYTES / LAYERS;
  profile_sum(profile);
  return profile;
}

static gboolean measure(struct calibration *c, const char *path, GError **error)
{
  struct profile *profile = profile_of_file();
  struct image *image = image_generate(profile, 1);
  struct host_memory memory = {0};
  struct ssd_file *file = NULL;
  gboolean good = ssd_file_write(path, image, error) && (file = ssd_file_open(path, image, error)) &&
                  host_memory_map(&memory, FILE_BYTES, TRUE, error) && read_all(c, file, &memory, error);
  ssd_file_free(file);
  host_memory_unmap(&memory);
  image_free(image);
  profile_free(profile);
  unlink(path);
  return good;
}

gboolean calibrate_ssd(struct calibration *c, GError **error)
{
  struct statvfs status;
  if (!c->ssd_folder)
    return TRUE;
  if (statvfs(c->ssd_folder, &status) != 0)
    return input_error(error, c->ssd_folder, 0, "expected a folder on an SSD");
  double room = (double)status.f_bavail * (double)status.f_frsize;
  if (room < 2 * (double)FILE_BYTES) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
                "%s: %.3f GB are free, and a file of %.3f GB is to be written", c->ssd_folder, room / 1e9,
                (double)FILE_BYTES / 1e9);
    return FALSE;
  }
  calibration_set(c, KEY_SSD, room / 1e9, "measured: what was free");
  g_autofree char *leaf = g_strdup_printf("distmind-calibrate-%d.dmi", (int)getpid());
  g_autofree char *path = g_build_filename(c->ssd_folder, leaf, NULL);
  return measure(c, path, error);
}
