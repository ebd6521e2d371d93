/* Calibration of a device: copies to the GPU, then the profiles on it; see calibrate.h. */
#include "backend_real/calibrate.h"
#include "backend_real/calibrate_gear.h"
#include "backend_real/fit.h"
#include "core/error.h"

enum { REPEATS = 9, COPIES_MAX = 256, SIZES_MAX = 16 };

#define SMALLEST_BYTES (64ULL << 10)
#define ARENA_LEAST    (64ULL << 20) /* more than caches hold */

/* Copies of one size back to back through the arena; ns each, the lower quartile of a few rounds. */
static gboolean copies_time(struct gear *gear, uint64_t bytes, double *each_ns, GError **error)
{
  uint64_t places = gear->bytes / bytes, count = CLAMP(gear->bytes / bytes, 4, COPIES_MAX);
  double took[REPEATS];
  for (guint i = 0; i < REPEATS; i++) {
    int64_t begin = loop_clock(), told;
    for (uint64_t n = 0; n < count; n++)
      gear_copy(gear, n % places * bytes, bytes, n + 1 == count ? gear_begin(gear) : 0);
    if (!gear_await(gear, &told, error))
      return FALSE;
    took[i] = (double)(told - begin) / (double)count;
  }
  *each_ns = fit_spread(took, REPEATS).low;
  return TRUE;
}

static gboolean measure_copies(struct gear *gear, GError **error)
{
  struct calibration *c = gear->calibration;
  struct fit_point point[SIZES_MAX];
  struct fit fit;
  guint points = 0;
  double unused;
  if (!copies_time(gear, gear->bytes, &unused, error)) /* touches all memory */
    return FALSE;
  uint64_t largest = calibration_bytes(c, SMALLEST_BYTES << 2); /* no group is larger */
  for (uint64_t bytes = SMALLEST_BYTES; bytes <= largest && points < SIZES_MAX; bytes *= 4, points++) {
    double each_ns;
    if (!calibration_goes_on(c, 0.45 + 0.01 * points, error) || !copies_time(gear, bytes, &each_ns, error))
      return FALSE;
    point[points] = (struct fit_point){.x = {1, (double)bytes}, .y = each_ns};
  }
  if (!fit_points(point, points, 2, &fit, error))
    return FALSE;
  if (!(fit.c[1] > 0)) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
                "calibrate: the time of a copy does not grow with its bytes");
    return FALSE;
  }
  calibration_set(c, KEY_PCIE, 1 / fit.c[1],
                  "measured: copies of 64 KiB to %u KiB back to back, fitted to %.1f%%",
                  (unsigned)(SMALLEST_BYTES << 2 * (points - 1) >> 10), 100 * fit.residual);
  calibration_set(c, KEY_PCIE_TRANSFER, fit.c[0] / 1e3, "measured: of the same copies; standard error %.2f",
                  fit.error[0] / 1e3);
  return TRUE;
}

gboolean calibrate_device(struct calibration *c, GError **error)
{
  struct gear gear;
  gboolean good = gear_open(&gear, c, calibration_bytes(c, ARENA_LEAST), error) &&
                  measure_copies(&gear, error) && calibrate_profiles(&gear, error);
  gear_close(&gear);
  return good;
}
