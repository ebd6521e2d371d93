/* Made-up results: a stored run of a few systems with requests, usage and decisions whose figures tests know.
 */
#ifndef DM_TESTS_FIXTURE_H
#define DM_TESTS_FIXTURE_H

#include "harness/report.h"
#include "harness/store.h"

#define FIXTURE_REQUESTS 1000 /* of each system */
#define FIXTURE_SYSTEMS  3    /* ideal, distmind, mps */
/* This request of distmind was sent to GPU 1 behind two others, evicted bert-1 and loaded resnet152-3 in 16
 * groups. */
#define FIXTURE_LOADER 500
/* This one joined that load; 502 was rejected; 503 loaded the model to GPU 0 from the bytes that came for
 * 500. */
#define FIXTURE_JOINER   501
#define FIXTURE_REJECTED 502
#define FIXTURE_SHARER   503

/* Models resnet152-0..3 and bert-0..1. */
struct catalog *fixture_catalog(void);
/* Figures of one system, all different. */
struct figures fixture_figures(unsigned system);
struct run_info fixture_info(unsigned system);
/* As report_table takes them: FIXTURE_SYSTEMS runs. */
void fixture_runs(struct report_run runs[FIXTURE_SYSTEMS]);

/* A new folder; free with fixture_remove. */
char *fixture_folder(void);
void fixture_remove(char *folder);

struct fixture_options {
  gboolean no_requests, no_decisions, no_usage;
  unsigned sample; /* every N-th request; 0 = all */
};
/* Writes FOLDER/run.db and returns its path; fails the test on an error. Free with g_free. */
char *fixture_database(const char *folder, struct fixture_options options);
/* The i-th request of a system; even ones are resident, others loaded; every 100th from 2 on rejected. */
struct request_row fixture_request(unsigned system, uint64_t id);

/* Everything that was written to a stream made by open_memstream-like helpers: runs print(out, data), returns
 * the text. */
char *fixture_printed(void (*print)(FILE *out, void *data), void *data);
/* Contents of a file; fails the test if there is none. */
char *fixture_read(const char *path);

#endif
