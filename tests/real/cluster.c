/* Clusters of tests; see cluster.h. */
#include "cluster.h"
#include "../harness/temporary.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK    "DISTMIND_LAB"
#define POLL_US 5000

struct cluster_lab {
  char *folder, *mark, *program, *tmp;
  GPtrArray *processes; /* of struct process */
};

/* --- the folder
 * -----------------------------------------------------------------------------------------------------*/

/* 12 layers of 20 KB, 1 ms: the machine is never the bottleneck, not even under sanitizers. */
static void write_profile(const ClusterLab *lab)
{
  g_autoptr(GString) text = g_string_new("# model: tiny\n# gpu: host\n# batch: 1\n# warm_latency_ms: 1\n"
                                         "# unpickle_ms: 1\n# first_inference_ms: 1\n# tensors: 12\n"
                                         "layer,kind,param_bytes,compute_us\n");
  for (int i = 0; i < 12; i++)
    g_string_append_printf(text, "layer%d,conv,%d,83\n", i, 20000 + 4 * i);
  g_autofree char *path = lab_path(lab, "tiny.csv");
  cr_assert(g_file_set_contents(path, text->str, -1, NULL), "cannot write %s", path);
}

char *lab_path(const ClusterLab *lab, const char *name)
{
  return g_build_filename(lab->folder, name, NULL);
}

ClusterLab *lab_new(void)
{
  ClusterLab *lab = g_new0(ClusterLab, 1);
  g_autofree char *self = g_file_read_link("/proc/self/exe", NULL), *tests = g_path_get_dirname(self);
  g_autofree char *build = g_path_get_dirname(tests);
  lab->program = g_build_filename(build, "distmind-real", NULL);
  lab->folder = g_dir_make_tmp("distmind-real-XXXXXX", NULL);
  cr_assert_not_null(lab->folder, "no temporary folder");
  lab->tmp = lab_path(lab, "tmp");
  cr_assert_eq(g_mkdir(lab->tmp, 0700), 0);
  lab->mark = g_path_get_basename(lab->folder);
  lab->processes = g_ptr_array_new();
  write_profile(lab);
  return lab;
}

static const char *const defaults[] = {"experiment.name=failure",
                                       "experiment.systems=distmind",
                                       "cluster.hardware=loopback",
                                       "cluster.memory_hardware=loopback",
                                       "cluster.gpu_servers=2",
                                       "cluster.gpus_per_server=1",
                                       "cluster.memory_servers=2",
                                       "cluster.gpu_model_gb=0.0005",
                                       "cluster.host_cache_gb=0.0005",
                                       "cluster.heartbeat_ms=3000", /* stalls of a busy machine lose nobody */
                                       "models.tiny=12",
                                       "models.profile_dir=.",
                                       "workload.kind=poisson",
                                       "workload.rate_rps=150",
                                       "workload.duration_s=1.5",
                                       NULL};

/* Keys by section, in the order in which sections first come; a key that comes again replaces the first. */
static void put(GHashTable *values, GPtrArray *keys, const char *line)
{
  g_auto(GStrv) parts = g_strsplit(line, "=", 2);
  cr_assert(parts[0] && parts[1] && strchr(parts[0], '.'), "no setting: %s", line);
  if (!g_hash_table_contains(values, parts[0]))
    g_ptr_array_add(keys, g_strdup(parts[0]));
  g_hash_table_insert(values, g_strdup(parts[0]), g_strdup(parts[1]));
}

/* At semicolons; "\\;" stands for one in a value. */
static char **settings_split(const char *text)
{
  char **lines = g_strsplit(text, ";", -1);
  guint kept = 0;
  for (guint i = 0; lines[i]; i++) {
    char *last = kept > 0 ? lines[kept - 1] : NULL;
    if (last && g_str_has_suffix(last, "\\")) {
      last[strlen(last) - 1] = ';';
      lines[kept - 1] = g_strconcat(last, lines[i], NULL);
      g_free(last);
      g_free(lines[i]);
    } else {
      lines[kept++] = lines[i];
    }
  }
  lines[kept] = NULL;
  return lines;
}

void lab_experiment(ClusterLab *lab, const char *more)
{
  g_autoptr(GHashTable) values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
  g_auto(GStrv) lines = settings_split(more ? more : "");
  for (const char *const *line = defaults; *line; line++)
    put(values, keys, *line);
  for (char **line = lines; *line; line++)
    if (**line)
      put(values, keys, *line);
  g_autoptr(GString) text = g_string_new(NULL);
  static const char *const sections[] = {"experiment", "cluster", "models", "workload",
                                         "pipeline",   "events",  "output"};
  for (guint s = 0; s < G_N_ELEMENTS(sections); s++) {
    g_string_append_printf(text, "[%s]\n", sections[s]);
    for (guint k = 0; k < keys->len; k++) {
      const char *key = keys->pdata[k], *dot = strchr(key, '.');
      if (strlen(sections[s]) == (size_t)(dot - key) && g_str_has_prefix(key, sections[s]))
        g_string_append_printf(text, "%s = %s\n", dot + 1, (char *)g_hash_table_lookup(values, key));
    }
  }
  g_autofree char *path = lab_path(lab, "experiment.ini");
  cr_assert(g_file_set_contents(path, text->str, -1, NULL), "cannot write %s", path);
}

/* --- processes
 * ------------------------------------------------------------------------------------------------------*/

/* A test that fails never comes to lab_free: what it started ends with it. */
static G_GNUC_NORETURN void become(const ClusterLab *lab, const struct process *process, char **argv,
                                   pid_t parent)
{
  int in = open("/dev/null", O_RDONLY), err = open(process->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  int out = open(process->out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  signal(SIGINT, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent || in < 0 || err < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 ||
      dup2(err, 2) < 0 || chdir(lab->folder) != 0 || setenv(MARK, lab->mark, 1) != 0 ||
      setenv("TMPDIR", lab->tmp, 1) != 0)
    _exit(126);
  execv(lab->program, argv);
  _exit(127);
}

struct process *lab_start(ClusterLab *lab, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *words = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  g_autofree char *line = g_strconcat(lab->program, " ", words, NULL);
  g_auto(GStrv) argv = g_strsplit(line, " ", -1);
  struct process *process = g_new0(struct process, 1);
  g_autofree char *log = g_strdup_printf("%u.log", lab->processes->len);
  g_autofree char *out = g_strdup_printf("%u.out", lab->processes->len);
  process->log = lab_path(lab, log);
  process->out = lab_path(lab, out);
  g_ptr_array_add(lab->processes, process);
  pid_t parent = getpid();
  process->pid = fork();
  cr_assert_geq(process->pid, 0, "no process");
  if (process->pid == 0)
    become(lab, process, argv, parent);
  return process;
}

static gint64 deadline(double limit_s)
{
  return g_get_monotonic_time() + (gint64)(limit_s * G_USEC_PER_SEC);
}

static gboolean has_ended(struct process *process)
{
  int status;
  if (!process->ended && waitpid(process->pid, &status, WNOHANG) == process->pid) {
    process->ended = TRUE;
    process->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return process->ended;
}

gboolean process_await(struct process *process, double limit_s)
{
  for (gint64 end = deadline(limit_s); !has_ended(process); g_usleep(POLL_US))
    if (g_get_monotonic_time() > end)
      return FALSE;
  return TRUE;
}

static char *read_file(const char *path)
{
  char *text = NULL;
  return g_file_get_contents(path, &text, NULL, NULL) ? text : g_strdup("");
}

char *process_log(const struct process *process)
{
  return read_file(process->log);
}

char *process_out(const struct process *process)
{
  return read_file(process->out);
}

char *process_words(const struct process *process)
{
  g_autofree char *out = process_out(process);
  g_autoptr(GRegex) gap = g_regex_new("\\s+", 0, 0, NULL);
  return g_regex_replace_literal(gap, out, -1, 0, " ", 0, NULL);
}

static guint count_text(const char *in, const char *text)
{
  guint count = 0;
  for (const char *at = in; (at = strstr(at, text)); at += strlen(text))
    count++;
  return count;
}

gboolean process_says(struct process *process, const char *text, guint times, double limit_s)
{
  for (gint64 end = deadline(limit_s);; g_usleep(POLL_US)) {
    gboolean ended = has_ended(process);
    g_autofree char *log = process_log(process);
    if (count_text(log, text) >= times)
      return TRUE;
    if (ended || g_get_monotonic_time() > end)
      return FALSE;
  }
}

/* --- what is there
 * --------------------------------------------------------------------------------------------------*/

/* A file of /proc/PID, whose texts end with 0 each; NULL: the process is gone. */
static GPtrArray *proc_texts(pid_t pid, const char *file)
{
  g_autofree char *path = g_strdup_printf("/proc/%d/%s", (int)pid, file), *bytes = NULL;
  gsize size;
  if (!g_file_get_contents(path, &bytes, &size, NULL))
    return NULL;
  GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
  for (gsize at = 0; at < size; at += strlen(bytes + at) + 1)
    g_ptr_array_add(texts, g_strdup(bytes + at));
  return texts;
}

/* Zombies and those that are being killed have no environment any more. */
static gboolean is_marked(const ClusterLab *lab, pid_t pid)
{
  g_autofree char *mark = g_strdup_printf(MARK "=%s", lab->mark);
  g_autoptr(GPtrArray) environment = proc_texts(pid, "environ");
  for (guint i = 0; environment && i < environment->len; i++)
    if (strcmp(environment->pdata[i], mark) == 0)
      return TRUE;
  return FALSE;
}

static GArray *marked(const ClusterLab *lab)
{
  GArray *pids = g_array_new(FALSE, FALSE, sizeof(pid_t));
  g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
  for (const char *name = g_dir_read_name(dir); name; name = g_dir_read_name(dir)) {
    pid_t pid = (pid_t)strtol(name, NULL, 10);
    if (pid > 0 && pid != getpid() && is_marked(lab, pid))
      g_array_append_val(pids, pid);
  }
  return pids;
}

static gboolean plays(pid_t pid, const char *role, int index)
{
  g_autoptr(GPtrArray) words = proc_texts(pid, "cmdline");
  if (!words || words->len < 2 || strcmp(words->pdata[1], role) != 0)
    return FALSE;
  for (guint i = 2; index >= 0 && i + 1 < words->len; i++)
    if (strcmp(words->pdata[i], "--index") == 0)
      return atoi(words->pdata[i + 1]) == index;
  return index < 0;
}

pid_t lab_role(const ClusterLab *lab, const char *role, int index)
{
  g_autoptr(GArray) pids = marked(lab);
  for (guint i = 0; i < pids->len; i++)
    if (plays(g_array_index(pids, pid_t, i), role, index))
      return g_array_index(pids, pid_t, i);
  return 0;
}

char *lab_left(const ClusterLab *lab)
{
  g_autoptr(GArray) pids = marked(lab);
  g_autoptr(GString) text = g_string_new(NULL);
  for (guint i = 0; i < pids->len; i++) {
    g_autoptr(GPtrArray) words = proc_texts(g_array_index(pids, pid_t, i), "cmdline");
    g_string_append_printf(text, "%d %s; ", (int)g_array_index(pids, pid_t, i),
                           words && words->len > 1 ? (char *)words->pdata[1] : "?");
  }
  return text->len > 0 ? g_strdup(text->str) : NULL;
}

gboolean lab_await_empty(const ClusterLab *lab, double limit_s)
{
  for (gint64 end = deadline(limit_s);; g_usleep(POLL_US)) {
    g_autofree char *left = lab_left(lab);
    if (!left)
      return TRUE;
    if (g_get_monotonic_time() > end)
      return FALSE;
  }
}

/* Kills what the test started, then whatever is there all the same. */
static char *end_all(ClusterLab *lab)
{
  for (guint i = 0; i < lab->processes->len; i++) {
    struct process *process = lab->processes->pdata[i];
    if (!has_ended(process)) {
      kill(process->pid, SIGKILL);
      waitpid(process->pid, NULL, 0);
    }
    g_free(process->log);
    g_free(process->out);
    g_free(process);
  }
  if (lab_await_empty(lab, 5))
    return NULL;
  char *orphans = lab_left(lab);
  g_autoptr(GArray) pids = marked(lab);
  for (guint i = 0; i < pids->len; i++)
    kill(g_array_index(pids, pid_t, i), SIGKILL);
  return orphans;
}

/* The first of them; NULL: none. */
static char *left_behind(const ClusterLab *lab)
{
  g_autoptr(GDir) dir = g_dir_open(lab->tmp, 0, NULL);
  return g_strdup(dir ? g_dir_read_name(dir) : NULL);
}

void lab_free(ClusterLab *lab)
{
  g_autofree char *orphans = end_all(lab), *file = left_behind(lab);
  tree_remove(lab->folder);
  g_ptr_array_unref(lab->processes);
  g_free(lab->folder);
  g_free(lab->mark);
  g_free(lab->program);
  g_free(lab->tmp);
  g_free(lab);
  cr_assert_null(orphans, "orphans: %s", orphans);
  cr_assert_null(file, "left in the temporary folder: %s", file);
}
