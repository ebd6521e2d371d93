/* What loading and computing one model alone must take: the design's formulas, worked in long double from
 * layers, cuts and max-min rates, independent of the code under test. A rate of 0 is infinitely fast. */
#ifndef DM_ORACLE_H
#define DM_ORACLE_H

#include "core/sharding.h"

#define ORACLE_GROUPS_MAX 64
#define ORACLE_SLOTS_MAX  8

static inline long double oracle_transfer(long double bytes, double rate)
{
  return rate > 0 ? bytes * 1e9L / rate : 0;
}

/* Bytes of group j on slot s, from the definition of the sharding. */
static inline void oracle_cut(const struct grouping *g, enum sharding_kind kind, uint32_t slots,
                              uint32_t rotation, uint64_t cut[ORACLE_GROUPS_MAX][ORACLE_SLOTS_MAX])
{
  uint64_t all = 0, before = 0;
  for (uint32_t j = 0; j < g->groups; j++)
    all += g->bytes[j];
  for (uint32_t j = 0; j < g->groups; before += g->bytes[j++])
    for (uint32_t s = 0; s < slots; s++) {
      uint64_t length = g->bytes[j];
      uint64_t part = all / slots, more = all % slots;
      uint64_t from = part * s + (s < more ? s : more), to = from + part + (s < more);
      uint64_t low = before > from ? before : from, high = before + length < to ? before + length : to;
      cut[j][s] = kind == SHARDING_PER_APP      ? (s == rotation % slots ? length : 0)
                  : kind == SHARDING_HORIZONTAL ? (s == j % slots ? length : 0)
                  : kind == SHARDING_HYBRID     ? length / slots + (s < length % slots)
                                                : (high > low ? high - low : 0);
    }
}

/* Streams that all have the same constraints run at one rate, min(egress, ingress / how many are left): when
 * each has received v bytes. total[s]: bytes of stream s. */
static inline long double oracle_time(const uint64_t *total, uint32_t streams, uint64_t v, double egress,
                                      double ingress)
{
  long double time = 0;
  for (uint64_t at = 0; at < v;) {
    uint64_t next = v;
    uint32_t left = 0;
    for (uint32_t s = 0; s < streams; s++)
      if (total[s] > at) {
        left++;
        next = total[s] < next ? total[s] : next;
      }
    long double slow = oracle_transfer(next - at, egress),
                shared = oracle_transfer((long double)(next - at) * left, ingress);
    time += slow > shared ? slow : shared;
    at = next;
  }
  return time;
}

/* net[j]: arrival of group j, streams beginning at 0. */
static inline void oracle_net(uint64_t cut[ORACLE_GROUPS_MAX][ORACLE_SLOTS_MAX], uint32_t groups,
                              uint32_t slots, gboolean sequential, double egress, double ingress,
                              double stream_ns, double group_ns, long double *net)
{
  uint64_t total[ORACLE_SLOTS_MAX] = {0}, sum[ORACLE_SLOTS_MAX] = {0};
  for (uint32_t j = 0; j < groups; j++)
    for (uint32_t s = 0; s < slots; s++)
      total[s] += cut[j][s];
  for (uint32_t j = 0; j < groups; j++) {
    long double last = 0;
    for (uint32_t s = 0; s < slots; s++) {
      sum[s] += cut[j][s];
      uint64_t v = sequential ? cut[j][s] : sum[s];
      long double t = cut[j][s] ? oracle_time(sequential ? cut[j] : total, slots, v, egress, ingress) : 0;
      last = t > last ? t : last;
    }
    net[j] =
        sequential ? (j ? net[j - 1] : stream_ns) + group_ns + last : stream_ns + last + (j + 1) * group_ns;
  }
}

/* comp(last) on a GPU of a kind, the model's first group computing no sooner than free_at; net NULL: all is
 * in host memory. */
static inline long double oracle_pipeline_on(uint32_t kind, const struct grouping *g, const struct profile *p,
                                             const struct hardware *hw, const long double *net,
                                             long double free_at)
{
  long double pcie = 0, comp = free_at;
  for (uint32_t j = 0; j < g->groups; j++) {
    long double arrived = net ? net[j] : 0, bytes = 0, compute = 0;
    uint32_t layers = 0;
    for (uint32_t i = g->first_layer[j]; i < g->first_layer[j + 1]; i++, layers++) {
      bytes += p->layer_bytes[i];
      compute += p->timing[kind].layer_ns[i];
    }
    pcie =
        (pcie > arrived ? pcie : arrived) + hw->pcie_transfer_ns + oracle_transfer(bytes, hw->pcie_bytes_s);
    comp = (comp > pcie ? comp : pcie) + hw->group_sync_ns + compute + hw->launch_ns * layers;
  }
  return comp;
}

static inline long double oracle_pipeline(const struct grouping *g, const struct profile *p,
                                          const struct hardware *hw, const long double *net,
                                          long double free_at)
{
  return oracle_pipeline_on(0, g, p, hw, net, free_at);
}

/* comp(last) where the groups arrive in GPU memory: two stages, no PCIe after the network. */
static inline long double oracle_two_stages(const struct grouping *g, const struct profile *p,
                                            const struct hardware *hw, const long double *net)
{
  long double comp = 0, here = 0;
  for (uint32_t j = 0; j < g->groups; j++) {
    here = net[j] > here ? net[j] : here; /* behind the groups before it, as computing goes */
    comp = (comp > here ? comp : here) + hw->group_sync_ns;
    for (uint32_t i = g->first_layer[j]; i < g->first_layer[j + 1]; i++)
      comp += p->timing[0].layer_ns[i] + hw->launch_ns;
  }
  return comp;
}

static inline long double oracle_resident(const struct profile *p, const struct hardware *hw)
{
  long double sum = 0;
  for (uint32_t i = 0; i < p->layers; i++)
    sum += p->timing[0].layer_ns[i] + hw->launch_ns;
  return sum;
}

#endif
