/* Malformed experiment files and --set arguments: one line that names the place. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/error.h"
#include "experiment_text.h"

/* What is added to experiment_base, and the start of the message. */
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
    g_autofree char *text = g_strconcat(experiment_base, malformed[i].more, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(Experiment) experiment = experiment_of_text(text, "", NULL, &error);
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
    g_autoptr(Experiment) experiment = experiment_of_text(cases[i].text, "", NULL, &error);
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
    g_autoptr(Experiment) experiment = experiment_of_text(experiment_base, "", sets, &error);
    cr_assert_null(experiment, "accepted: %s", cases[i].set);
    cr_expect(g_str_has_prefix(error->message, cases[i].message), "%s gave: %s", cases[i].set,
              error->message);
  }
}
