/* Experiment files: schema, precedence, pools, events, malformed input, --print-config, and the files that
 * ship. */
#include <criterion/criterion.h>
#include <string.h>

#include "experiment_text.h"

Test(experiment, defaults_are_the_documented_ones)
{
  g_autoptr(Experiment) e = experiment_good("", "", NULL);
  cr_expect_str_eq(e->name, "case");
  cr_expect_eq(e->seed, 1);
  cr_expect_eq(g_strv_length(e->systems), 5);
  cr_expect(e->warm);
  cr_expect_eq(e->warmup_ns, 0);
  cr_expect_eq(e->hardware_count, 1);
  cr_expect_str_eq(e->hardware[0].name, "p3dn");
  cr_expect_str_eq(e->memory_hardware.name, "p3dn");
  cr_expect_eq(e->heartbeat_ns, 100 * NS_PER_MS);
  cr_expect_eq(e->heartbeat_misses, 3);
  cr_expect_eq(e->report_ns, 10 * NS_PER_MS);
  cr_expect_eq(e->staging_bytes, -1);
  cr_expect_eq(e->ssd_copies, 1);
  cr_expect_eq(e->zipf, 0.9);
  cr_expect_eq(e->duration_ns, 60 * NS_PER_S);
  cr_expect_eq(e->shift_period_ns, NS_PER_S);
  cr_expect_eq(e->outstanding, 0);
  cr_expect_eq(e->slo_multiple, 5);
  cr_expect_eq(e->slo_ns, 0);
  cr_expect_eq(e->replicas, 1);
  cr_expect_eq(e->order, ORDER_PARALLEL);
  cr_expect_eq(e->requests_sample, 1);
  cr_expect(e->usage);
  cr_expect_not(e->decisions);
  cr_expect_null(e->balancer);
  cr_expect_not(e->cache_set || e->grouping_set || e->sharding_set || e->yield_set);
  cr_expect(g_str_has_suffix(e->profile_dir[0], "experiments/profiles/v100"));
}

/* Every value below differs from its default. */
Test(experiment, experiment_and_output_values_reach_their_fields)
{
  g_autoptr(Experiment) e =
      experiment_good("duration_s = 30\n[experiment]\nname = x\nseed = 18446744073709551615\nsystems = mps; "
                      "ray\nwarmup_s = 2\n"
                      "initial = cold\n[slo]\nabsolute_ms = 100\n"
                      "[output]\nrequests = sample:10\ndecisions = all\nusage = none\ntimeline = t.json\n"
                      "timeline_from_s = 1\ntimeline_to_s = 2\n",
                      "", NULL);
  cr_expect_str_eq(e->name, "x");
  cr_expect_eq(e->seed, G_MAXUINT64);
  cr_expect_str_eq(e->systems[0], "mps");
  cr_expect_str_eq(e->systems[1], "ray");
  cr_expect_eq(e->warmup_ns, 2 * NS_PER_S);
  cr_expect_not(e->warm);
  cr_expect_eq(e->slo_ns, 100 * NS_PER_MS);
  cr_expect_eq(e->slo_multiple, 0);
  cr_expect_str_eq(e->requests, "sample");
  cr_expect_eq(e->requests_sample, 10);
  cr_expect(e->decisions);
  cr_expect_not(e->usage);
  cr_expect_str_eq(e->timeline, "t.json");
  cr_expect_eq(e->timeline_to_ns, 2 * NS_PER_S);
}

Test(experiment, cluster_values_reach_their_fields)
{
  g_autoptr(Experiment) e = experiment_good(
      "[cluster]\nhardware = h200\nmemory_hardware = c6in\ngpu_servers = 2\ngpus_per_server = 4\n"
      "memory_servers = 3\nhost_cache_gb = 4.096\nstaging_gb = 0.5\ngpu_model_gb = 20\ngpu_models_max = 2\n"
      "heartbeat_ms = 50\nheartbeat_misses = 5\nreport_ms = 20\nssd_copies = 2\n",
      "", NULL);
  cr_expect_str_eq(e->memory_hardware.name, "c6in");
  cr_expect_eq(e->gpus_per_server, 4);
  cr_expect_eq(e->memory_servers, 3);
  cr_expect_eq(e->host_cache_bytes, 4096000000ull);
  cr_expect_eq(e->staging_bytes, 500000000);
  cr_expect_eq(e->gpu_model_bytes, 20000000000ull);
  cr_expect_eq(e->gpu_models_max, 2);
  cr_expect_eq(e->heartbeat_ns, 50 * NS_PER_MS);
  cr_expect_eq(e->heartbeat_misses, 5);
  cr_expect_eq(e->report_ns, 20 * NS_PER_MS);
  cr_expect_eq(e->ssd_copies, 2);
}

Test(experiment, workload_values_reach_their_fields)
{
  g_autoptr(Experiment) e = experiment_good(
      "speedup = 2\nload = 0.5\nmap = hash\nlimit = 7\nservice = trace\nzipf = 1.1\nselect = loop\n"
      "shift_period_s = 0.5\nactive = 8:2;4:8\noutstanding = 9\nduration_s = 30\ncv = 3\ntimeout_s = 1.5\n"
      "max_queue = 12\n",
      "", NULL);
  cr_expect_eq(e->speedup, 2);
  cr_expect_eq(e->load, 0.5);
  cr_expect_eq(e->map, MAP_HASH);
  cr_expect_eq(e->limit, 7);
  cr_expect(e->service_from_trace);
  cr_expect_eq(e->zipf, 1.1);
  cr_expect_eq(e->select, SELECT_LOOP);
  cr_expect_eq(e->shift_period_ns, NS_PER_S / 2);
  cr_expect_eq(e->active_phases, 2);
  cr_expect_eq(e->active[1].duration_ns, 4 * NS_PER_S);
  cr_expect_eq(e->active[1].slots, 8);
  cr_expect_eq(e->outstanding, 9);
  cr_expect_eq(e->duration_ns, 30 * NS_PER_S);
  cr_expect_eq(e->cv, 3);
  cr_expect_eq(e->rate_rps, 10);
  cr_expect_eq(e->timeout_ns, NS_PER_S * 3 / 2);
  cr_expect_eq(e->max_queue, 12);
}

Test(experiment, values_of_policies_and_training_reach_their_fields)
{
  g_autoptr(Experiment) e = experiment_good(
      "[cluster]\nmemory_servers = 3\n[balancing]\npolicy = round_robin\n[cache]\npolicy = lru\n"
      "[pipeline]\ngrouping = optimal\nsharding = hybrid\norder = sequential\nwindow_mb = 64\nreplicas = 2\n"
      "path = gpudirect\n[training]\nmodel = bert_base\nbatch_ms = 106\nstate_gb = 0.7\nyield = step\n",
      "", NULL);
  cr_expect_str_eq(e->balancer, "round_robin");
  cr_expect(e->cache_set);
  cr_expect_eq(e->cache, CACHE_LRU);
  cr_expect(e->grouping_set);
  cr_expect_eq(e->grouping.kind, GROUPING_OPTIMAL);
  cr_expect(e->sharding_set);
  cr_expect_eq(e->sharding, SHARDING_HYBRID);
  cr_expect_eq(e->order, ORDER_SEQUENTIAL);
  cr_expect_eq(e->window_bytes, 64000000);
  cr_expect_eq(e->replicas, 2);
  cr_expect(e->gpudirect);
  cr_expect_str_eq(e->train_model, "bert_base");
  cr_expect_eq(e->train_step_ns, 106 * NS_PER_MS);
  cr_expect_eq(e->train_state_bytes, 700000000);
  cr_expect(e->yield_set);
  cr_expect_eq(e->yield, YIELD_STEP);
}

Test(experiment, set_wins_over_system_wins_over_file)
{
  static const char more[] =
      "zipf = 0.1\n[cluster]\nnic_gbit_s = 10\ngpu_models_max = 5\n"
      "[system mps]\nzipf = 0.2\ncluster.nic_gbit_s = 20\nmps_process_start_s = 3\nmodels.gpt2 = 2\n";
  static const char *const sets[] = {"workload.zipf=0.3", "seed=9", NULL};
  g_autoptr(Experiment) general = experiment_good(more, "", NULL);
  g_autoptr(Experiment) mps = experiment_good(more, "mps", NULL);
  g_autoptr(Experiment) ray = experiment_good(more, "ray", NULL);
  g_autoptr(Experiment) set = experiment_good(more, "mps", sets);
  cr_expect_eq(general->zipf, 0.1);
  cr_expect_eq(general->models, 1);
  cr_expect_eq(mps->zipf, 0.2);
  cr_expect_eq(mps->hardware[0].nic_bytes_s, 2.5e9);
  cr_expect_eq(mps->hardware[0].mps_process_start_ns, 3e9);
  cr_expect_eq(mps->gpu_models_max, 5);
  cr_expect_eq(mps->models, 2);
  cr_expect_str_eq(mps->system, "mps");
  cr_expect_eq(ray->zipf, 0.1);
  cr_expect_eq(ray->hardware[0].nic_bytes_s, 1.25e9);
  cr_expect_eq(set->zipf, 0.3);
  cr_expect_eq(set->seed, 9);
  cr_expect_str_eq(set->overrides, "workload.zipf=0.3\nseed=9");
}

Test(experiment, pools_share_kinds_of_hardware)
{
  g_autoptr(Experiment) e = experiment_good(
      "[cluster]\nhardware = g6\nmemory_hardware = c6in\ngpu_servers = 2*h200; 4*g6;1*h200;3\n"
      "nic_gbit_s = 5\nmemory_nic_gbit_s = 6\nhost_memory_gb = 7\n",
      "", NULL);
  static const struct server_pool pools[] = {{2, 0}, {4, 1}, {1, 0}, {3, 1}};
  cr_assert_eq(e->pools, 4);
  for (int i = 0; i < 4; i++) {
    cr_expect_eq(e->pool[i].count, pools[i].count);
    cr_expect_eq(e->pool[i].hw, pools[i].hw);
  }
  cr_assert_eq(e->hardware_count, 2);
  cr_expect_str_eq(e->hardware[0].name, "h200");
  cr_expect_str_eq(e->hardware[1].name, "g6");
  cr_expect(g_str_has_suffix(e->profile_dir[1], "experiments/profiles/l4"));
  for (int i = 0; i < 2; i++) {
    cr_expect_eq(e->hardware[i].nic_bytes_s, 6.25e8);
    cr_expect_eq(e->hardware[i].host_memory_bytes, 7000000000ull);
  }
  cr_expect_eq(e->memory_hardware.memory_nic_bytes_s, 7.5e8);
  cr_expect_eq(e->memory_hardware.nic_bytes_s, 2.5e10, "a GPU server's link was set on a memory server");
  cr_expect_eq(e->memory_hardware.host_memory_bytes, 274900000000ull);
}

Test(experiment, events_are_sorted_by_time)
{
  g_autoptr(Experiment) e =
      experiment_good("[cluster]\ngpu_servers = 2\nmemory_servers = 3\n[events]\n"
                      "late = at 45 set cluster.nic_gbit_s 50\nlose = at 30 fail memory_server 2\n"
                      "more = at 1.5  add  gpu_server 2 of g6\nsame = at 1.5 add memory_server 1\n"
                      "gone = at 30 remove gpu_server 3\n",
                      "", NULL);
  cr_assert_eq(e->events, 5);
  static const char *const names[] = {"more", "same", "lose", "gone", "late"};
  for (int i = 0; i < 5; i++)
    cr_expect_str_eq(e->event[i].name, names[i]);
  cr_expect_eq(e->event[0].kind, EVENT_ADD);
  cr_expect_eq(e->event[0].at_ns, NS_PER_S * 3 / 2);
  cr_expect_eq(e->event[0].number, 2);
  cr_expect_eq(e->hardware_count, 2);
  cr_expect_str_eq(e->hardware[e->event[0].hw].name, "g6");
  cr_expect_eq(e->event[2].member, MEMBER_MEMORY_SERVER);
  cr_expect_eq(e->event[2].kind, EVENT_FAIL);
  cr_expect_eq(e->event[3].member, MEMBER_GPU_SERVER);
  cr_expect_eq(e->event[3].number, 3, "a server that joined may leave");
  cr_expect_str_eq(e->event[4].key, "cluster.nic_gbit_s");
  cr_expect_eq(e->event[4].value, 50);
}

Test(experiment, closed_loop_has_a_client)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(Experiment) e =
      experiment_of_text("[models]\nresnet152 = 1\n[workload]\nkind = closed\n", "", NULL, &error);
  cr_assert_not_null(e, "%s", error ? error->message : "");
  cr_expect_eq(e->outstanding, 1);
}

/* Values that differ from the defaults, where 17 is none. */
static const char *other_value(const struct setting *row)
{
  static const struct {
    const char *section, *key, *value;
  } values[] = {{"experiment", "name", "other"},
                {"experiment", "systems", "distmind;ray"},
                {"experiment", "initial", "cold"},
                {"cluster", "hardware", "g6"},
                {"cluster", "memory_hardware", "c6in"},
                {"cluster", "gpu_servers", "3"},
                {"models", "profile_dir", DM_SOURCE_DIR "/experiments/profiles/l4"},
                {"workload", "kind", "gamma"},
                {"workload", "format", "native"},
                {"workload", "trace", DM_SOURCE_DIR "/Makefile"},
                {"workload", "map", "name"},
                {"workload", "service", "trace"},
                {"workload", "select", "loop"},
                {"workload", "active", "2:2"},
                {"balancing", "policy", "least_loaded"},
                {"cache", "policy", "lru"},
                {"pipeline", "grouping", "per-app"},
                {"pipeline", "sharding", "hybrid"},
                {"pipeline", "order", "sequential"},
                {"pipeline", "path", "gpudirect"},
                {"training", "model", "bert_base"},
                {"training", "yield", "step"},
                {"training", "format", "muri"},
                {"training", "trace", DM_SOURCE_DIR "/Makefile"},
                {"output", "requests", "none"},
                {"output", "decisions", "all"},
                {"output", "usage", "none"},
                {"output", "timeline", "t.json"}};
  for (gsize i = 0; i < G_N_ELEMENTS(values); i++)
    if (g_str_equal(values[i].section, row->section) && g_str_equal(values[i].key, row->key))
      return values[i].value;
  return "17";
}

/* No key is read and dropped, and each has a field of its own. */
Test(experiment, every_key_changes_the_experiment)
{
  static const char more[] = "duration_s = 50\n[cluster]\nmemory_servers = 20\n[training]\nbatch_ms = 5\n";
  g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr(Experiment) plain = experiment_good(more, "distmind", NULL);
  g_hash_table_add(seen, experiment_describe(plain));
  for (const struct setting *row = experiment_settings; row->key; row++) {
    g_autofree char *set = g_strdup_printf("%s.%s=%s", row->section, row->key, other_value(row));
    const char *const sets[] = {set, NULL};
    g_autoptr(Experiment) changed = experiment_good(more, "distmind", sets);
    cr_expect(g_hash_table_add(seen, experiment_describe(changed)), "%s changed nothing", set);
  }
}

Test(experiment, shifting_demand_is_the_reference_setting)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(Experiment) e =
      experiment_load(DM_SOURCE_DIR "/experiments/shifting-demand.ini", "distmind", NULL, &error);
  cr_assert_not_null(e, "%s", error ? error->message : "");
  cr_expect_eq(e->model[0].variants, 128);
  cr_expect_str_eq(e->model[0].profile, "resnet152");
  cr_expect_eq(e->gpu_models_max, 1);
  cr_expect_eq(e->pool[0].count, 4);
  cr_expect_eq(e->gpus_per_server, 8);
  cr_expect_eq(e->memory_servers, 4);
  cr_expect_eq(e->host_cache_bytes, 4096000000ull);
  cr_expect_eq(e->warmup_ns, 30 * NS_PER_S);
  cr_expect_str_eq(e->memory_hardware.name, "c5n");
}
