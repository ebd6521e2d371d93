/* `model show`: every figure of its table and its JSON against the formulas worked by hand, and what each
 * option changes. (tests/e2e/test_model.c holds the shipped profiles and bad input.) */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#include "fixture.h"
#include "harness/command.h"

typedef char Folder; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Folder, fixture_remove)

/* Two layers, 1 and 2 MB, 1 and 2 ms. GPU servers take 1 byte a ns from the network and 2 from PCIe; memory
 * servers give half a byte a ns (plain) or 10 (fast). */
static const char profile_text[] = "# warm_latency_ms: 3\nlayer,kind,param_bytes,compute_us\n"
                                   "a,Linear,1000000,1000\nb,Linear,2000000,2000\n";
static const char hardware_text[] =
    "[hardware]\ngpu = x\nnic_gbit_s = 8\nmemory_nic_gbit_s = %d\npcie_gbyte_s = 2\nnet_stream_us = 100\n"
    "net_group_us = 10\npcie_transfer_us = 20\ngroup_sync_us = 30\nlaunch_us = 1\n";

static void write_text(const char *folder, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename(folder, name, NULL);
  cr_assert(g_file_set_contents(path, text, -1, NULL));
}

static Folder *small_world(void)
{
  Folder *folder = fixture_folder();
  g_autofree char *plain = g_strdup_printf(hardware_text, 4), *fast = g_strdup_printf(hardware_text, 80);
  write_text(folder, "two.csv", profile_text);
  write_text(folder, "plain.ini", plain);
  write_text(folder, "fast.ini", fast);
  return folder;
}

/* What `model show` with these words prints, run in the folder by a process of its own; it must succeed. */
static char *shown(const char *folder, const char *words)
{
  g_autofree char *line = g_strdup_printf("distmind-sim model show %s", words);
  g_autofree char *out = g_build_filename(folder, "out", NULL), *err = g_build_filename(folder, "err", NULL);
  static const struct command *const own[] = {NULL};
  pid_t child = fork();
  if (child == 0) {
    g_auto(GStrv) argv = g_strsplit(line, " ", -1);
    if (!freopen(out, "w", stdout) || !freopen(err, "w", stderr) || chdir(folder) != 0)
      _exit(99);
    int status = command_main((int)g_strv_length(argv), argv, own);
    fflush(NULL);
    _exit(status);
  }
  int status;
  waitpid(child, &status, 0);
  g_autofree char *complaint = fixture_read(err);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %s", line, complaint);
  cr_assert_str_eq(complaint, "");
  return fixture_read(out);
}

static yajl_val member(yajl_val object, const char *key)
{
  yajl_val value = yajl_tree_get(object, (const char *[]){key, NULL}, yajl_t_any);
  cr_assert_not_null(value, "no \"%s\"", key);
  return value;
}

static void expect_ms(yajl_val object, const char *key, double ms, const char *what)
{
  double found = YAJL_GET_DOUBLE(member(object, key));
  cr_assert_float_eq(found, ms, 1e-9, "%s: %s is %.9f, expected %.9f", what, key, found, ms);
}

/* A source's figures for groups a and b alone, in ms. */
struct figures_by_hand {
  const char *source;
  double net[2], pcie[2], compute[2], bound;
};

static const struct figures_by_hand host = {"host", {0, 0}, {0.52, 1.54}, {1.551, 3.582}, 3.062};
/* At half a byte a ns: net 0.1 + 0.01 + 2, then 0.01 + 4. */
static const struct figures_by_hand slow = {"remote", {2.11, 6.12}, {2.63, 7.14}, {3.661, 9.171}, 6.12};
/* At the GPU server's one byte a ns. */
static const struct figures_by_hand full = {"remote", {1.11, 3.12}, {1.63, 4.14}, {2.661, 6.171}, 3.12};

/* Into GPU memory: full's network, and no PCIe after it: 1.11 + 1.031, then 3.12 + 2.031. */
static const struct figures_by_hand direct = {"remote", {1.11, 3.12}, {NAN, NAN}, {2.141, 5.151}, 3.12};

static void expect_source(yajl_val source, const struct figures_by_hand *hand, const char *what)
{
  cr_assert_str_eq(YAJL_GET_STRING(member(source, "source")), hand->source, "%s", what);
  cr_assert_str_eq(YAJL_GET_STRING(member(source, "path")), isnan(hand->pcie[0]) ? "gpudirect" : "host", "%s",
                   what);
  expect_ms(source, "latency_ms", hand->compute[1], what);
  expect_ms(source, "bound_ms", hand->bound, what);
  yajl_val groups = member(source, "groups");
  cr_assert(YAJL_IS_ARRAY(groups) && YAJL_GET_ARRAY(groups)->len == 2);
  for (int j = 0; j < 2; j++) {
    yajl_val group = YAJL_GET_ARRAY(groups)->values[j];
    cr_assert_eq(YAJL_GET_INTEGER(member(group, "layers")), 1);
    cr_assert_eq(YAJL_GET_INTEGER(member(group, "bytes")), 1000000 * (j + 1));
    expect_ms(group, "net_ms", hand->net[j], what);
    if (isnan(hand->pcie[j]))
      cr_assert(YAJL_IS_NULL(member(group, "pcie_ms")), "%s", what);
    else
      expect_ms(group, "pcie_ms", hand->pcie[j], what);
    expect_ms(group, "compute_ms", hand->compute[j], what);
  }
}

Test(command_model, json_is_the_formulas_by_hand)
{
  static const struct {
    const char *options;
    const struct figures_by_hand *sources[2];
  } cases[] = {
      {"", {&host, &full}}, /* 4 memory servers */
      {" --memory-servers 1", {&host, &slow}},
      {" --memory-servers 2 --source remote", {&full}},
      {" --memory-servers 1 --memory-hardware fast.ini --source remote", {&full}},
      {" --memory-servers 1 --source host", {&host}},
      {" --path gpudirect", {&host, &direct}},
  };
  g_autoptr(Folder) folder = small_world();
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    const char *what = cases[i].options;
    g_autofree char *words =
        g_strconcat("two.csv --hardware plain.ini --grouping per-layer --json", what, NULL);
    g_autofree char *text = shown(folder, words);
    yajl_val root = yajl_tree_parse(text, NULL, 0);
    cr_assert_not_null(root, "%s", text);
    cr_assert_str_eq(YAJL_GET_STRING(member(root, "model")), "two");
    cr_assert_str_eq(YAJL_GET_STRING(member(root, "hardware")), "plain");
    cr_assert_str_eq(YAJL_GET_STRING(member(root, "grouping")), "per-layer");
    cr_assert_eq(YAJL_GET_INTEGER(member(root, "param_bytes")), 3000000);
    expect_ms(root, "resident_ms", 3.002, what);
    yajl_val sources = member(root, "sources");
    cr_assert_eq(YAJL_GET_ARRAY(sources)->len, cases[i].sources[1] ? 2 : 1);
    for (size_t s = 0; s < YAJL_GET_ARRAY(sources)->len; s++)
      expect_source(YAJL_GET_ARRAY(sources)->values[s], cases[i].sources[s], what);
    yajl_tree_free(root);
  }
}

/* Without --grouping the cut is the best of the two that two layers allow: from the pool, both apart; in one
 * piece it would take 3.11 + 1.52 + 3.032 ms. */
Test(command_model, optimal_is_the_default)
{
  g_autoptr(Folder) folder = small_world();
  g_autofree char *best = shown(folder, "two.csv --hardware plain.ini --source remote");
  g_autofree char *whole = shown(folder, "two.csv --hardware plain.ini --source remote --grouping per-app");
  cr_assert(strstr(best, "2 groups, predicted latency 6.171 ms, lower bound (longest stage) 3.120 ms"), "%s",
            best);
  cr_assert(strstr(whole, "1 group, predicted latency 7.662 ms"), "%s", whole);
}

static void expect_row(const char *row, const char *const *cells)
{
  g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
  g_auto(GStrv) words = g_strsplit(row, " ", -1);
  for (char **word = words; *word; word++) {
    if (**word)
      g_ptr_array_add(found, g_strdup(*word));
  }
  g_ptr_array_add(found, NULL);
  g_autofree char *got = g_strjoinv("|", (char **)found->pdata), *wanted = g_strjoinv("|", (char **)cells);
  cr_assert_str_eq(got, wanted);
}

Test(command_model, table_is_aligned_and_whole)
{
  g_autoptr(Folder) folder = small_world();
  g_autofree char *text =
      shown(folder, "two.csv --hardware plain.ini --memory-servers 1 --source remote --grouping per-layer");
  const char *start = strstr(text, " group ");
  cr_assert_not_null(start, "%s", text);
  g_auto(GStrv) lines = g_strsplit(start, "\n", 4);
  cr_assert_eq(g_strv_length(lines), 4, "%s", text);
  expect_row(lines[1], (const char *[]){"0", "1", "1000000", "2.110", "2.630", "3.661", NULL});
  expect_row(lines[2], (const char *[]){"1", "1", "2000000", "6.120", "7.140", "9.171", NULL});
  cr_assert_eq(strlen(lines[1]), strlen(lines[0]), "%s", text);
  cr_assert_eq(strlen(lines[2]), strlen(lines[0]), "%s", text);
}

/* Figures that rest on an estimate say so, and only those. */
Test(command_model, estimated_timing_is_told)
{
  static const struct {
    const char *words;
    gboolean estimated;
  } cases[] = {{"densenet201 --hardware p3dn", TRUE},
               {"resnet152 --hardware p3dn", FALSE},
               {"densenet201 --hardware h200", FALSE}};
  g_autoptr(Folder) folder = fixture_folder();
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autofree char *json_words = g_strconcat(cases[i].words, " --json", NULL);
    g_autofree char *table = shown(folder, cases[i].words), *json = shown(folder, json_words);
    cr_assert_eq(strstr(table, "timing estimated") != NULL, cases[i].estimated, "%s", table);
    cr_assert_eq(strstr(json, "\"estimated\"") != NULL, cases[i].estimated, "%s", json);
  }
}
