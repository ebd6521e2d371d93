/* The thread that says who may connect; see admission.h. */
#include "backend_real/admission.h"

#include <errno.h>
#include <string.h>
#include <zmq.h>

#include "backend_real/keys.h"
#include "core/error.h"

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"

enum { ZAP_PARTS = 7, ZAP_PART_MAX = 256, KEY_BYTES = 32, KEY_FILES_MAX = 65536 };

/* A request's parts, in the order of the protocol. */
enum { VERSION, REQUEST_ID, DOMAIN, ADDRESS, ROUTING_ID, MECHANISM, CREDENTIALS };

struct part {
  uint8_t bytes[ZAP_PART_MAX];
  size_t size;
};

struct admission {
  char *authorized;
  struct refusals *refusals;
  void *socket; /* the thread's, once it runs */
  GThread *thread;
};

static gboolean file_has(const char *path, const char *key)
{
  g_autoptr(GError) error = NULL;
  char found[KEY_TEXT];
  if (public_key_read(path, found, &error))
    return strcmp(found, key) == 0;
  g_log_structured("control", G_LOG_LEVEL_WARNING, "MESSAGE", "passed over: %s", error->message);
  return FALSE;
}

/* The name of the .pub file with this key, g_free it; NULL: nobody's. Files that are no key are passed over,
 * with a log line. */
static char *key_owner(const char *authorized, const char *key)
{
  g_autoptr(GDir) dir = g_dir_open(authorized, 0, NULL);
  const char *name;
  if (!dir)
    return file_has(authorized, key) ? g_path_get_basename(authorized) : NULL;
  for (guint files = 0; files < KEY_FILES_MAX && (name = g_dir_read_name(dir)) != NULL; files++) {
    g_autofree char *path = g_build_filename(authorized, name, NULL);
    if (g_str_has_suffix(name, ".pub") && file_has(path, key))
      return g_strndup(name, strlen(name) - strlen(".pub"));
  }
  return NULL;
}

/* How many parts came; those past the last that a request has end up in one place. 0: the context was shut
 * down. */
static int receive_request(void *socket, struct part part[ZAP_PARTS + 1])
{
  int parts = 0, more = 1;
  for (; more; parts++) {
    struct part *to = &part[MIN(parts, ZAP_PARTS)];
    size_t size = sizeof more;
    int received;
    do
      received = zmq_recv(socket, to->bytes, ZAP_PART_MAX - 1, 0);
    while (received < 0 && errno == EINTR);
    if (received < 0 || zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0)
      return 0;
    to->size = MIN((size_t)received, ZAP_PART_MAX - 1);
    to->bytes[to->size] = '\0';
  }
  return parts;
}

static void answer(void *socket, const struct part *request_id, gboolean good, const char *user)
{
  const char *code = good ? "200" : "400", *text = good ? "OK" : "not authorized";
  zmq_send(socket, "1.0", 3, ZMQ_SNDMORE);
  zmq_send(socket, request_id->bytes, request_id->size, ZMQ_SNDMORE);
  zmq_send(socket, code, 3, ZMQ_SNDMORE);
  zmq_send(socket, text, strlen(text), ZMQ_SNDMORE);
  zmq_send(socket, user, strlen(user), ZMQ_SNDMORE);
  zmq_send(socket, "", 0, 0);
}

static void decide(struct admission *admission, const struct part part[ZAP_PARTS + 1], int parts)
{
  char key[KEY_TEXT] = "";
  g_autofree char *name = NULL;
  if (parts == ZAP_PARTS && strcmp((const char *)part[MECHANISM].bytes, "CURVE") == 0 &&
      part[CREDENTIALS].size == KEY_BYTES && zmq_z85_encode(key, part[CREDENTIALS].bytes, KEY_BYTES))
    name = key_owner(admission->authorized, key);
  if (!name)
    refusals_log(admission->refusals, parts > ADDRESS ? (const char *)part[ADDRESS].bytes : NULL, key,
                 "its key is not authorized");
  answer(admission->socket, &part[REQUEST_ID], name != NULL, name ? key : "");
}

static gpointer run(gpointer data)
{
  struct admission *admission = data;
  struct part part[ZAP_PARTS + 1];
  memset(part, 0, sizeof part);
  for (int parts; (parts = receive_request(admission->socket, part)) > 0;)
    decide(admission, part, parts);
  zmq_close(admission->socket);
  return NULL;
}

struct admission *admission_new(void *zmq_context, const char *authorized, struct refusals *refusals,
                                GError **error)
{
  char one[KEY_TEXT];
  g_autoptr(GDir) dir = g_dir_open(authorized, 0, NULL);
  if (!dir && !public_key_read(authorized, one, NULL)) {
    input_error(error, authorized, 0, "expected a folder of public keys (.pub), found none that can be read");
    return NULL;
  }
  void *socket = zmq_socket(zmq_context, ZMQ_REP);
  int no_linger = 0;
  if (!socket || zmq_setsockopt(socket, ZMQ_LINGER, &no_linger, sizeof no_linger) != 0 ||
      zmq_bind(socket, ZAP_ENDPOINT) != 0) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "no socket for authentication: %s", zmq_strerror(errno));
    if (socket)
      zmq_close(socket);
    return NULL;
  }
  struct admission *admission = g_new0(struct admission, 1);
  admission->authorized = g_strdup(authorized);
  admission->refusals = refusals;
  admission->socket = socket;
  admission->thread = g_thread_new("admission", run, admission);
  return admission;
}

void admission_free(struct admission *admission)
{
  if (!admission)
    return;
  g_thread_join(admission->thread);
  g_free(admission->authorized);
  g_free(admission);
}
