/* A plain main for fuzz targets (LLVMFuzzerTestOneInput) where libFuzzer is not at hand: replays the files
 * and folders given, in sorted order, then runs random mutations of them (mutate.h) for some seconds.
 *
 * The inputs run in a child process. The one that runs lies in memory shared with the parent, so whatever
 * ends the child (a signal, a sanitizer, exit, the out-of-memory killer), the parent still has it, and leaves
 * it in a file of its own. An input that takes longer than INPUT_TIMEOUT_S ends as a hang. Exit status: 0 no
 * finding, 1 a finding, 2 bad usage. */
#include "mutate.h"

#include <glib.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { INPUT_TIMEOUT_S = 5, INPUT_MAX = 1 << 20, LEAK_CHECKS_MAX = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Present under a sanitizer alone. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
extern int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                                     void (*on_free)(const volatile void *))
    __attribute__((weak));

/* What the child is at, as the parent sees it. */
struct progress {
  size_t size;       /* of the input that runs */
  uint64_t replayed; /* inputs done */
  uint64_t mutated;  /* inputs done */
  gboolean leaked;   /* the input at hand leaked */
  gboolean finished; /* every input ran; what comes after is nobody's in particular */
  double mutating_s; /* time spent in mutations */
  char name[4096];   /* the corpus file that is replayed, or "" */
  uint8_t input[INPUT_MAX];
};

struct options {
  double seconds;
  gint64 seed, runs, max_len;
  char *artifacts;
};

static struct progress *progress;
static int64_t live_blocks;

static void count_malloc(const volatile void *block, size_t size)
{
  (void)block, (void)size;
  live_blocks++;
}

static void count_free(const volatile void *block)
{
  live_blocks -= block != NULL;
}

static double now_s(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

static void end_hang(int signal_number)
{
  (void)signal_number;
  static const char message[] = "fuzz driver: the input hangs\n";
  ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
  (void)written;
  abort();
}

/* A check walks the whole heap, so it is made only when blocks that the input allocated are still there, and
 * not for ever, since a cache that grows with each input looks the same. */
static void check_leaks(int64_t live_before)
{
  static int checks;
  if (live_blocks <= live_before || !__lsan_do_recoverable_leak_check || checks++ >= LEAK_CHECKS_MAX)
    return;
  if (__lsan_do_recoverable_leak_check()) {
    progress->leaked = TRUE;
    _exit(1);
  }
}

/* The target gets a block of exactly the input's size, so that reading past it is seen. */
static void run_input(const uint8_t *data, size_t size)
{
  memcpy(progress->input, data, size);
  progress->size = size;
  uint8_t *exact = malloc(size); /* g_malloc(0) would be NULL */
  memcpy(exact, data, size);
  int64_t live_before = live_blocks;
  alarm(INPUT_TIMEOUT_S);
  LLVMFuzzerTestOneInput(exact, size);
  alarm(0);
  check_leaks(live_before);
  free(exact);
}

static void replay(const struct corpus *corpus)
{
  for (size_t i = 0; i < corpus_count(corpus); i++) {
    size_t size;
    const uint8_t *data = corpus_input(corpus, i, &size);
    g_strlcpy(progress->name, corpus_name(corpus, i), sizeof progress->name);
    run_input(data, size);
    progress->replayed++;
  }
  progress->name[0] = '\0';
}

static void mutate(const struct corpus *corpus, const struct options *options)
{
  g_autoptr(Mutator) mutator = mutator_new(corpus, options->seed, options->max_len);
  double start = now_s();
  while (options->runs ? progress->mutated < (uint64_t)options->runs : now_s() - start < options->seconds) {
    size_t size;
    const uint8_t *data = mutator_next(mutator, &size);
    run_input(data, size);
    progress->mutated++;
    progress->mutating_s = now_s() - start;
  }
}

static int run_child(const struct corpus *corpus, const struct options *options)
{
  signal(SIGALRM, end_hang);
  if (__sanitizer_install_malloc_and_free_hooks)
    __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free);
  replay(corpus);
  if (options->seconds > 0 || options->runs > 0)
    mutate(corpus, options);
  progress->finished = TRUE;
  return 0;
}

/* Leaves the input that ended the child in a file. */
static void report_finding(const char *target, int status, const struct options *options)
{
  g_autofree char *how = progress->leaked      ? g_strdup("leaks")
                         : WIFSIGNALED(status) ? g_strdup_printf("ends by signal %d (%s)", WTERMSIG(status),
                                                                 g_strsignal(WTERMSIG(status)))
                                               : g_strdup_printf("exits with status %d", WEXITSTATUS(status));
  if (progress->finished) {
    fprintf(stderr, "finding: %s %s after the last input (seed %" G_GINT64_FORMAT ")\n", target, how,
            options->seed);
    return;
  }
  if (progress->name[0]) {
    fprintf(stderr, "finding: %s %s\n", progress->name, how);
    return;
  }
  g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA1, progress->input, progress->size);
  g_autofree char *base = g_strdup_printf("%s-%.12s", target, sum);
  g_autofree char *file = g_build_filename(options->artifacts, base, NULL);
  g_autoptr(GError) error = NULL;
  if (g_mkdir_with_parents(options->artifacts, 0777) != 0 ||
      !g_file_set_contents(file, (const char *)progress->input, (gssize)progress->size, &error))
    fprintf(stderr, "the input could not be kept: %s\n", error ? error->message : options->artifacts);
  fprintf(stderr, "finding: %s %s (seed %" G_GINT64_FORMAT ", mutation %" G_GUINT64_FORMAT ")\n", file, how,
          options->seed, progress->mutated);
}

static gboolean parse_options(int *argc, char ***argv, struct options *options)
{
  const GOptionEntry entries[] = {
      {"seconds", 0, 0, G_OPTION_ARG_DOUBLE, &options->seconds, "time for mutations (0: replay alone)", "S"},
      {"runs", 0, 0, G_OPTION_ARG_INT64, &options->runs, "so many mutations, however long", "N"},
      {"seed", 0, 0, G_OPTION_ARG_INT64, &options->seed, "of the mutations (default 1)", "N"},
      {"max-len", 0, 0, G_OPTION_ARG_INT64, &options->max_len,
       "bytes of an input (default: twice the largest)", "N"},
      {"artifacts", 0, 0, G_OPTION_ARG_FILENAME, &options->artifacts, "where a finding's input is left",
       "FOLDER"},
      {NULL},
  };
  g_autoptr(GOptionContext) context =
      g_option_context_new("FILE|FOLDER... - replay inputs, then mutate them");
  g_option_context_add_main_entries(context, entries, NULL);
  g_autoptr(GError) error = NULL;
  if (!g_option_context_parse(context, argc, argv, &error)) {
    fprintf(stderr, "%s\n", error->message);
    return FALSE;
  }
  if (!(options->seconds >= 0) || options->runs < 0 || options->max_len < 0 || options->max_len > INPUT_MAX) {
    fprintf(stderr, "--seconds and --runs must not be negative, --max-len at most %d\n", INPUT_MAX);
    return FALSE;
  }
  return TRUE;
}

static struct corpus *load_corpus(int argc, char **argv)
{
  g_autoptr(Corpus) corpus = corpus_new();
  for (int i = 1; i < argc; i++) {
    g_autoptr(GError) error = NULL;
    if (!corpus_add(corpus, argv[i], INPUT_MAX, &error)) {
      fprintf(stderr, "%s\n", error->message);
      return NULL;
    }
  }
  if (corpus_count(corpus) == 0) {
    fprintf(stderr, "no input file is given\n");
    return NULL;
  }
  return g_steal_pointer(&corpus);
}

int main(int argc, char **argv)
{
  struct options options = {.seed = 1, .artifacts = NULL};
  g_autofree char *target = g_path_get_basename(argv[0]);
  if (!parse_options(&argc, &argv, &options))
    return 2;
  g_autofree char *artifacts = options.artifacts ? options.artifacts : g_strdup(".");
  options.artifacts = artifacts;
  g_autoptr(Corpus) corpus = load_corpus(argc, argv);
  if (!corpus)
    return 2;
  progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (progress == MAP_FAILED) {
    perror("mmap");
    return 2;
  }
  fflush(NULL);
  pid_t child = fork();
  if (child == 0)
    return run_child(corpus, &options);
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    perror("fork");
    return 2;
  }
  gboolean found = status != 0 || !progress->finished;
  if (found)
    report_finding(target, status, &options);
  printf("replayed %" G_GUINT64_FORMAT " of %zu inputs; %" G_GUINT64_FORMAT
         " mutations in %.1f s, seed %" G_GINT64_FORMAT "\n",
         progress->replayed, corpus_count(corpus), progress->mutated, progress->mutating_s, options.seed);
  return found;
}
