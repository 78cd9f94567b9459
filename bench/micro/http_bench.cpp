// What one proxied request costs in this module: two heads scanned, two rewritten.
#include <benchmark/benchmark.h>

#include "http/chunked.h"
#include "http/rewrite.h"

namespace {

using namespace clockwise::http;

constexpr std::string_view kRequest =
    "GET /static/images/2024/03/header-background-large.jpg?v=3 HTTP/1.1\r\n"
    "Host: www.example.com\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:124.0) Gecko/20100101 Firefox/124.0\r\n"
    "Accept: image/avif,image/webp,*/*\r\n"
    "Accept-Encoding: gzip, deflate, br\r\n"
    "Referer: https://www.example.com/2024/03/index.html\r\n\r\n";

constexpr std::string_view kResponse =
    "HTTP/1.1 200 OK\r\n"
    "Server: nginx\r\n"
    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "Content-Type: text/html\r\n"
    "Content-Length: 1024\r\n"
    "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "Connection: keep-alive\r\n"
    "ETag: \"65f1a2b3-400\"\r\n"
    "Accept-Ranges: bytes\r\n\r\n";

void scan_request_head(benchmark::State& state) {
  RequestHead head;
  for (auto _ : state) {
    std::size_t scanned = 0;
    benchmark::DoNotOptimize(scan_request(kRequest, {}, head, scanned));
  }
}
BENCHMARK(scan_request_head);

void scan_response_head(benchmark::State& state) {
  ResponseHead head;
  for (auto _ : state) {
    std::size_t scanned = 0;
    benchmark::DoNotOptimize(scan_response(kResponse, {}, Method::get, head, scanned));
  }
}
BENCHMARK(scan_response_head);

void rewrite_request_head(benchmark::State& state) {
  RequestHead head;
  std::size_t scanned = 0;
  benchmark::DoNotOptimize(scan_request(kRequest, {}, head, scanned));
  RequestContext context;
  context.client_ip = "192.0.2.17";
  context.request_id = "0123456789abcdef0123456789abcdef";
  Gather gather;
  for (auto _ : state) {
    gather.clear();
    rewrite_request(kRequest, head, context, gather);
    benchmark::DoNotOptimize(gather.slices().data());
  }
}
BENCHMARK(rewrite_request_head);

void rewrite_response_head(benchmark::State& state) {
  ResponseHead head;
  std::size_t scanned = 0;
  benchmark::DoNotOptimize(scan_response(kResponse, {}, Method::get, head, scanned));
  ResponseContext context;
  context.body = head.body;
  Gather gather;
  for (auto _ : state) {
    gather.clear();
    rewrite_response(kResponse, head, context, gather);
    benchmark::DoNotOptimize(gather.slices().data());
  }
}
BENCHMARK(rewrite_response_head);

void decode_chunks(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 16; ++i) body += "400\r\n" + std::string(1024, 'x') + "\r\n";
  body += "0\r\n\r\n";
  for (auto _ : state) {
    ChunkedDecoder decoder;
    for (std::string_view rest = body; !rest.empty();) {
      rest.remove_prefix(decoder.step(rest).consumed);
    }
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * body.size()));
}
BENCHMARK(decode_chunks);

}  // namespace
