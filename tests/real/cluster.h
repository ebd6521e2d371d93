/* Whole clusters of distmind-real on loopback, as a user starts them, for tests that kill, stop and cut their
 * processes. The program stands beside this one in the build folder.
 *
 * Every process of a lab carries a mark in its environment, so that none of it, nor of what it started in
 * turn, can be overlooked. What a test waits for has a deadline; nothing is waited for by sleeping. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include <glib.h>
#include <sys/types.h>

struct cluster_lab;
typedef struct cluster_lab ClusterLab; /* for g_autoptr */

/* A folder of its own with a profile and nothing else. */
ClusterLab *lab_new(void);
/* Ends what is left of it, and fails the test if that is anything (orphans), or if a process, however it
 * ended, left a temporary file. */
void lab_free(ClusterLab *lab);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ClusterLab, lab_free)

/* The path of a file in the lab's folder; owned by the caller. */
char *lab_path(const ClusterLab *lab, const char *name);
/* Writes `experiment.ini`: two GPU servers, two memory servers, models that must be loaded again and again,
 * ~1.5 s of load. `more`: "section.key=value;…" that override; a semicolon in a value is written \\;.
 * Nobody is lost by a stall of a busy machine, and a silent server is noticed late; WATCHFUL: in 0.6 s. */
#define WATCHFUL "cluster.heartbeat_ms=200;"
void lab_experiment(ClusterLab *lab, const char *more);

/* --- processes */

struct process {
  pid_t pid;
  char *log; /* path of the file with what it wrote, both streams */
  char *out; /* path of standard output alone, where there is one */
  gboolean ended;
  int status; /* exit status; 128 + signal */
};

/* distmind-real with these words, separated by spaces. Freed by lab_free, which kills it if it still runs. */
G_GNUC_PRINTF(2, 3) struct process *lab_start(ClusterLab *lab, const char *format, ...);
/* Until it has ended; FALSE after limit_s. */
gboolean process_await(struct process *process, double limit_s);
/* Until its log contains the text `times` times; FALSE when the process ends or after limit_s. */
gboolean process_says(struct process *process, const char *text, guint times, double limit_s);
char *process_log(const struct process *process); /* owned by the caller */
char *process_out(const struct process *process);
/* Its standard output with one space in the place of each line break and indent: no text is wrapped. */
char *process_words(const struct process *process);

/* The process of a role (argument after the program's name) and place; index < 0: of any. 0 = none. */
pid_t lab_role(const ClusterLab *lab, const char *role, int index);
/* Processes of the lab that are there (zombies are not), for a message: "pid role …". NULL: none. */
char *lab_left(const ClusterLab *lab);
/* Until none is left. */
gboolean lab_await_empty(const ClusterLab *lab, double limit_s);

/* Shuts down every TCP connection of the process, as a network that resets them would. Returns how many;
 * -1: this system forbids it. */
int process_cut(pid_t pid);

/* A cluster of separate processes: controller, then servers by hand. */
struct process *lab_controller(ClusterLab *lab);
struct process *lab_gpu_server(ClusterLab *lab, int index);
struct process *lab_memory_server(ClusterLab *lab, int index);
/* A client's run of experiment.ini with results in NAME.db. */
struct process *lab_client(ClusterLab *lab, const char *name, const char *more);

#endif
