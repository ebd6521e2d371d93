/* Experiment files: schema, precedence, pools, events, malformed input, --print-config, and the files that
 * ship. */
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

#include "core/error.h"
#include "harness/experiment_parts.h"
#include "harness/hardware_file.h"

/* Five lines, so that what a case adds begins in line 6. */
static const char base[] = "[models]\nresnet152 = 4\n[workload]\nkind = poisson\nrate_rps = 10\n";

static struct experiment *parse(const char *text, const char *system, const char *const *sets, GError **error)
{
  g_autoptr(Keyfile) keyfile = keyfile_parse("case.ini", text, strlen(text), error);
  return keyfile ? experiment_parse(keyfile, system, (char **)sets, error) : NULL;
}

/* base and more, which must be right. */
static struct experiment *good(const char *more, const char *system, const char *const *sets)
{
  g_autofree char *text = g_strconcat(base, more, NULL);
  g_autoptr(GError) error = NULL;
  struct experiment *experiment = parse(text, system, sets, &error);
  cr_assert_not_null(experiment, "%s: %s", more, error ? error->message : "");
  return experiment;
}

Test(experiment, defaults_are_the_documented_ones)
{
  g_autoptr(Experiment) e = good("", "", NULL);
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

Test(experiment, every_value_reaches_its_field)
{
  g_autoptr(Experiment) e = good(
      "speedup = 2\nload = 0.5\nmap = hash\nlimit = 7\nservice = trace\nzipf = 1.1\nselect = loop\n"
      "shift_period_s = 0.5\nactive = 8:2;4:8\noutstanding = 9\nduration_s = 30\ncv = 3\ntimeout_s = "
      "1.5\nmax_queue = 12\n"
      "[experiment]\nname = x\nseed = 18446744073709551615\nsystems = mps; ray\nwarmup_s = 2\ninitial = "
      "cold\n"
      "[cluster]\nhardware = h200\nmemory_hardware = c6in\ngpu_servers = 2\ngpus_per_server = "
      "4\nmemory_servers = 3\n"
      "host_cache_gb = 4.096\nstaging_gb = 0.5\ngpu_model_gb = 20\ngpu_models_max = 2\nheartbeat_ms = 50\n"
      "heartbeat_misses = 5\nreport_ms = 20\nssd_copies = 2\n"
      "[balancing]\npolicy = round_robin\n[cache]\npolicy = lru\n"
      "[pipeline]\ngrouping = optimal\nsharding = hybrid\norder = sequential\nwindow_mb = 64\nreplicas = "
      "2\npath = gpudirect\n"
      "[training]\nmodel = bert_base\nbatch = 32\nbatch_ms = 106\nstate_gb = 0.7\nyield = step\n"
      "[slo]\nabsolute_ms = 100\n"
      "[output]\nrequests = sample:10\ndecisions = all\nusage = none\ntimeline = t.json\ntimeline_from_s = "
      "1\n"
      "timeline_to_s = 2\n",
      "", NULL);
  cr_expect_str_eq(e->name, "x");
  cr_expect_eq(e->seed, G_MAXUINT64);
  cr_expect_str_eq(e->systems[0], "mps");
  cr_expect_str_eq(e->systems[1], "ray");
  cr_expect_eq(e->warmup_ns, 2 * NS_PER_S);
  cr_expect_not(e->warm);
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
  cr_expect_eq(e->train_batch, 32);
  cr_expect_eq(e->train_step_ns, 106 * NS_PER_MS);
  cr_expect_eq(e->train_state_bytes, 700000000);
  cr_expect(e->yield_set);
  cr_expect_eq(e->yield, YIELD_STEP);
  cr_expect_eq(e->slo_ns, 100 * NS_PER_MS);
  cr_expect_eq(e->slo_multiple, 0);
  cr_expect_str_eq(e->requests, "sample");
  cr_expect_eq(e->requests_sample, 10);
  cr_expect(e->decisions);
  cr_expect_not(e->usage);
  cr_expect_str_eq(e->timeline, "t.json");
  cr_expect_eq(e->timeline_to_ns, 2 * NS_PER_S);
}

Test(experiment, set_wins_over_system_wins_over_file)
{
  static const char more[] =
      "zipf = 0.1\n[cluster]\nnic_gbit_s = 10\ngpu_models_max = 5\n"
      "[system mps]\nzipf = 0.2\ncluster.nic_gbit_s = 20\nmps_process_start_s = 3\nmodels.gpt2 = 2\n";
  static const char *const sets[] = {"workload.zipf=0.3", "seed=9", NULL};
  g_autoptr(Experiment) general = good(more, "", NULL);
  g_autoptr(Experiment) mps = good(more, "mps", NULL);
  g_autoptr(Experiment) ray = good(more, "ray", NULL);
  g_autoptr(Experiment) set = good(more, "mps", sets);
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
  g_autoptr(Experiment) e =
      good("[cluster]\nhardware = g6\nmemory_hardware = c6in\ngpu_servers = 2*h200; 4*g6;1*h200;3\n"
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
  g_autoptr(Experiment) e = good("[cluster]\ngpu_servers = 2\nmemory_servers = 3\n[events]\n"
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

/* What is added to base, and the start of the message. */
static const struct {
  const char *more, *message;
} malformed[] = {
    {"[experimnt]\n", "case.ini:6: unknown section [experimnt]; nearest is [experiment]"},
    {"[hardware]\n", "case.ini:6: unknown section [hardware]"},
    {"rate_rsp = 1\n", "case.ini:6: unknown key \"rate_rsp\" in [workload]; nearest is \"rate_rps\""},
    {"seed = 1\n", "case.ini:6: unknown key \"seed\" in [workload]; \"seed\" is a key of [experiment]"},
    {"rate_rps = 1\n", "case.ini:6: key \"rate_rps\" of [workload] was given before, in line 5"},
    {"[models]\n", "case.ini:6: section [models] was given before, in line 1"},
    {"[cluster] # ok\ngpu_server = 2\n",
     "case.ini:7: unknown key \"gpu_server\" in [cluster]; nearest is \"gpu_servers\""},
    {"[cluster]\nnic_gbits = 2\n",
     "case.ini:7: unknown key \"nic_gbits\" in [cluster]; nearest is \"nic_gbit_s\""},
    {"[cluster] x\n", "case.ini:6: expected nothing after \"]\""},
    {"zipf = much\n", "case.ini:6: workload.zipf: expected a number from 0 to 100, found \"much\""},
    {"zipf = -1\n", "case.ini:6: workload.zipf: expected a number"},
    {"zipf = nan\n", "case.ini:6: workload.zipf: expected a number"},
    {"duration_s = inf\n", "case.ini:6: workload.duration_s: expected a number"},
    {"duration_s = 1e10\n", "case.ini:6: workload.duration_s: expected a number from 0 to 1e+09"},
    {"duration_s = 60 s\n", "case.ini:6: workload.duration_s: expected a number"},
    {"duration_s = 0\n", "case.ini:6: workload.duration_s: expected above 0"},
    {"max_queue = 4294967296\n", "case.ini:6: workload.max_queue: expected a whole number"},
    {"limit = 18446744073709551616\n", "case.ini:6: workload.limit: expected a whole number"},
    {"select = zip\n",
     "case.ini:6: workload.select: expected zipf | loop, found \"zip\"; nearest is \"zipf\""},
    {"format = nativ\n",
     "case.ini:6: workload.format: expected auto or a layout, found \"nativ\"; nearest is \"native\""},
    {"active = 8\n", "case.ini:6: workload.active: expected all or SECONDS:SLOTS"},
    {"active = 8:8;\n", "case.ini:6: workload.active: expected all or SECONDS:SLOTS"},
    {"active = 0:8\n", "case.ini:6: workload.active: expected all or SECONDS:SLOTS"},
    {"active = 8:-1\n", "case.ini:6: workload.active: expected all or SECONDS:SLOTS"},
    {"outstanding = 0\n", "case.ini:6: workload.outstanding: expected \"auto\" or a whole number from 1"},
    {"[experiment]\nsystems = distmind;pipswitch\n",
     "case.ini:7: experiment.systems: expected ideal | ideal-shared | distmind | pipeswitch | mps | ray | "
     "serverlessllm, found "
     "\"pipswitch\"; nearest is \"pipeswitch\""},
    {"[experiment]\nsystems = mps;mps\n", "case.ini:7: experiment.systems: expected each system once"},
    {"[experiment]\nsystems = mps;\n", "case.ini:7: experiment.systems: expected ideal"},
    {"[experiment]\nwarmup_s = 60\n", "case.ini:7: experiment.warmup_s: expected below workload.duration_s"},
    {"[experiment]\nseed = -1\n", "case.ini:7: experiment.seed: expected a whole number"},
    {"[experiment]\ninitial = hot\n", "case.ini:7: experiment.initial: expected cold | warm, found \"hot\""},
    {"[cluster]\nhardware = p4d\n", "case.ini:7: cannot find hardware \"p4d\""},
    {"[cluster]\nhardware = c5n\n", "case.ini:7: expected GPU servers, found hardware \"c5n\""},
    {"[cluster]\nmemory_hardware = x\n", "case.ini:7: cannot find hardware \"x\""},
    {"[cluster]\ngpu_servers = 0\n", "case.ini:7: cluster.gpu_servers: expected COUNT or COUNT*HARDWARE"},
    {"[cluster]\ngpu_servers = 2*\n", "case.ini:7: cluster.gpu_servers: expected COUNT or COUNT*HARDWARE"},
    {"[cluster]\ngpu_servers = 2*g6;;\n",
     "case.ini:7: cluster.gpu_servers: expected COUNT or COUNT*HARDWARE"},
    {"[cluster]\ngpu_servers = 2*g7\n", "case.ini:7: cannot find hardware \"g7\""},
    {"[cluster]\ngpu_servers = 4096;1\n",
     "case.ini:7: cluster.gpu_servers: expected at most 4096 servers, found 4097"},
    {"[cluster]\ngpu_servers = 1;1;1;1;1;1;1;1;1\n",
     "case.ini:7: cluster.gpu_servers: expected at most 8 pools"},
    {"[cluster]\nnic_gbit_s = x\n", "case.ini:7: cluster.nic_gbit_s: expected a number"},
    {"[cluster]\nmps_speedup = 0\n", "case.ini:7: cluster.mps_speedup: expected a number"},
    {"[cluster]\nhost_cache_gb = 900\n",
     "case.ini:7: cluster.host_cache_gb: expected at most host_memory_gb = 824.6"},
    {"[cluster]\ngpu_model_gb = 33\n",
     "case.ini:7: cluster.gpu_model_gb: expected at most gpu_memory_gb = 32"},
    {"[cluster]\nstaging_gb = some\n", "case.ini:7: cluster.staging_gb: expected \"largest\" or a number"},
    {"[cluster]\ngpu = nosuch\n", "case.ini: cannot find experiments/profiles/nosuch"},
    {"[cluster]\nmemory_servers = 0\n",
     "case.ini:7: system \"distmind\": expected cluster.memory_servers above 0"},
    {"[pipeline]\nreplicas = 2\n",
     "case.ini:7: pipeline.replicas: expected at most cluster.memory_servers = 1, found 2"},
    {"[pipeline]\npath = gpu\n", "case.ini:7: pipeline.path: expected host | gpudirect"},
    {"[pipeline]\ngrouping = huge\n", "case.ini:7: pipeline.grouping: "},
    {"[pipeline]\nsharding = diagonal\n", "case.ini:7: pipeline.sharding: "},
    {"[balancing]\npolicy = least_load\n", "case.ini:7: balancing.policy: expected default | cache_aware"},
    {"[cache]\npolicy = fifo\n",
     "case.ini:7: cache.policy: expected default | weighted | lru, found \"fifo\""},
    {"[training]\nmodel = resnet152\n",
     "case.ini:7: [training] with a model: expected training.batch_ms above 0"},
    {"[training]\nmodel = ../x\nbatch_ms = 1\n",
     "case.ini:7: training.model: expected the name of a profile"},
    {"[training]\ntrace = nosuch.csv\nbatch_ms = 1\n",
     "case.ini:7: training.trace: cannot find \"nosuch.csv\""},
    {"[training]\nyield = never\n", "case.ini:7: training.yield: expected default | layer | step"},
    {"[slo]\nmultiple = 0\n", "case.ini:7: [slo]: expected multiple or absolute_ms above 0"},
    {"[output]\nrequests = sample:0\n", "case.ini:7: output.requests: expected a whole number from 1"},
    {"[output]\nrequests = some\n", "case.ini:7: output.requests: expected all | sample:N | none"},
    {"[output]\ntimeline_from_s = 5\ntimeline_to_s = 5\n",
     "case.ini:8: output.timeline_to_s: expected 0 or above"},
    {"[events]\na = fail gpu_server 0\n", "case.ini:7: event \"a\": expected at TIME_S fail|remove"},
    {"[events]\na = at x fail gpu_server 0\n", "case.ini:7: event \"a\": expected a number"},
    {"[events]\na = at 1 break gpu_server 0\n",
     "case.ini:7: event \"a\": expected fail | remove | add | set, found \"break\""},
    {"[events]\na = at 1 fail gpu 0\n",
     "case.ini:7: event \"a\": expected gpu_server | memory_server, found \"gpu\""},
    {"[events]\na = at 1 fail gpu_server 1\n",
     "case.ini:7: event \"a\": expected a gpu_server below 1, found 1"},
    {"[events]\na = at 1 fail gpu_server 0 now\n", "case.ini:7: event \"a\": expected at TIME_S"},
    {"[events]\na = at 1 fail gpu_server -1\n", "case.ini:7: event \"a\": expected a whole number"},
    {"[events]\na = at 1 add memory_server 1 of g6\n", "case.ini:7: event \"a\": expected at TIME_S"},
    {"[events]\na = at 1 add gpu_server 0\n", "case.ini:7: event \"a\": expected a whole number from 1"},
    {"[events]\na = at 1 add gpu_server 4096\n",
     "case.ini:7: event \"a\": expected at most 4096 servers in all"},
    {"[events]\na = at 1 add gpu_server 1 of g7\n", "case.ini:7: cannot find hardware \"g7\""},
    {"[events]\na = at 1 set cluster.gpu_servers 3\n",
     "case.ini:7: event \"a\": expected a key that may change in mid-run"},
    {"[events]\na = at 1 set cluster.nic_gbit_s -3\n", "case.ini:7: event \"a\": expected a number"},
    {"[events]\na = at 1 set cluster.nic_gbit_s 3 4\n", "case.ini:7: event \"a\": expected at TIME_S"},
    {"[events]\na = at 2 fail gpu_server 0\nb = at 1 remove gpu_server 0\n",
     "case.ini:7: event \"a\": gpu_server 0 has left before"},
    {"[system mpss]\n", "case.ini:6: unknown system \"mpss\"; nearest is \"mps\""},
    {"[system]\n", "case.ini:6: unknown section [system]"},
    {"[system mps]\nzip = 1\n", "case.ini:7: unknown key \"zip\"; nearest is \"zipf\""},
    {"[system mps]\npolicy = lru\n", "case.ini:7: key \"policy\" is in [balancing] and in [cache]"},
    {"[system mps]\nworkload.zip = 1\n",
     "case.ini:7: unknown key \"zip\" in [workload]; nearest is \"zipf\""},
    {"[system mps]\nworklod.zipf = 1\n", "case.ini:7: unknown section [worklod]; nearest is [workload]"},
    {"[system mps]\nzipf = x\n", "case.ini:7: workload.zipf: expected a number"},
    {"[system mps]\nexperiment.seed = 2\n", "case.ini:7: experiment.seed is the same for all systems"},
    {"kind = trace\n", "case.ini:6: key \"kind\" of [workload] was given before"},
};

Test(experiment, malformed_files_name_file_and_line)
{
  for (gsize i = 0; i < G_N_ELEMENTS(malformed); i++) {
    g_autofree char *text = g_strconcat(base, malformed[i].more, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(Experiment) experiment = parse(text, "", NULL, &error);
    cr_assert_null(experiment, "accepted: %s", malformed[i].more);
    cr_expect(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    cr_expect(g_str_has_prefix(error->message, malformed[i].message), "%s gave: %s", malformed[i].more,
              error->message);
    cr_expect_null(strchr(error->message, '\n'), "more than one line: %s", error->message);
  }
}

Test(experiment, whole_files_that_are_wrong)
{
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", "case.ini: expected a [models] section"},
      {"[workload]\nrate_rps = 1\n", "case.ini: expected a [models] section"},
      {"[models]\nprofile_dir = experiments\n", "case.ini: expected a [models] section"},
      {"[models]\nresnet152 = 0\n", "case.ini:2: models.resnet152: expected a whole number from 1"},
      {"[models]\nprofile_dr = x\n",
       "case.ini:2: models.profile_dr: expected a whole number from 1 to 1000000, found \"x\"; nearest "
       "key is \"profile_dir\""},
      {"[models]\n.x = 1\n", "case.ini:2: expected the name of a profile"},
      {"[models]\na = 1000000\nb = 1\n", "case.ini:3: expected at most 1000000 models in all"},
      {"[models]\na = 1\nprofile_dir = /nonexistent\n[workload]\nrate_rps = 1\n",
       "case.ini:3: models.profile_dir: cannot find"},
      {"[models]\na = 1\n[workload]\nkind = poisson\n",
       "case.ini:4: kind = poisson: expected workload.rate_rps above 0"},
      {"[models]\na = 1\n[workload]\nkind = gamma\nrate_rps = 0\n",
       "case.ini:5: kind = gamma: expected workload.rate_rps above 0"},
      {"[models]\na = 1\n[workload]\nkind = trace\n",
       "case.ini:4: kind = trace: expected workload.trace = FILE"},
      {"[models]\na = 1\n[workload]\nkind = trace\ntrace = nosuch.csv\n",
       "case.ini:5: workload.trace: cannot find \"nosuch.csv\""},
      {"[models]\na = 1\n[workload]\nkind = shifting\nactive = 8:9\n",
       "case.ini:5: workload.active: expected at most 8 slots"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Experiment) experiment = parse(cases[i].text, "", NULL, &error);
    cr_assert_null(experiment, "accepted: %s", cases[i].text);
    cr_expect(g_str_has_prefix(error->message, cases[i].message), "%s gave: %s", cases[i].text,
              error->message);
  }
}

Test(experiment, malformed_sets_name_the_argument)
{
  static const struct {
    const char *set, *message;
  } cases[] = {
      {"zipf", "--set zipf: expected SECTION.KEY=VALUE, found no \"=\""},
      {"workload.zipf=", "--set workload.zipf=: expected a value after \"=\""},
      {"workload.=1", "--set workload.=1: expected a key after \"workload.\""},
      {"workload.zip=1", "--set workload.zip=1: unknown key \"zip\" in [workload]; nearest is \"zipf\""},
      {"work.zipf=1", "--set work.zipf=1: unknown section [work]"},
      {"workload.zipf=x", "--set workload.zipf=x: workload.zipf: expected a number"},
      {"workload.zipf=1#2", "--set: expected SECTION.KEY=VALUE of UTF-8 text without"},
      {"workload.zipf=\n", "--set: expected SECTION.KEY=VALUE of UTF-8 text without"},
      {"workload.zipf=\xff", "--set: expected SECTION.KEY=VALUE of UTF-8 text without"}};
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    const char *const sets[] = {cases[i].set, NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(Experiment) experiment = parse(base, "", sets, &error);
    cr_assert_null(experiment, "accepted: %s", cases[i].set);
    cr_expect(g_str_has_prefix(error->message, cases[i].message), "%s gave: %s", cases[i].set,
              error->message);
  }
}

Test(experiment, closed_loop_has_a_client)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(Experiment) e = parse("[models]\nresnet152 = 1\n[workload]\nkind = closed\n", "", NULL, &error);
  cr_assert_not_null(e, "%s", error ? error->message : "");
  cr_expect_eq(e->outstanding, 1);
}

static void describe_kind(GString *out, const struct hardware *hardware)
{
  g_autofree char *sum =
      g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)hardware, sizeof *hardware);
  g_string_append_printf(out, "%s %s\n", hardware->name, sum);
}

static void describe_lists(GString *out, const struct experiment *e)
{
  for (uint32_t i = 0; i < e->hardware_count; i++) {
    g_autofree char *folder = g_canonicalize_filename(e->profile_dir[i], NULL);
    describe_kind(out, &e->hardware[i]);
    g_string_append_printf(out, "profiles %s\n", folder);
  }
  describe_kind(out, &e->memory_hardware);
  for (uint32_t i = 0; i < e->pools; i++)
    g_string_append_printf(out, "pool %u %u\n", e->pool[i].count, e->pool[i].hw);
  for (uint32_t i = 0; i < e->models; i++)
    g_string_append_printf(out, "model %s %u\n", e->model[i].profile, e->model[i].variants);
  for (uint32_t i = 0; i < e->active_phases; i++)
    g_string_append_printf(out, "active %" G_GINT64_FORMAT " %u\n", e->active[i].duration_ns,
                           e->active[i].slots);
  for (uint32_t i = 0; i < e->events; i++) {
    const struct experiment_event *event = &e->event[i];
    g_string_append_printf(out, "event %s %" G_GINT64_FORMAT " %d %d %u %u %s %.17g\n", event->name,
                           event->at_ns, event->kind, event->member, event->number, event->hw,
                           event->key ? event->key : "-", event->value);
  }
}

/* Everything that an experiment holds but path, text and overrides, as text. */
static char *describe(const struct experiment *e)
{
  g_autoptr(GString) out = g_string_new(NULL);
#define TEXT(field)  g_string_append_printf(out, #field " %s\n", e->field ? e->field : "-");
#define WHOLE(field) g_string_append_printf(out, #field " %" G_GUINT64_FORMAT "\n", (guint64)e->field);
#define REAL(field)  g_string_append_printf(out, #field " %.17g\n", e->field);
  TEXT(name)
  TEXT(system)
  TEXT(trace_format)
  TEXT(balancer) TEXT(train_model) TEXT(train_trace_format) TEXT(requests) TEXT(timeline) WHOLE(seed)
      WHOLE(warmup_ns) WHOLE(warm) WHOLE(gpus_per_server) WHOLE(memory_servers) WHOLE(host_cache_bytes)
          WHOLE(staging_bytes) WHOLE(gpu_model_bytes) WHOLE(gpu_models_max) WHOLE(heartbeat_ns)
              WHOLE(heartbeat_misses) WHOLE(report_ns) WHOLE(ssd_copies) WHOLE(workload) WHOLE(map)
                  WHOLE(limit) WHOLE(service_from_trace) WHOLE(select) WHOLE(shift_period_ns)
                      WHOLE(outstanding) WHOLE(duration_ns) WHOLE(timeout_ns) WHOLE(max_queue)
                          WHOLE(cache_set) WHOLE(cache) WHOLE(grouping_set) WHOLE(grouping.kind)
                              WHOLE(grouping.argument) WHOLE(sharding_set) WHOLE(sharding) WHOLE(order)
                                  WHOLE(window_bytes) WHOLE(replicas) WHOLE(gpudirect) WHOLE(train_batch)
                                      WHOLE(train_step_ns) WHOLE(train_state_bytes) WHOLE(yield_set)
                                          WHOLE(yield) WHOLE(slo_ns) WHOLE(requests_sample) WHOLE(decisions)
                                              WHOLE(usage) WHOLE(timeline_from_ns) WHOLE(timeline_to_ns)
                                                  REAL(speedup) REAL(load) REAL(zipf) REAL(rate_rps) REAL(cv)
                                                      REAL(slo_multiple)
#undef TEXT
#undef WHOLE
#undef REAL
                                                          g_autofree char *systems =
                                                              g_strjoinv(";", e->systems);
  g_autofree char *trace = e->trace ? g_canonicalize_filename(e->trace, NULL) : NULL;
  g_autofree char *jobs = e->train_trace ? g_canonicalize_filename(e->train_trace, NULL) : NULL;
  g_string_append_printf(out, "systems %s\ntrace %s\njobs %s\n", systems, trace ? trace : "-",
                         jobs ? jobs : "-");
  describe_lists(out, e);
  return g_string_free(g_steal_pointer(&out), FALSE);
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
  g_autoptr(Experiment) plain = good(more, "distmind", NULL);
  g_hash_table_add(seen, describe(plain));
  for (const struct setting *row = experiment_settings; row->key; row++) {
    g_autofree char *set = g_strdup_printf("%s.%s=%s", row->section, row->key, other_value(row));
    const char *const sets[] = {set, NULL};
    g_autoptr(Experiment) changed = good(more, "distmind", sets);
    cr_expect(g_hash_table_add(seen, describe(changed)), "%s changed nothing", set);
  }
}

/* Writes text as FOLDER/NAME and returns its path. */
static char *write_file(const char *folder, const char *name, const char *text)
{
  char *path = g_build_filename(folder, name, NULL);
  cr_assert(g_file_set_contents(path, text, -1, NULL));
  return path;
}

/* What --print-config prints must load, from any folder, to what it was printed from; and print the same
 * again. */
static void round_trip(const char *path, const char *system, const char *const *sets)
{
  g_autofree char *folder = g_dir_make_tmp("printed-XXXXXX", NULL);
  g_autoptr(GError) error = NULL;
  g_autofree char *printed = experiment_print_config(path, system, (char **)sets, &error);
  cr_assert_not_null(printed, "%s: %s", path, error ? error->message : "");
  g_autofree char *copy = write_file(folder, "elsewhere.ini", printed);
  g_autoptr(Experiment) first = experiment_load(path, system, (char **)sets, NULL);
  g_autoptr(Experiment) second = experiment_load(copy, system, NULL, &error);
  cr_assert_not_null(second, "%s printed: %s", path, error ? error->message : "");
  g_autofree char *a = describe(first);
  g_autofree char *b = describe(second);
  cr_expect_str_eq(a, b, "%s", path);
  g_unlink(copy);
  g_rmdir(folder);
}

Test(experiment, printed_config_is_the_same_experiment)
{
  g_autofree char *folder = g_dir_make_tmp("experiment-XXXXXX", NULL);
  g_autofree char *kinds = g_build_filename(folder, "hardware", NULL);
  g_mkdir(kinds, 0700);
  g_autofree char *own = write_file(kinds, "own.ini", "[hardware]\ngpu = l4\nnic_gbit_s = 3\n");
  g_autofree char *trace = write_file(folder, "t.csv", "arrival_s\n0\n");
  g_autofree char *path =
      write_file(folder, "e.ini",
                 "[cluster]\nhardware = own\ngpu_servers = 2;1*hardware/own.ini;2*h200\nnic_gbit_s = 4\n"
                 "memory_hardware = own\n[models]\ngpt2 = 3\nbert_base = 2\n[workload]\nkind = trace\n"
                 "trace = t.csv\nduration_s = 0\nzipf = 0.3333333333333333\n[events]\n"
                 "b = at 0.1 add gpu_server 1 of own\na = at 0.1 set cluster.host_cache_gb 2\n"
                 "[slo]\nabsolute_ms = 30\n[system mps]\nzipf = 2\ncluster.mps_queue_max = 7\n");
  static const char *const sets[] = {"workload.cv=0.7", "cluster.launch_us=1.25", NULL};
  g_autoptr(Experiment) e = experiment_load(path, "", NULL, NULL);
  cr_assert_not_null(e);
  cr_expect_eq(e->hardware_count, 2, "one file by two names is one kind");
  cr_expect_eq(e->hardware[0].nic_bytes_s, 5e8);
  round_trip(path, "", NULL);
  round_trip(path, "mps", sets);
  static const char *const typed[] = {"workload.trace=t.csv", "cluster.hardware=hardware/own.ini", NULL};
  round_trip(path, "", typed);
  const char *const made[] = {own, trace, path};
  for (gsize i = 0; i < G_N_ELEMENTS(made); i++)
    g_unlink(made[i]);
  g_rmdir(kinds);
  g_rmdir(folder);
}

Test(experiment, printed_config_tells_sources_and_defaults)
{
  static const char *const sets[] = {"workload.zipf=0.5", "cluster.nic_gbit_s=7", NULL};
  g_autofree char *folder = g_dir_make_tmp("sources-XXXXXX", NULL);
  g_autofree char *path = write_file(folder, "e.ini", base);
  g_autofree char *text = experiment_print_config(path, "mps", (char **)sets, NULL);
  g_autofree char *rate = g_strdup_printf("rate_rps = 10   # %s:5, 1/s; ", path);
  const char *const lines[] = {rate,
                               "zipf = 0.5   # --set; ",
                               "nic_gbit_s = 7   # --set\n",
                               "seed = 1   # default; ",
                               "#   nic_gbit_s = 100   # overridden above; ",
                               "name = e   # the file's name; ",
                               "#   spine_oversubscription = 1   # "};
  for (gsize i = 0; i < G_N_ELEMENTS(lines); i++)
    cr_expect(strstr(text, lines[i]), "no line \"%s\" in:\n%s", lines[i], text);
  for (const struct setting *row = experiment_settings; row->key; row++) {
    g_autofree char *line = g_strdup_printf("\n%s = ", row->key);
    cr_expect(strstr(text, line) && strstr(text, row->help), "no line for %s.%s", row->section, row->key);
  }
  g_unlink(path);
  g_rmdir(folder);
}

/* Shipped experiments, those of folders below too; their traces may be absent, then kind and file are taken
 * away. */
static void check_shipped(const char *folder, int *found)
{
  g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name(dir))) {
    if (!g_str_has_suffix(name, ".ini"))
      continue;
    g_autofree char *path = g_build_filename(folder, name, NULL);
    static const char *const stand_in[] = {"workload.trace=" DM_SOURCE_DIR "/Makefile", NULL};
    static const char *const jobs[] = {"training.trace=" DM_SOURCE_DIR "/Makefile", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(Experiment) e = experiment_load(path, "", NULL, &error);
    const char *const *sets = e ? NULL : strstr(error->message, "training.trace") ? jobs : stand_in;
    round_trip(path, "", sets);
    round_trip(path, "distmind", sets);
    g_autofree char *text = NULL;
    g_autofree char *command = g_strdup("# build/distmind-sim run experiments/");
    cr_assert(g_file_get_contents(path, &text, NULL, NULL));
    cr_expect(g_str_has_prefix(text, command), "%s does not begin with its command", name);
    ++*found;
  }
}

Test(experiment, shipped_files_load)
{
  int found = 0;
  check_shipped(DM_SOURCE_DIR "/experiments", &found);
  check_shipped(DM_SOURCE_DIR "/experiments/scenarios", &found);
  cr_expect_geq(found, 11);
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
