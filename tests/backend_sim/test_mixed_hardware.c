/* The shipped machine types together: 2 servers of H200 and 4 of L4 (g6), parameters on c6in memory servers.
 * One request on each against the closed form, from the shipped files; then all systems under load. */
#include "lab.h"
#include "oracle.h"

#include <criterion/criterion.h>
#include <math.h>

#include "core/cost.h"
#include "harness/experiment.h"
#include "harness/profile_file.h"

#define GROUPS 8

static const char experiment_text[] = "[experiment]\n"
                                      "name = mixed\n"
                                      "[cluster]\n"
                                      "gpu_servers = 2*h200;4*g6\n"
                                      "memory_hardware = c6in\n"
                                      "memory_servers = 2\n"
                                      "[models]\n"
                                      "resnet152 = 16\n"
                                      "bert_base = 16\n"
                                      "[workload]\n"
                                      "kind = poisson\n"
                                      "rate_rps = 400\n"
                                      "duration_s = 5\n";

/* What each kind needs to be worked out by hand. */
struct kind {
  struct hardware hw;
  struct profile *profile;
  struct grouping *grouping;
};

static void kind_load(struct kind *k, const char *hardware, const char *profiles)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *folder = resolve_path(profiles, "");
  cr_assert(folder && hardware_load(hardware, "", &k->hw, &error), "%s: %s", hardware,
            error ? error->message : "");
  k->profile = profile_load(folder, "resnet152", &error);
  cr_assert(k->profile, "%s", error ? error->message : "");
  struct grouping_policy policy = {.kind = GROUPING_COUNT, .argument = GROUPS};
  struct load_path path = {0}; /* cut by bytes alone */
  k->grouping = grouping_new(k->profile, 0, &policy, &path);
}

static void kind_clear(struct kind *k)
{
  grouping_free(k->grouping);
  profile_free(k->profile);
}

/* Hybrid shards on two memory servers, cut along the first kind's groups, which count:8 makes the same on
 * all. */
static double remote_ns(const struct kind *k, const struct hardware *memory)
{
  uint64_t cut[ORACLE_GROUPS_MAX][ORACLE_SLOTS_MAX];
  long double net[ORACLE_GROUPS_MAX];
  oracle_cut(k->grouping, SHARDING_HYBRID, 2, 0, cut);
  oracle_net(cut, k->grouping->groups, 2, FALSE, memory->memory_nic_bytes_s, k->hw.nic_bytes_s,
             k->hw.net_stream_ns, k->hw.net_group_ns, net);
  return (double)oracle_pipeline(k->grouping, k->profile, &k->hw, net, 0);
}

Test(mixed_hardware, one_request_on_each_machine)
{
  struct kind kind[2];
  struct hardware memory;
  g_autoptr(Lab) lab = lab_new();
  g_autoptr(GError) error = NULL;
  kind_load(&kind[0], "h200", "experiments/profiles/h200");
  kind_load(&kind[1], "g6", "experiments/profiles/l4");
  cr_assert(hardware_load("c6in", "", &memory, &error));
  lab_write(lab, "x.ini", experiment_text);
  lab_write(
      lab, "requests.csv",
      "arrival_s,model\n10,resnet152-0\n20,resnet152-1\n30,resnet152-2\n40,resnet152-3\n50,resnet152-4\n"
      "60,resnet152-5\n70,resnet152-0\n80,resnet152-1\n90,resnet152-2\n");
  g_autofree char *trace = g_strdup_printf("workload.trace=%s/requests.csv", lab->folder);
  lab->rows = TRUE;
  g_autoptr(LabResult) result =
      lab_run(lab, "distmind", "cluster.gpus_per_server=1", "workload.kind=trace", trace, "workload.map=name",
              "workload.duration_s=0", "experiment.initial=cold", "balancing.policy=round_robin",
              "pipeline.grouping=count:8", NULL);
  lab_check_conserved(result, "one each");
  cr_assert_eq(result->rows->len, 9);
  for (guint i = 0; i < 9; i++) {
    const struct request_row *row = &g_array_index(result->rows, struct request_row, i);
    const struct kind *k = &kind[i % 6 >= 2];
    double expected = 2 * kind[0].hw.control_ns + 2 * k->hw.control_ns +
                      (i < 6 ? remote_ns(k, &memory) : (double)oracle_resident(k->profile, &k->hw));
    cr_expect_eq(row->gpu, i % 6);
    cr_expect_eq(row->found, i < 6 ? FOUND_REMOTE : FOUND_RESIDENT);
    cr_expect(fabs((double)(row->end_ns - row->arrival_ns) - expected) <= 2,
              "request %u took %ld ns, by hand %.1f", i, row->end_ns - row->arrival_ns, expected);
  }
  cr_expect_eq(result->figures.net_bytes, 6 * kind[0].profile->param_bytes);
  kind_clear(&kind[0]);
  kind_clear(&kind[1]);
}

Test(mixed_hardware, every_system_serves_with_all_machines)
{
  static const char *const systems[] = {"ideal", "ideal-shared", "distmind",     "pipeswitch",
                                        "mps",   "ray",          "serverlessllm"};
  g_autoptr(Lab) lab = lab_new();
  lab_write(lab, "x.ini", experiment_text);
  lab->rows = TRUE;
  for (size_t i = 0; i < G_N_ELEMENTS(systems); i++) {
    uint64_t on[2] = {0, 0};
    g_autoptr(LabResult) result = lab_run(lab, systems[i], "workload.kind=closed", "workload.outstanding=80",
                                          "cluster.ssd_copies=2", NULL);
    lab_check_conserved(result, systems[i]);
    lab_check_parts(result, systems[i]);
    for (guint k = 0; k < result->rows->len; k++)
      on[g_array_index(result->rows, struct request_row, k).gpu >= 16]++;
    cr_expect(on[0] > 100 && on[1] > 100, "%s: %lu requests on H200, %lu on L4", systems[i], on[0], on[1]);
    cr_expect_eq(result->figures.failed, 0, "%s: %lu failed", systems[i], result->figures.failed);
  }
}

/* A hop takes the latency of the GPU server at its end; rows tell when each was sent on and began. */
Test(mixed_hardware, hops_take_their_servers_latency)
{
  g_autoptr(Lab) lab = lab_new();
  lab_write(lab, "near.ini",
            "[hardware]\ngpu = lab\ngpu_memory_gb = 16\nhost_memory_gb = 99\ncontrol_us = 10\n");
  lab_write(lab, "far.ini",
            "[hardware]\ngpu = lab\ngpu_memory_gb = 16\nhost_memory_gb = 99\ncontrol_us = 70\n");
  lab_write(lab, "requests.csv", "arrival_s\n1\n2\n3\n4\n");
  g_autofree char *trace = g_strdup_printf("workload.trace=%s/requests.csv", lab->folder);
  lab->rows = TRUE;
  g_autoptr(LabResult) result = lab_run(
      lab, "ideal", "models.a=1", "cluster.gpu_servers=1*near.ini;1*far.ini", "cluster.gpus_per_server=1",
      "workload.kind=trace", trace, "workload.duration_s=0", "balancing.policy=round_robin", NULL);
  for (guint i = 0; i < result->rows->len; i++) {
    const struct request_row *row = &g_array_index(result->rows, struct request_row, i);
    int64_t hop = i % 2 ? 70000 : 10000;
    cr_expect_eq(row->dispatch_ns - row->arrival_ns, 10000, "%ld", row->dispatch_ns - row->arrival_ns);
    cr_expect_eq(row->start_ns - row->dispatch_ns, hop, "%ld", row->start_ns - row->dispatch_ns);
    cr_expect_eq(row->end_ns - row->start_ns, LAB_A_NS + hop + 10000, "%ld", row->end_ns - row->start_ns);
  }
}
