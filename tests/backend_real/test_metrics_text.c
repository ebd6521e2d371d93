/* The text of metrics, and what a request for it must look like. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "backend_real/metrics_request.h"
#include "backend_real/metrics_text.h"
#include "metrics_check.h"

Test(metrics_text, labels_and_values)
{
  g_autoptr(GString) text = g_string_new(NULL);
  metric_family(text, "a_bytes", METRIC_GAUGE, "Some.");
  metric_sample(text, "a_bytes", 0.1, "path", "C:\\new\n\"x\"", "b", "", NULL);
  metric_sample(text, "a_bytes", 1e300, "b", "z", NULL);
  metric_sample(text, "a_bytes", -INFINITY, "b", "y", NULL);
  metric_sample(text, "a_bytes", NAN, "b", "x", NULL);
  metric_single(text, "b_total", METRIC_COUNTER, "More.", 9007199254740991.0);
  cr_assert_str_eq(text->str, "# HELP a_bytes Some.\n# TYPE a_bytes gauge\n"
                              "a_bytes{path=\"C:\\\\new\\n\\\"x\\\"\",b=\"\"} 0.1\n"
                              "a_bytes{b=\"z\"} 1e+300\na_bytes{b=\"y\"} -Inf\na_bytes{b=\"x\"} NaN\n"
                              "# HELP b_total More.\n# TYPE b_total counter\nb_total 9007199254740991\n");
  g_autoptr(GHashTable) samples = metrics_check(text->str);
  cr_assert_eq(metrics_value(samples, "b_total"), 9007199254740991.0);
}

Test(metrics_text, histogram)
{
  static const double bound[] = {0.001, 0.0025, 1};
  static const uint64_t count[] = {3, 0, 4, 5};
  g_autoptr(GString) text = g_string_new(NULL);
  metric_histogram(text, "t_seconds", "Times.", bound, 3, count, 61.5);
  cr_assert_str_eq(text->str, "# HELP t_seconds Times.\n# TYPE t_seconds histogram\n"
                              "t_seconds_bucket{le=\"0.001\"} 3\nt_seconds_bucket{le=\"0.0025\"} 3\n"
                              "t_seconds_bucket{le=\"1\"} 7\nt_seconds_bucket{le=\"+Inf\"} 12\n"
                              "t_seconds_sum 61.5\nt_seconds_count 12\n");
  g_hash_table_unref(metrics_check(text->str));
}

Test(metrics_text, process)
{
  g_autoptr(GString) text = g_string_new(NULL);
  metrics_process(text, ACTOR(ACTOR_GPU_SERVER, 3), 7);
  g_autoptr(GHashTable) samples = metrics_check(text->str);
  cr_assert(strstr(text->str, "distmind_build_info{role=\"gpu-server\",index=\"3\",version=\""));
  cr_assert_eq(metrics_value(samples, "distmind_run"), 7);
  cr_assert_gt(metrics_value(samples, "process_resident_memory_bytes"), 1e5);
  double cpu = metrics_value(samples, "process_cpu_seconds_total");
  cr_assert(cpu >= 0 && cpu < 1000, "%g", cpu);
}

/* 0 = more is to come. */
Test(metrics_text, requests)
{
  static const struct {
    const char *text;
    guint status;
    gboolean head;
  } request[] = {
      {"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200, FALSE},
      {"GET /metrics HTTP/1.0\r\n\r\n", 200, FALSE},
      {"GET /metrics?a=b&c HTTP/1.1\n\n", 200, FALSE},
      {"HEAD /metrics HTTP/1.1\r\n\r\n", 200, TRUE},
      {"\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n", 200, FALSE},
      {"GET /metrics HTTP/1.1\r\nA:\r\nB: \t x \r\n\r\nrest", 200, FALSE},
      {"", 0, FALSE},
      {"\r\n", 0, FALSE},
      {"GET /metrics HTTP/1.1", 0, FALSE},
      {"GET /metrics HTTP/1.1\r\n", 0, FALSE},
      {"GET /metrics HTTP/1.1\r\nHost: x\r\n", 0, FALSE},
      {"GET /metrics HTTP/1.1\r\nHost: x\r\n\r", 0, FALSE},
      {"GET / HTTP/1.1\r\n\r\n", 404, FALSE},
      {"GET /metricsx HTTP/1.1\r\n\r\n", 404, FALSE},
      {"GET http://x/metrics HTTP/1.1\r\n\r\n", 404, FALSE},
      {"POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 405, FALSE},
      {"get /metrics HTTP/1.1\r\n\r\n", 405, FALSE},
      {"GET /metrics HTTP/2.0\r\n\r\n", 505, FALSE},
      {"GET /metrics\r\n\r\n", 400, FALSE},
      {"GET  /metrics HTTP/1.1\r\n\r\n", 400, FALSE},
      {"GET /metrics HTTP/1.1 \r\n\r\n", 400, FALSE},
      {"GET /metrics FTP/1.1\r\n\r\n", 400, FALSE},
      {"GET /me\ttrics HTTP/1.1\r\n\r\n", 400, FALSE},
      {"G(T /metrics HTTP/1.1\r\n\r\n", 400, FALSE},
      {"\x16\x03\x01\x02\n", 400, FALSE},
      {"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n", 400, FALSE},
      {"GET /metrics HTTP/1.1\r\n folded: x\r\n\r\n", 400, FALSE},
      {"GET /metrics HTTP/1.1\r\nA : x\r\n\r\n", 400, FALSE},
      {"GET /metrics HTTP/1.1\r\nA: \x01\r\n\r\n", 400, FALSE},
  };
  gboolean head;
  for (size_t i = 0; i < G_N_ELEMENTS(request); i++) {
    cr_expect_eq(metrics_request_status(request[i].text, strlen(request[i].text), &head), request[i].status,
                 "%s", request[i].text);
    cr_expect_eq(head, request[i].head, "%s", request[i].text);
  }
  char endless[METRICS_REQUEST_MAX];
  memset(endless, 'A', sizeof endless);
  cr_expect_eq(metrics_request_status(endless, sizeof endless - 1, &head), 0);
  cr_expect_eq(metrics_request_status(endless, sizeof endless, &head), 431);
}
