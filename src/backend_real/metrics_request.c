/* Requests to the metrics server; see metrics_request.h. RFC 9112, sections 3 and 5; a bare LF ends a line
 * too. */
#include "backend_real/metrics_request.h"

#include <string.h>

#define PATH "/metrics"

/* One line, without its end. */
struct line {
  const char *text;
  gsize size;
};

/* FALSE: no line ends before `end`. */
static gboolean line_next(const char **at, const char *end, struct line *line)
{
  const char *lf = memchr(*at, '\n', (gsize)(end - *at));
  if (!lf)
    return FALSE;
  *line = (struct line){*at, (gsize)(lf - *at)};
  if (line->size > 0 && lf[-1] == '\r')
    line->size--;
  *at = lf + 1;
  return TRUE;
}

/* The number of characters of a token (RFC 9110, section 5.6.2) that the line begins with. */
static gsize token_length(const struct line *line)
{
  gsize n = 0;
  while (n < line->size && (g_ascii_isalnum(line->text[n]) ||
                            (line->text[n] != '\0' && strchr("!#$%&'*+-.^_`|~", line->text[n]))))
    n++;
  return n;
}

static gboolean is_visible(const struct line *line, gboolean blanks)
{
  for (gsize i = 0; i < line->size; i++) {
    guchar c = (guchar)line->text[i];
    if ((c < ' ' && !(blanks && c == '\t')) || c == 0x7f || (c == ' ' && !blanks))
      return FALSE;
  }
  return TRUE;
}

static gboolean line_is(const struct line *line, const char *text)
{
  return line->size == strlen(text) && memcmp(line->text, text, line->size) == 0;
}

static gboolean is_path(const struct line *target)
{
  gsize n = strlen(PATH);
  return target->size >= n && memcmp(target->text, PATH, n) == 0 &&
         (target->size == n || target->text[n] == '?');
}

/* METHOD SP TARGET SP VERSION */
static guint request_line_status(const struct line *line, gboolean *head)
{
  struct line method = {line->text, token_length(line)};
  if (method.size == 0 || method.size == line->size || line->text[method.size] != ' ')
    return 400;
  struct line target = {line->text + method.size + 1, 0};
  gsize rest = line->size - method.size - 1;
  const char *blank = memchr(target.text, ' ', rest);
  if (!blank || blank == target.text)
    return 400;
  target.size = (gsize)(blank - target.text);
  struct line version = {blank + 1, rest - target.size - 1};
  if (!is_visible(&target, FALSE) || version.size != 8 || memcmp(version.text, "HTTP/", 5) != 0 ||
      !g_ascii_isdigit(version.text[5]) || version.text[6] != '.' || !g_ascii_isdigit(version.text[7]))
    return 400;
  if (version.text[5] != '1')
    return 505;
  *head = line_is(&method, "HEAD");
  if (!*head && !line_is(&method, "GET"))
    return 405;
  return is_path(&target) ? 200 : 404;
}

guint metrics_request_status(const char *data, gsize size, gboolean *head)
{
  const char *at = data, *end = data + size;
  struct line line;
  *head = FALSE;
  while (end - at >= 1 && (*at == '\r' || *at == '\n')) /* before the request line: ignored */
    at++;
  gboolean whole = line_next(&at, end, &line);
  guint status = whole ? request_line_status(&line, head) : 0;
  if (status == 400)
    return 400;
  while (whole && (whole = line_next(&at, end, &line)) && line.size > 0) {
    gsize name = token_length(&line);
    if (name == 0 || name == line.size || line.text[name] != ':' || !is_visible(&line, TRUE))
      return 400;
  }
  if (whole)
    return status;
  return size >= METRICS_REQUEST_MAX ? 431 : 0;
}
