/* Calibration of computing: each profile's inference as the device really runs it, whole and cut into groups
 * that wait for their copies; see calibrate.h. Every byte is checked, as in a run. */
#include <unistd.h>

#include "backend_real/calibrate_gear.h"
#include "backend_real/fit.h"
#include "backend_real/image.h"
#include "core/error.h"

enum { RESIDENT_RUNS = 15, VERIFY_RUNS = 5, GROUP_RUNS = 5, GROUPS_MOST = 32, POINTS_MAX = 512 };

/* Requests of a light load find a device that rests. */
#define PAUSE_US 1000

/* One profile on the device. */
struct bench {
  struct gear *gear;
  struct calibrated_profile *of;
  struct image *image;
  GArray *points; /* of struct fit_point: groups, and what they cost beyond their layers and one inference's
                     overhead */
};

static void compute(const struct bench *b, uint32_t first, uint32_t last, double ns, uint64_t after,
                    uint64_t tag)
{
  const struct image_layer *from = image_layer(b->image, first), *to = image_layer(b->image, last - 1);
  struct device_compute compute = {
      .pieces = 1,
      .piece = {{.device = from->offset,
                 .bytes = to->offset + to->bytes - from->offset,
                 .offset = from->offset}},
      .checksum = image_checksum(b->image, first, last),
      .compute_ns = (int64_t)(ns + 0.5),
      .after = after,
      .tag = tag,
  };
  b->gear->calibration->device->compute(b->gear->device, &compute);
}

/* The whole resident model, each run after a pause. */
static gboolean time_resident(const struct bench *b, double ns, guint runs, struct spread_of *spread,
                              GError **error)
{
  double took[RESIDENT_RUNS];
  for (guint i = 0; i < runs; i++) {
    g_usleep(PAUSE_US);
    int64_t begin = loop_clock(), told;
    compute(b, 0, image_layers(b->image), ns, 0, gear_begin(b->gear));
    if (!gear_await(b->gear, &told, error))
      return FALSE;
    took[i] = (double)(told - begin);
  }
  *spread = fit_spread(took, runs);
  return TRUE;
}

/* --- groups
 * -----------------------------------------------------------------------------------------------------*/

struct cut {
  uint32_t groups, first[GROUPS_MOST + 1]; /* layers; group g has [first[g], first[g + 1]) */
  uint64_t copy[GROUPS_MOST];              /* tokens */
};

static uint64_t cut_bytes(const struct bench *b, const struct cut *cut, uint32_t g)
{
  const struct image_layer *from = image_layer(b->image, cut->first[g]),
                           *to = image_layer(b->image, cut->first[g + 1] - 1);
  return to->offset + to->bytes - from->offset;
}

static double cut_layers_ns(const struct bench *b, const struct cut *cut, uint32_t g)
{
  double ns = 0;
  for (uint32_t l = cut->first[g]; l < cut->first[g + 1]; l++)
    ns += b->of->profile->timing[0].layer_ns[l];
  return ns;
}

/* What the layers alone take: computing, or reading and checking where that is slower. */
static double cut_ns(const struct bench *b, const struct cut *cut)
{
  double ns = 0, byte_ns = b->of->verify_ns / (double)image_bytes(b->image);
  for (uint32_t g = 0; g < cut->groups; g++)
    ns += MAX(cut_layers_ns(b, cut, g), (double)cut_bytes(b, cut, g) * byte_ns);
  return ns;
}

/* Each group's copy first, which its compute then names; a copy of no bytes is none. */
static gboolean copy_groups(const struct bench *b, struct cut *cut, GError **error)
{
  int64_t told;
  for (uint32_t g = 0; g < cut->groups; g++)
    cut->copy[g] = gear_copy(b->gear, image_layer(b->image, cut->first[g])->offset, cut_bytes(b, cut, g),
                             g + 1 == cut->groups ? gear_begin(b->gear) : 0);
  return gear_await(b->gear, &told, error);
}

static gboolean time_groups(const struct bench *b, struct cut *cut, double *took_ns, GError **error)
{
  int64_t told;
  if (!copy_groups(b, cut, error))
    return FALSE;
  g_usleep(PAUSE_US);
  int64_t begin = loop_clock();
  for (uint32_t g = 0; g < cut->groups; g++)
    compute(b, cut->first[g], cut->first[g + 1], cut_layers_ns(b, cut, g), cut->copy[g],
            g + 1 == cut->groups ? gear_begin(b->gear) : 0);
  if (!gear_await(b->gear, &told, error))
    return FALSE;
  *took_ns = (double)(told - begin);
  return TRUE;
}

/* Layers spread evenly over groups. */
static gboolean measure_groups(const struct bench *b, uint32_t groups, GError **error)
{
  uint32_t layers = image_layers(b->image);
  double took[GROUP_RUNS];
  struct cut cut = {.groups = groups};
  for (uint32_t g = 0; g <= groups; g++)
    cut.first[g] = (uint32_t)((uint64_t)layers * g / groups);
  for (guint i = 0; i < GROUP_RUNS; i++)
    if (!time_groups(b, &cut, &took[i], error))
      return FALSE;
  double overhead = b->of->warm_ns - MAX(b->of->profile->timing[0].warm_ns, b->of->verify_ns);
  double beyond = fit_spread(took, GROUP_RUNS).low - cut_ns(b, &cut) - overhead;
  struct fit_point point = {.x = {groups}, .y = beyond};
  g_array_append_val(b->points, point);
  return TRUE;
}

/* --- a profile
 * --------------------------------------------------------------------------------------------------*/

static gboolean load_image(const struct bench *b, GError **error)
{
  int64_t told;
  image_read(b->image, 0, image_bytes(b->image), b->gear->memory.base);
  image_checksum(b->image, 0, image_layers(b->image)); /* computed now, not while something is timed */
  gear_copy(b->gear, 0, image_bytes(b->image), gear_begin(b->gear));
  return gear_await(b->gear, &told, error);
}

static gboolean measure_profile(const struct bench *b, GError **error)
{
  struct calibrated_profile *of = b->of;
  struct spread_of warm, verify;
  if (!load_image(b, error) ||
      !time_resident(b, of->profile->timing[0].warm_ns, RESIDENT_RUNS, &warm, error) ||
      !time_resident(b, 0, VERIFY_RUNS, &verify, error))
    return FALSE;
  /* Whatever disturbs a run only adds to it. */
  of->warm_ns = warm.low;
  of->median_ns = warm.median;
  of->high_ns = warm.high;
  of->verify_ns = verify.low;
  for (uint32_t groups = 2; groups <= MIN(GROUPS_MOST, image_layers(b->image)); groups *= 2)
    if (!measure_groups(b, groups, error))
      return FALSE;
  return TRUE;
}

/* What a group costs: the slope through the origin, as one inference's overhead is taken off already.
 * Differences of times may be below 0, so all points weigh the same. */
static void set_group_sync(struct calibration *c, const GArray *points)
{
  double xy = 0, xx = 0, off = 0;
  for (guint i = 0; i < points->len; i++) {
    const struct fit_point *p = &g_array_index(points, struct fit_point, i);
    xy += p->x[0] * p->y;
    xx += p->x[0] * p->x[0];
  }
  double slope = xx > 0 ? MAX(0, xy / xx) : 0;
  for (guint i = 0; i < points->len; i++) {
    const struct fit_point *p = &g_array_index(points, struct fit_point, i);
    off = MAX(off, ABS(p->y - slope * p->x[0]));
  }
  calibration_set(
      c, KEY_GROUP_SYNC, slope / 1e3,
      "measured: inferences cut into 2 to %d groups, each after its copy; no point more than %.0f us off the "
      "line",
      GROUPS_MOST, off / 1e3);
  calibration_set(c, KEY_LAUNCH, 0,
                  "a group is one launch however many layers it has: group_sync_us and the profiles hold it");
}

gboolean calibrate_profiles(struct gear *gear, GError **error)
{
  struct calibration *c = gear->calibration;
  g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(struct fit_point));
  for (guint i = 0; i < c->profiles->len; i++) {
    struct calibrated_profile *of = &g_array_index(c->profiles, struct calibrated_profile, i);
    if (!calibration_goes_on(c, 0.55 + 0.45 * i / c->profiles->len, error))
      return FALSE;
    struct bench b = {.gear = gear, .of = of, .image = image_generate(of->profile, i + 1), .points = points};
    gboolean good = measure_profile(&b, error);
    image_free(b.image);
    if (!good)
      return FALSE;
  }
  set_group_sync(c, points);
  return TRUE;
}
