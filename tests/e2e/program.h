/* Runs the real program (DISTMIND_SIM, as tests/run.sh sets it; else build/distmind-sim) as a user would: its
 * own process, arguments, working folder, and what it printed and how it ended. Standard input is empty. A
 * program that outlives its time is killed, and the test fails. */
#ifndef DM_E2E_PROGRAM_H
#define DM_E2E_PROGRAM_H

#include <glib.h>

struct program_outcome {
  int status; /* exit status; 128 + signal when a signal ended it */
  char *out, *err;
};
typedef struct program_outcome ProgramOutcome; /* for g_autoptr */

void program_outcome_free(ProgramOutcome *outcome);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ProgramOutcome, program_outcome_free)

/* Runs to the end, within 120 s. Arguments end with NULL. */
ProgramOutcome *program_run(const char *folder, ...) G_GNUC_NULL_TERMINATED;

/* A program that runs while the test looks on. */
struct program;
struct program *program_start(const char *folder, const char *const *arguments);
void program_signal(struct program *program, int signal_number);
/* Ends the program's handle. */
ProgramOutcome *program_finish(struct program *program);

/* An empty folder of the test's own, removed with all that is in it by folder_remove; a file in it. */
char *folder_new(void);
void folder_remove(char *folder);
void folder_write(const char *folder, const char *name, const char *text);
/* Names in it, sorted and joined by a space each: what a run left behind. Owned by the caller. */
char *folder_list(const char *folder);
/* Waits until a file whose name ends so appears; FALSE after 60 s. */
gboolean folder_await(const char *folder, const char *ending);

typedef char Folder; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Folder, folder_remove)

/* The one line that bad input is answered with: exit status 2, nothing on standard output, one line on
 * standard error which contains each of the texts (NULL-terminated). Fails the test otherwise. */
void expect_refused(const ProgramOutcome *outcome, ...) G_GNUC_NULL_TERMINATED;

#endif
