/* A cluster of real processes on loopback, each of which serves metrics: controller, one memory server, two
 * GPU servers, and a client now and then. */
#ifndef METRICS_LAB_H
#define METRICS_LAB_H

#include <glib.h>

enum { CONTROLLER, MEMORY, GPU_0, GPU_1, ROLES, CLIENT = ROLES, PROCESSES }; /* ROLES: that stay */
#define METRICS_LAB_AWAIT_S 60

struct role {
  GPid pid;
  char *log; /* file of its standard error */
  int port;
  GHashTable *last; /* samples */
};

struct metrics_lab {
  char *folder, *file;
  int data_port; /* of the memory server */
  struct role role[PROCESSES];
};

struct metrics_lab *metrics_lab_new(void);
/* Each ends on SIGTERM with exit status 0, or the test fails. */
void metrics_lab_free(struct metrics_lab *lab);
char *metrics_lab_path(const struct metrics_lab *lab, const char *name); /* in its folder */
char *metrics_lab_read(const char *path);
/* Waits until the log has `after`; what follows it, up to `end`. */
char *metrics_lab_await(const struct role *role, const char *after, const char *end);

/* A client's run of so many seconds, of real-quickstart.ini, into run.db and run.out. */
void metrics_lab_client(struct metrics_lab *lab, const char *system, const char *seconds, const char *more);
/* FALSE: it has ended, well or the test fails. */
gboolean metrics_lab_client_goes_on(struct metrics_lab *lab);

/* Takes in what the process serves, if it is there: in format, and no counter falls. */
void metrics_lab_scrape_one(struct role *role);
/* All that stay. */
void metrics_lab_scrape(struct metrics_lab *lab);
/* Of the last scrape. */
double metrics_lab_value(const struct metrics_lab *lab, int role, const char *sample);

#endif
