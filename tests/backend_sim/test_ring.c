/* Staging smaller than the model is a ring: when a group may begin to come, by the formula for one stream,
 * and by what was recorded for many. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "lab.h"
#include "oracle.h"
#include "small_world.h"

#define AT (1000 * NS_PER_MS)

static const uint64_t layer_bytes[] = {9000000, 4000000,  30000001, 5000000, 0,
                                       7000000, 21000000, 1000,     8000000, 30000001};
static const double layer_ns[G_N_ELEMENTS(layer_bytes)] = {1000, 1000, 1000, 1000, 1000,
                                                           1000, 1000, 1000, 1000, 1000};
#define LAYERS G_N_ELEMENTS(layer_bytes)

/* The first group whose copy must be over before group j may begin: the bytes from the next one up to `last`
 * are within room. */
static uint32_t first_in_room(const struct grouping *g, uint32_t j, uint32_t last, uint64_t room)
{
  uint64_t bytes = 0;
  uint32_t k = j;
  for (uint32_t i = j; i < last; i++)
    bytes += g->bytes[i];
  while (k > 0 && bytes + g->bytes[k - 1] <= room)
    bytes += g->bytes[--k];
  return k;
}

/* One stream: group j begins to come when the one before is here (sequential: with its overhead) and the
 * groups that are not copied yet, itself included, are within the ring; of those before it, within the
 * window. */
static long double ringed(const struct small_world *w, uint32_t model)
{
  const struct config *config = &w->config;
  const struct hardware *hw = &config->hardware[0];
  const struct grouping *g = small_world_grouping(w, model, SOURCE_REMOTE);
  long double net[ORACLE_GROUPS_MAX], pcie[ORACLE_GROUPS_MAX], byte = hw->net_stream_ns;
  for (uint32_t j = 0; j < g->groups; j++) {
    uint32_t ring = first_in_room(g, j, j + 1, config->staging_bytes);
    uint32_t window = config->window_bytes ? first_in_room(g, j, j, config->window_bytes) : 0;
    uint32_t copied = MAX(ring, window);
    if (copied > 0 && pcie[copied - 1] > byte && g->bytes[j] > 0)
      byte = pcie[copied - 1];
    byte += oracle_transfer(g->bytes[j], config->memory_hardware.memory_nic_bytes_s);
    if (config->sequential)
      byte += hw->net_group_ns;
    net[j] = config->sequential ? byte : byte + (j + 1) * hw->net_group_ns;
    pcie[j] = MAX(net[j], j ? pcie[j - 1] : 0) + hw->pcie_transfer_ns +
              oracle_transfer(g->bytes[j], hw->pcie_bytes_s);
  }
  return oracle_pipeline(g, small_world_profile((struct small_world *)w, model), hw, net, 0);
}

static struct small_world *ring_world(enum sharding_kind sharding, gboolean sequential, uint64_t ring,
                                      uint64_t window, double pcie, uint32_t *model)
{
  struct small_world *w = small_world_new("distmind");
  struct hardware *hw = &w->config.hardware[0];
  w->grouping = (struct grouping_policy){GROUPING_PER_LAYER, 0};
  w->config.sharding = sharding;
  w->config.sequential = sequential;
  w->config.staging_bytes = ring;
  w->config.window_bytes = window;
  hw->pcie_bytes_s = pcie;
  hw->pcie_transfer_ns = 7300;
  *model = small_world_model(w, LAYERS, layer_bytes, layer_ns, 1);
  small_world_request(w, AT, *model);
  return w;
}

static const uint64_t rings[] = {30000001, 30000002, 39000001, 43000001, 60000000, 115001002};
static const uint64_t windows[] = {0, 1, 12000000};
static const double pcie_rates[] = {1e9, 3e9, 8e9};

Test(ring, holds_one_stream_back_by_the_formula)
{
  for (uint32_t i = 0; i < 4 * G_N_ELEMENTS(rings) * G_N_ELEMENTS(windows) * G_N_ELEMENTS(pcie_rates); i++) {
    uint32_t model, k = i / 4;
    uint64_t ring = rings[k % G_N_ELEMENTS(rings)],
             window = windows[k / G_N_ELEMENTS(rings) % G_N_ELEMENTS(windows)];
    double pcie = pcie_rates[k / G_N_ELEMENTS(rings) / G_N_ELEMENTS(windows)];
    struct small_world *w = ring_world(SHARDING_PER_APP, i % 2 == 1, ring, window, pcie, &model);
    if (i & 2) {
      w->config.hardware[0].net_stream_ns = 33000;
      w->config.hardware[0].net_group_ns = 5100;
    }
    small_world_run(w, TIME_NEVER);
    double expected = (double)ringed(w, model);
    cr_expect(fabs((double)small_world_latency(w, 0) - expected) <= 1,
              "%s, ring %" G_GUINT64_FORMAT ", window %" G_GUINT64_FORMAT ", PCIe %g: %" G_GINT64_FORMAT
              " ns, the formula says %.2f",
              i % 2 ? "sequential" : "parallel", ring, window, pcie, small_world_latency(w, 0), expected);
    small_world_free(w);
  }
}

/* As recorded: when each group of the load was here, and when it had been copied. */
struct times {
  int64_t here[LAYERS], copied[LAYERS];
  uint32_t seen;
};

static void on_record(void *context, const struct record *record)
{
  struct times *t = context;
  if (record->kind == RECORD_GROUP_NET)
    t->here[record->group] = record->time_ns;
  else if (record->kind == RECORD_GROUP_PCIE)
    t->copied[record->group] = record->time_ns;
  t->seen += record->kind == RECORD_GROUP_NET || record->kind == RECORD_GROUP_PCIE;
}

/* A group that is here began before: its last byte was then within the ring of the first group not copied. */
static void expect_in_ring(const struct times *t, uint64_t ring, const char *what)
{
  for (uint32_t j = 0; j < LAYERS; j++) {
    uint64_t bytes = 0;
    for (uint32_t k = 0; k <= j; k++)
      bytes += t->copied[k] >= t->here[j] ? layer_bytes[k] : 0; /* copied in order */
    cr_expect_leq(bytes, ring, "%s: %" G_GUINT64_FORMAT " bytes in a ring of %" G_GUINT64_FORMAT, what, bytes,
                  ring);
  }
}

Test(ring, is_never_overrun_by_many_streams)
{
  int64_t before[8] = {0}; /* of the next smaller ring */
  for (uint32_t i = 0; i < 8 * G_N_ELEMENTS(rings) * G_N_ELEMENTS(pcie_rates); i++) {
    uint32_t model, k = i / 8;
    enum sharding_kind sharding = (enum sharding_kind)(i / 2 % 4);
    uint64_t ring = rings[k % G_N_ELEMENTS(rings)];
    struct times times = {0};
    struct small_world *w =
        ring_world(sharding, i % 2 == 1, ring, 0, pcie_rates[k / G_N_ELEMENTS(rings)], &model);
    w->options.record = on_record;
    w->options.record_context = &times;
    small_world_run(w, TIME_NEVER);
    cr_assert_eq(w->answered, 1);
    cr_assert_eq(times.seen, 2 * LAYERS);
    g_autofree char *what =
        g_strdup_printf("%s, %s", sharding_name(sharding), i % 2 ? "sequential" : "parallel");
    expect_in_ring(&times, ring, what);
    /* Where groups come one after the other, a larger ring is never slower. (Else later groups may come
     * earlier at the cost of those that are needed first.) */
    gboolean one_by_one = sharding == SHARDING_PER_APP || i % 2 == 1;
    if (k % G_N_ELEMENTS(rings) > 0 && one_by_one)
      cr_expect_leq(small_world_latency(w, 0), before[i % 8], "%s: ring %" G_GUINT64_FORMAT, what, ring);
    before[i % 8] = small_world_latency(w, 0);
    small_world_free(w);
  }
}

Test(ring, holds_the_largest_group_or_is_refused)
{
  g_autoptr(Lab) lab = lab_new();
  const char *const policy = "pipeline.grouping=per-layer"; /* groups of 10 MB */
  g_autofree char *message =
      lab_refusal(lab, "distmind", "models.a=2", policy, "cluster.staging_gb=0.009999", NULL);
  cr_expect(strstr(message, "staging for the largest group of a"), "%s", message);
  g_autoptr(LabResult) least = lab_run(lab, "distmind", "models.a=4", policy, "cluster.staging_gb=0.01",
                                       "cluster.host_cache_gb=0", "cluster.gpu_models_max=1", NULL);
  lab_check_conserved(least, "a ring of one group");
  cr_expect_gt(least->figures.loads_remote, 10);
  cr_expect_eq(least->figures.failed, 0);
}
