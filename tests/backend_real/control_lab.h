/* A hub and its links in one process, for tests: they run on one loop unless a test says otherwise, and note
 * all that they are told as lines of text. */
#ifndef CONTROL_LAB_H
#define CONTROL_LAB_H

#include <criterion/criterion.h>
#include <zmq.h>

#include "backend_real/control.h"

enum { LAB_LINKS = 4, LAB_MODELS = 100, LAB_GPUS = 8, LAB_MEMORY_SERVERS = 4, LAB_RUN = 7 };

struct lab;

struct lab_link {
  struct lab *lab;
  struct link *link;
  GString *log;            /* "welcome; frame READY 3; message dispatch 17; lost WHY; " */
  uint64_t messages, next; /* DISPATCHes that came, the id that the next should have */
};

struct lab {
  struct loop *loop;
  char *folder;     /* of everything; keys in "authorized" */
  char *authorized; /* its path */
  struct key_pair hub_keys;
  gboolean encrypted;
  struct hub *hub;
  GString *log;            /* "joined 2/0 1; frame 2/0 READY 3; message 2/0 done 17; lost 2/0 WHY; " */
  const char *refuse;      /* what joined returns */
  uint64_t messages, next; /* REQUESTs that came, the id that the next should have */
  struct lab_link link[LAB_LINKS];
  GString *logged;     /* lines of the log domain "control" */
  int64_t patience_ns; /* of links, for the welcome */
  gboolean (*until)(struct lab *lab);
};

struct lab *lab_new(gboolean encrypted);
void lab_free(struct lab *lab);
/* A pair of keys, authorized under this name; NULL: not authorized. */
struct key_pair lab_keys(struct lab *lab, const char *name);
/* Links place (role, index) with epoch, under these keys (NULL: none). */
void lab_link(struct lab *lab, int number, enum actor_kind role, uint32_t index, uint64_t epoch,
              const struct key_pair *keys);
/* The same to a hub that is not the lab's. */
void lab_link_to(struct lab *lab, int number, const char *endpoint, enum actor_kind role, uint32_t index,
                 uint64_t epoch, const struct key_pair *keys);
/* Runs the loop until `log` holds the text; fails the test after some seconds. */
void lab_await(struct lab *lab, const GString *log, const char *text);
/* How many of a kind the hub counts as joined. */
uint32_t lab_joined(const struct lab *lab, enum actor_kind kind);
/* As lab_await, for a condition. */
void lab_await_that(struct lab *lab, gboolean (*until)(struct lab *lab));
gboolean lab_has_logged(const struct lab *lab, const char *text);
void lab_clear_logged(struct lab *lab);
void lab_run_ns(struct lab *lab, int64_t ns);

#define lab_check(log, text)                                                                                 \
  cr_assert(strstr((log)->str, text), "expected \"%s\" in \"%s\"", text, (log)->str)
#define lab_check_not(log, text)                                                                             \
  cr_assert(!strstr((log)->str, text), "did not expect \"%s\" in \"%s\"", text, (log)->str)

/* GPU server 0 on link 0, welcome; its keys. */
struct key_pair lab_good_peer(struct lab *lab);
/* It has noticed nothing: messages go both ways. */
void lab_still_good(struct lab *lab);

/* A peer that speaks ZeroMQ but not our protocol: a plain DEALER, connected, with these keys. */
void *lab_stranger(struct lab *lab, void *zmq_context, const struct key_pair *keys, const char *server_key);
void lab_say(void *socket, const void *data, size_t size);
/* A good hello of GPU server `index`, said over it. */
void lab_say_hello(void *socket, uint32_t index);

#endif
