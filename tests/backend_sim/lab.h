/* A laboratory for whole runs: small profiles, one hardware file and one experiment in a folder of its own;
 * what a test varies are --set texts. */
#ifndef DM_LAB_H
#define DM_LAB_H

#include "harness/results.h"

/* Profiles: a (10 ms, 8 layers, 80 MB) and b (4 ms, 4 layers, 40 MB); no overheads, every GPU like the next.
 */
#define LAB_A_NS 10000000
#define LAB_B_NS 4000000

struct lab_result {
  struct figures figures;
  GArray *rows;   /* of struct request_row, by id; NULL unless asked for */
  GArray *queues; /* of struct usage_row, time_ns and queue alone; NULL unless asked for */
  char *json;     /* without the value of wall_s */
  char *notices;
};

struct lab {
  char *folder;
  int64_t clock_offset_ns;
  gboolean rows; /* ask for them */
};

struct lab *lab_new(void);
void lab_free(struct lab *lab);
/* Writes FOLDER/name. */
void lab_write(const struct lab *lab, const char *name, const char *text);
/* Runs the system with the --set texts that follow, up to NULL; the test fails where the run does. */
struct lab_result *lab_run(struct lab *lab, const char *system, ...) G_GNUC_NULL_TERMINATED;
/* The same with the texts in an array, NULL-terminated. */
struct lab_result *lab_run_sets(struct lab *lab, const char *system, GPtrArray *sets);
/* The message with which the experiment is refused; the test fails where it is not. */
char *lab_refusal(struct lab *lab, const char *system, ...) G_GNUC_NULL_TERMINATED;
void lab_result_free(struct lab_result *result);
/* requests = completed + rejected + failed, found sums to completed, every id once, parts of GPU time are
 * parts. */
void lab_check_conserved(const struct lab_result *result, const char *what);
/* Parts of the GPU time are parts: at most all of it. */
void lab_check_parts(const struct lab_result *result, const char *what);

typedef struct lab Lab;
typedef struct lab_result LabResult;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Lab, lab_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LabResult, lab_result_free)

#endif
