/* What a run of a cluster must have come to, whatever befell it. */
#ifndef OUTCOME_CHECK_H
#define OUTCOME_CHECK_H

#include "cluster.h"

struct run_sums {
  gint64 requests, completed, rejected, failed; /* of the JSON */
  gint64 lost, timed_out;                       /* of the database: why they failed */
};

/* The client has ended well; in its JSON requests = completed + rejected + failed; the database has each
 * request once, with an outcome, and the same sums; each that failed has a reason. `what`: for messages. */
struct run_sums outcome_check(ClusterLab *lab, const struct process *client, const char *database,
                              const char *what);
/* One number that the SQL asks of the database. */
gint64 outcome_ask(ClusterLab *lab, const char *database, const char *sql);
/* The client has ended with status 1 and one line of error that has the text. */
void outcome_failed(const struct process *client, const char *says, const char *what);

#endif
